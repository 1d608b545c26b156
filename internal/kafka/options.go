package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/kafka-processor/processor/spec"
)

// dialTimeout bounds one attempt to connect; reachability is retried above it.
const dialTimeout = 5 * time.Second

// ErrRefused marks an answer that waiting does not change: wrong credentials, a certificate that does not verify, TLS on one side
// only. Whoever keeps trying to reach a cluster stops at it.
var ErrRefused = errors.New("the broker refuses this client")

// Options turns a spec's kafka block into client options. Errors name the file or the secret that cannot be read; they never
// contain its value. Secrets are read again at each authentication, so that a rotated file or token is picked up.
func Options(k spec.Kafka, clientID string) ([]kgo.Opt, error) {
	if len(k.Brokers) == 0 {
		return nil, errors.New("kafka.brokers names no address")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(k.Brokers...),
		kgo.ClientID(clientID),
		// The default of 5 s turns one retriable answer into a 5 s stall.
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.DialTimeout(dialTimeout),
	}
	if k.Rack != "" {
		opts = append(opts, kgo.Rack(k.Rack))
	}
	if k.TLS != nil {
		c, err := tlsConfig(k.TLS)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	}
	if k.SASL != nil {
		m, err := mechanism(k.SASL)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

func tlsConfig(t *spec.TLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka.tls.ca_file: %s holds no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("kafka.tls: cert_file and key_file belong together, one of them is missing")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls: cert_file %s with key_file %s: %w", t.CertFile, t.KeyFile, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// mechanism builds the SASL mechanism. The secrets are read once here, so that a missing one is an error before any connection.
func mechanism(s *spec.SASL) (sasl.Mechanism, error) {
	reveal := func() (user, pass string, err error) {
		if user, err = s.Username.Reveal(); err != nil {
			return "", "", fmt.Errorf("kafka.sasl.username: %w", err)
		}
		if pass, err = s.Password.Reveal(); err != nil {
			return "", "", fmt.Errorf("kafka.sasl.password: %w", err)
		}
		return user, pass, nil
	}
	user, pass, err := reveal()
	if err != nil {
		return nil, err
	}
	if pass == "" || user == "" && s.Mechanism != "oauthbearer" {
		return nil, fmt.Errorf("kafka.sasl: mechanism %s needs a username and a password (oauthbearer: the token as password), one is empty", s.Mechanism)
	}
	switch s.Mechanism {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			u, p, err := reveal()
			return plain.Auth{User: u, Pass: p}, err
		}), nil
	case "scram-sha-256", "scram-sha-512":
		auth := func(context.Context) (scram.Auth, error) {
			u, p, err := reveal()
			return scram.Auth{User: u, Pass: p}, err
		}
		if s.Mechanism == "scram-sha-256" {
			return scram.Sha256(auth), nil
		}
		return scram.Sha512(auth), nil
	case "oauthbearer":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			_, p, err := reveal()
			return oauth.Auth{Token: p}, err
		}), nil
	}
	return nil, fmt.Errorf("kafka.sasl.mechanism %q is unknown: use plain, scram-sha-256, scram-sha-512 or oauthbearer", s.Mechanism)
}

// Ping asks once whether any broker answers. The error names the addresses and says what to look at; it is ErrRefused where trying
// again is of no use.
func Ping(ctx context.Context, cl *kgo.Client, addresses []string) error {
	err := cl.Ping(ctx)
	if err == nil {
		return nil
	}
	return Explain(err, addresses)
}

// Reach pings until a broker answers, with pauses from 0.2 s growing to 5 s, and hands every failed attempt to report. It returns
// nil, an ErrRefused, or the last failure once ctx ends.
func Reach(ctx context.Context, cl *kgo.Client, addresses []string, report func(error)) error {
	pause := 200 * time.Millisecond
	for {
		err := Ping(ctx, cl, addresses)
		if err == nil || errors.Is(err, ErrRefused) || ctx.Err() != nil {
			return err
		}
		report(err)
		sleep(ctx, pause)
		pause = min(2*pause, 5*time.Second)
	}
}

// Explain adds to a connection's error the addresses it was about and what to check.
func Explain(err error, addresses []string) error {
	at := strings.Join(addresses, ", ")
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var eof *kgo.ErrFirstReadEOF
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return fmt.Errorf("%w at %s: check kafka.sasl username and password: %w", ErrRefused, at, err)
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("%w at %s: it does not offer this kafka.sasl.mechanism: %w", ErrRefused, at, err)
	case errors.As(err, &record):
		return fmt.Errorf("%w at %s: it speaks no TLS there; remove kafka.tls or use the TLS port: %w", ErrRefused, at, err)
	case errors.As(err, &verify):
		return fmt.Errorf("%w at %s: its certificate does not verify; check kafka.tls ca_file and server_name: %w", ErrRefused, at, err)
	case errors.As(err, &eof):
		return fmt.Errorf("the broker at %s closed the connection at once: it probably wants TLS or SASL (kafka.tls, kafka.sasl): %w", at, err)
	}
	return fmt.Errorf("no broker answers at %s: check that Kafka runs there and that the address is right (kafka.brokers or --brokers): %w", at, err)
}
