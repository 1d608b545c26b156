package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/internal/embedded"
	"github.com/kafka-processor/processor/statestore"
)

// cluster is a broker of one test.
type cluster struct {
	t       *testing.T
	brokers string
	fake    *kfake.Cluster
}

func newCluster(t *testing.T, opts ...kfake.Opt) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &cluster{t, strings.Join(c.ListenAddrs(), ","), c}
}

// topic runs "processor topic args" against the cluster and returns exit code, standard output and standard error.
func (c *cluster) topic(args ...string) (int, string, string) {
	var out, errOut bytes.Buffer
	code := run(append([]string{"topic", "--brokers", c.brokers}, args...), &out, &errOut)
	return code, out.String(), errOut.String()
}

func (c *cluster) good(args ...string) string {
	c.t.Helper()
	code, out, errOut := c.topic(args...)
	if code != exitDone {
		c.t.Fatalf("topic %v: exit %d: %s", args, code, errOut)
	}
	return out
}

func (c *cluster) bad(want string, args ...string) {
	c.t.Helper()
	code, _, errOut := c.topic(args...)
	if code == exitDone || !strings.Contains(errOut, want) {
		c.t.Errorf("topic %v: exit %d, error %q does not say %q", args, code, errOut, want)
	}
}

func (c *cluster) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(c.brokers, ",")...))...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return cl
}

func lines(out string) []string { return strings.Split(strings.TrimSuffix(out, "\n"), "\n") }

func TestTopicCanBeCreatedDescribedAlteredAndDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.good("create", "orders", "--partitions", "3", "--config", "cleanup.policy=compact")
	c.bad("orders", "create", "orders")
	if out := c.good("create", "orders", "--if-not-exists"); !strings.Contains(out, "exists") {
		t.Errorf("create --if-not-exists says %q", out)
	}
	out := c.good("describe", "orders")
	if !strings.Contains(out, "3 partitions") || !strings.Contains(out, "cleanup.policy=compact") {
		t.Errorf("describe prints\n%s", out)
	}
	c.good("alter", "orders", "--partitions", "5", "--config", "retention.ms=1000", "--delete-config", "cleanup.policy")
	out = c.good("describe", "orders")
	if !strings.Contains(out, "5 partitions") || !strings.Contains(out, "retention.ms=1000") || strings.Contains(out, "cleanup.policy") {
		t.Errorf("describe after alter prints\n%s", out)
	}
	c.bad("nothing to alter", "alter", "orders")
	c.good("delete", "orders")
	c.bad("does not exist", "describe", "orders")
}

func TestUnknownTopicNamesTheNearestOnes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "flight-stats", "flights", "unrelated"))
	for _, args := range [][]string{{"describe", "flihgts"}, {"consume", "flihgts"}, {"produce", "flihgts"}, {"delete", "flihgts"}, {"alter", "flihgts", "--partitions", "2"}} {
		c.bad("topic flihgts does not exist; did you mean flights?", args...)
	}
	c.bad("processor topic create zzz", "describe", "zzz")
}

func TestUnreachableBrokerIsNamed(t *testing.T) {
	t.Parallel()
	c := &cluster{t: t, brokers: "127.0.0.1:1"}
	c.bad("no broker answers at 127.0.0.1:1", "describe", "orders")
}

func TestProducedLinesAreConsumedInOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "lines"))
	file := filepath.Join(t.TempDir(), "lines.txt.gz")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for i := range 5000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, z.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := c.good("produce", "lines", "--file", file); !strings.Contains(out, "produced 5000 records to lines") {
		t.Errorf("produce says %q", out)
	}
	got := lines(c.good("consume", "lines", "--exit-at-end"))
	for i, l := range got {
		if l != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d is %q", i, l)
		}
	}
	if len(got) != 5000 {
		t.Errorf("%d lines", len(got))
	}
	if got := lines(c.good("consume", "lines", "--from", "4990", "-n", "3")); len(got) != 3 || got[0] != "line 4990" {
		t.Errorf("consume --from 4990 -n 3 prints %v", got)
	}
	if got := c.good("consume", "lines", "--from", "latest", "--exit-at-end"); got != "" {
		t.Errorf("consume --from latest prints %q", got)
	}
	if got := c.good("consume", "lines", "--from", time.Now().Add(time.Hour).Format(time.RFC3339), "--exit-at-end"); got != "" {
		t.Errorf("consume from a later time prints %q", got)
	}
}

func TestKeysComeFromSeparatorOrMembers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "a", "b", "d"))
	file := write(t, "k1:v1\nk2:v:2\n")
	c.good("produce", "a", "--file", file, "--key-separator", ":")
	if got := c.good("consume", "a", "--exit-at-end", "--format", "key-value"); got != "k1\tv1\nk2\tv:2\n" {
		t.Errorf("a holds %q", got)
	}
	file = write(t, `{"user":"u","n":7}`+"\n\n"+`{"user":"é","n":8}`+"\n")
	c.good("produce", "b", "--file", file, "--key-field", "user", "--value-format", "json")
	if got := c.good("consume", "b", "--exit-at-end", "--format", "key-value"); got != "u\t"+`{"user":"u","n":7}`+"\né\t"+`{"user":"é","n":8}`+"\n" {
		t.Errorf("b holds %q", got)
	}
	c.good("produce", "d", "--file", file, "--key-field", "user,n", "--value-format", "json")
	if got := lines(c.good("consume", "d", "-n", "1", "--format", "key-value"))[0]; !strings.HasPrefix(got, `["u",7]`+"\t") {
		t.Errorf("d holds %q", got)
	}
	c.bad("line 2", "produce", "a", "--file", write(t, "x:1\nno separator\n"), "--key-separator", ":")
	c.bad(`no member "missing"`, "produce", "b", "--file", file, "--key-field", "missing", "--value-format", "json")
	c.bad("no JSON document", "produce", "b", "--file", write(t, "{\n"), "--value-format", "json")
	c.bad("partitions 0 to 0", "produce", "b", "--file", file, "--partition", "4")
}

func TestRawInputIsOneRecord(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(2, "raw"))
	c.good("produce", "raw", "--file", write(t, "a\nb\n\xff"), "--value-format", "raw", "--partition", "1")
	var r jsonRecord
	if err := json.Unmarshal([]byte(c.good("consume", "raw", "--exit-at-end", "--format", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Partition != 1 || r.Key != nil || r.Value != nil || r.ValueBase64 != "YQpiCv8=" {
		t.Errorf("raw record is %+v", r)
	}
}

func TestJSONFormatHasPositionTimestampKeyAndValue(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "t"))
	cl := c.client()
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Key: []byte("k"), Value: []byte(`{"n":1}`), Timestamp: time.UnixMilli(1500)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	want := `{"partition":0,"offset":0,"timestamp":"1970-01-01T00:00:01.500Z","key":"k","value":"{\"n\":1}"}` + "\n"
	if got := c.good("consume", "t", "-n", "1", "--format", "json"); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// transactions leaves a topic that ends in an aborted record and its marker, behind a committed one.
func transactions(t *testing.T, c *cluster) {
	t.Helper()
	cl := c.client(kgo.TransactionalID("x"))
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "commit=%v", how)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConsumeShowsCommittedOnlyAndEndsBehindMarkers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "t"))
	transactions(t, c)
	if got := c.good("consume", "t", "--exit-at-end"); got != "commit=true\n" {
		t.Errorf("read committed prints %q", got)
	}
	if got := c.good("consume", "t", "--exit-at-end", "--isolation", "read_uncommitted"); got != "commit=true\ncommit=false\n" {
		t.Errorf("read uncommitted prints %q", got)
	}
}

func TestStateFormatTakesChangelogRecordsApart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "t"))
	cl := c.client()
	key := statestore.AppendKey(nil, statestore.KindState, "totals", []byte("word"))
	for _, r := range []*kgo.Record{
		{Key: key, Value: statestore.AppendValue(nil, 0xab, []byte{1, 2})},
		{Key: key},
		{Key: []byte("foreign"), Value: []byte("x")},
	} {
		r.Topic = "t"
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	got := lines(c.good("consume", "t", "--exit-at-end", "--format", "state"))
	want := []string{
		`{"partition":0,"offset":0,"kind":"state","name":"totals","key":"word","schema":"00000000000000ab","value":"0102"}`,
		`{"partition":0,"offset":1,"kind":"state","name":"totals","key":"word","value":null}`,
	}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("got  %s\nwant %s", got[i], w)
		}
	}
	if len(got) != 3 || !strings.Contains(got[2], `"error":`) {
		t.Errorf("a foreign record prints %s", got[len(got)-1])
	}
}

func TestRateHoldsRecordsBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kfake.SeedTopics(1, "t"))
	begin := time.Now()
	c.good("produce", "t", "--file", write(t, strings.Repeat("x\n", 21)), "--rate", "100")
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("21 records at 100/s took %v", took)
	}
}

func TestTopicCommandsReachTheEmbeddedBrokerByFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := embedded.Open(context.Background(), dir, embedded.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := run([]string{"topic", "create", "t", "--embedded=" + dir}, &out, &errOut); code != exitDone {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	errOut.Reset()
	if code := run([]string{"topic", "describe", "t", "--embedded=" + dir}, &out, &errOut); code != exitError || !regexp.MustCompile("no embedded broker runs in").MatchString(errOut.String()) {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

func TestStartPositions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]startAt{
		"earliest": {offset: -1}, "latest": {latest: true, offset: -1}, "42": {offset: 42},
		"2026-01-02T03:04:05Z": {offset: -1, time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	} {
		if got, err := parseStart(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "4x", "yesterday"} {
		if _, err := parseStart(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
