package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kafka-processor/processor/spec"
)

func fake(t *testing.T, opts ...kfake.Opt) []string {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

// refusing is a broker that answers every authentication as Kafka answers a wrong password; kfake just closes the connection.
func refusing(t *testing.T) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "p", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	return c.ListenAddrs()
}

// ping connects with a kafka block and pings once.
func ping(t *testing.T, k spec.Kafka) error {
	t.Helper()
	opts, err := Options(k, "test")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return Ping(ctx, cl, k.Brokers)
}

func login(mechanism, user, pass string) *spec.SASL {
	return &spec.SASL{Mechanism: mechanism, Username: spec.NewSecret(user), Password: spec.NewSecret(pass)}
}

func TestCredentialsAreTakenAndWrongOnesRefusedAtOnce(t *testing.T) {
	t.Parallel()
	at := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "p", "secret"), kfake.Superuser("SCRAM-SHA-256", "s256", "secret"), kfake.Superuser("SCRAM-SHA-512", "s512", "secret"))
	for mechanism, user := range map[string]string{"plain": "p", "scram-sha-256": "s256", "scram-sha-512": "s512"} {
		if err := ping(t, spec.Kafka{Brokers: at, SASL: login(mechanism, user, "secret")}); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		if err := ping(t, spec.Kafka{Brokers: at, SASL: login(mechanism, user, "hunter2")}); err == nil {
			t.Errorf("%s: a wrong password is taken", mechanism)
		}
	}
	at = refusing(t)
	err := ping(t, spec.Kafka{Brokers: at, SASL: login("plain", "p", "hunter2")})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), at[0]) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("wrong password: %v", err)
	}
}

func TestReachStopsAtARefusalAndReportsWhatPasses(t *testing.T) {
	t.Parallel()
	at := refusing(t)
	opts, err := Options(spec.Kafka{Brokers: at, SASL: login("plain", "p", "wrong")}, "test")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	limited, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if err := Reach(limited, cl, at, func(err error) { t.Errorf("tried again after %v", err) }); !errors.Is(err, ErrRefused) {
		t.Errorf("Reach with a wrong password: %v", err)
	}
	// Nobody listens: it keeps trying until the context ends, and says so each time.
	gone := []string{"127.0.0.1:1"}
	if opts, err = Options(spec.Kafka{Brokers: gone}, "test"); err != nil {
		t.Fatal(err)
	}
	none, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	ctx, cancel := context.WithCancel(t.Context())
	reports := 0
	err = Reach(ctx, none, gone, func(err error) {
		if !strings.Contains(err.Error(), "no broker answers at 127.0.0.1:1") {
			t.Errorf("report: %v", err)
		}
		if reports++; reports == 2 {
			cancel()
		}
	})
	if err == nil || errors.Is(err, ErrRefused) || reports != 2 {
		t.Errorf("Reach without a broker: %v after %d reports", err, reports)
	}
}

// authority writes ca.pem, cert.pem and key.pem for 127.0.0.1 and returns the server's side.
func authority(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"broker.test"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestTLSVerifiesTheBroker(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	at := fake(t, kfake.TLS(authority(t, dir)))
	authority(t, other)
	ca := filepath.Join(dir, "ca.pem")
	for name, good := range map[string]*spec.TLS{
		"authority":          {CAFile: ca},
		"server name":        {CAFile: ca, ServerName: "broker.test"},
		"client certificate": {CAFile: ca, CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")},
	} {
		if err := ping(t, spec.Kafka{Brokers: at, TLS: good}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]*spec.TLS{
		"foreign authority": {CAFile: filepath.Join(other, "ca.pem")},
		"wrong server name": {CAFile: ca, ServerName: "elsewhere.test"},
	} {
		if err := ping(t, spec.Kafka{Brokers: at, TLS: bad}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ping(t, spec.Kafka{Brokers: at}); err == nil {
		t.Error("plain text is taken by a TLS port")
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority(t, dir)
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := []string{"127.0.0.1:1"}
	for want, k := range map[string]spec.Kafka{
		"names no address":        {},
		"missing.pem":             {Brokers: at, TLS: &spec.TLS{CAFile: filepath.Join(dir, "missing.pem")}},
		"holds no PEM":            {Brokers: at, TLS: &spec.TLS{CAFile: empty}},
		"belong together":         {Brokers: at, TLS: &spec.TLS{CertFile: empty}},
		"cert_file " + empty:      {Brokers: at, TLS: &spec.TLS{CertFile: empty, KeyFile: filepath.Join(dir, "key.pem")}},
		"NO_SUCH_VARIABLE_IN_ENV": {Brokers: at, SASL: login("plain", "u", "${env:NO_SUCH_VARIABLE_IN_ENV}")},
		"one is empty":            {Brokers: at, SASL: login("plain", "u", "")},
		`"gssapi" is unknown`:     {Brokers: at, SASL: login("gssapi", "u", "p")},
	} {
		if _, err := Options(k, "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %v", want, err)
		}
	}
}
