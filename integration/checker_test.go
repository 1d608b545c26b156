package integration

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func threeSteps() History {
	return History{"a": {{1, 5, "e-1"}, {2, 3, "e-3"}, {3, 4, "e-4"}}}
}

func TestCheckerTellsMissingDoubledAndDifferent(t *testing.T) {
	t.Parallel()
	right := threeSteps()["a"]
	cases := map[string]struct {
		steps []Step
		want  Verdict
	}{
		"exact":                  {right, Verdict{Records: 3}},
		"nothing":                {nil, Verdict{Missing: 3}},
		"last one lost":          {right[:2], Verdict{Records: 2, Missing: 1}},
		"one in the middle lost": {[]Step{right[0], right[2]}, Verdict{Records: 2, Missing: 1}},
		"output written twice":   {[]Step{right[0], right[0], right[1], right[2]}, Verdict{Records: 4, Doubled: 1}},
		"everything replayed":    {append(append([]Step{}, right...), right...), Verdict{Records: 6, Doubled: 3}},
		"out of order":           {[]Step{right[0], right[2], right[1]}, Verdict{Records: 3, Different: 1}},
		"entry lost before the state": {[]Step{right[0], {2, 6, "e-4"}},
			Verdict{Records: 2, Missing: 1, Different: 1}},
		"entry applied twice": {[]Step{right[0], {2, 10, "e-1"}, {3, 8, "e-3"}, {4, 9, "e-4"}},
			Verdict{Records: 4, Doubled: 1, Different: 2}},
		"wrong balance":    {[]Step{right[0], {2, 4, "e-3"}, right[2]}, Verdict{Records: 3, Different: 1}},
		"unknown entry":    {append(append([]Step{}, right...), Step{3, 4, "e-5"}), Verdict{Records: 4, Different: 1}},
		"state was lost":   {[]Step{right[0], {1, -2, "e-3"}, {2, -1, "e-4"}}, Verdict{Records: 3, Different: 2}},
		"more than inputs": {append(append([]Step{}, right...), Step{4, 4, "e-5"}), Verdict{Records: 4, Doubled: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := NewChecker(threeSteps())
			for _, step := range c.steps {
				checker.Observe("a", 0, step)
			}
			got := checker.Verdict()
			if got.Records != c.want.Records || got.Missing != c.want.Missing || got.Doubled != c.want.Doubled || got.Different != c.want.Different {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			if got.Exact() != (len(got.Examples) == 0) {
				t.Fatalf("examples do not go with the verdict: %v", got)
			}
		})
	}
}

func TestCheckerWithoutIDsGoesByTheCount(t *testing.T) {
	t.Parallel()
	checker := NewChecker(WordHistory([]string{"To be or", "not  to BE"}))
	for _, seen := range []struct {
		word string
		n    int64
	}{{"to", 1}, {"to", 2}, {"be", 1}, {"be", 1}, {"or", 1}, {"or", 2}, {"maybe", 1}} {
		checker.Observe(seen.word, 0, Step{N: seen.n})
	}
	got := checker.Verdict()
	if got.Missing != 2 || got.Doubled != 3 || got.Different != 0 {
		t.Fatalf("want be 2 and not 1 missing; be 1, or 2 and maybe 1 doubled; got %v", got)
	}
}

func TestCheckerRefusesAKeyInTwoPartitions(t *testing.T) {
	t.Parallel()
	checker := NewChecker(threeSteps())
	for i, step := range threeSteps()["a"] {
		checker.Observe("a", int32(i/2), step)
	}
	if got := checker.Verdict(); got.Different != 1 {
		t.Fatalf("got %v", got)
	}
}

func TestLedgerHistoryIsTheFoldOfItsRecords(t *testing.T) {
	t.Parallel()
	ledger := Ledger{Entries: 5000, Accounts: 40, Seed: 7}
	checker := NewChecker(ledger.History())
	n, balance := map[string]int64{}, map[string]int64{}
	for i := range ledger.Entries {
		e := ledger.Entry(i)
		n[e.Account]++
		balance[e.Account] += e.Amount
		checker.Observe(e.Account, 0, Step{n[e.Account], balance[e.Account], e.ID})
	}
	if got := checker.Verdict(); !got.Exact() || got.Records != 5000 || len(n) != 40 {
		t.Fatalf("%d accounts, %v", len(n), got)
	}
	if (Ledger{Entries: 1, Accounts: 1000, Seed: 8}).Entry(0) == ledger.Entry(0) {
		t.Fatal("another seed gives the same entry")
	}
}

func TestDecodersRefuseIncompleteOutputs(t *testing.T) {
	t.Parallel()
	refused := []struct {
		decode     Decoder
		key, value string
	}{
		{DecodeBalance, "a", `{"account":"a","n":1,"balance":2}`},
		{DecodeBalance, "b", `{"account":"a","n":1,"balance":2,"last_id":"e"}`},
		{DecodeBalance, "a", `{"account":"a","n":"x","balance":2,"last_id":"e"}`},
		{DecodeTotal, "a", `{"count":1}`},
		{DecodeTotal, "a", `{"user":"b","count":1,"sum":1}`},
		{DecodeWord, "a", `{"word":"b","n":1}`},
		{DecodeWord, "a", `{"word":"a"}`},
	}
	for _, c := range refused {
		if _, _, err := c.decode(&kgo.Record{Key: []byte(c.key), Value: []byte(c.value)}); err == nil {
			t.Errorf("%s under key %s was taken", c.value, c.key)
		}
	}
	key, step, err := DecodeTotal(&kgo.Record{Key: []byte("a"), Value: []byte(`{"count":1,"sum":2,"ts":3}`)})
	if err != nil || key != "a" || step != (Step{N: 1, Sum: 2}) {
		t.Errorf("got %q %+v %v", key, step, err)
	}
}

func TestChangelogFoldKeepsTheLastValueOfEachKey(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"partition":0,"offset":0,"kind":"state","name":"aggregate","key":"a","value":{"n":1}}`,
		`{"partition":0,"offset":1,"kind":"state","name":"aggregate","key":"b","value":{"n":1}}`,
		`{"partition":1,"offset":0,"kind":"frontier","name":"","key":"x","value":{}}`,
		`{"partition":1,"offset":1,"kind":"state","name":"other","key":"c","value":{"n":1}}`,
		`{"partition":0,"offset":2,"kind":"state","name":"aggregate","key":"b","value":null}`,
	}
	keys, err := foldChangelog(strings.Join(lines, "\n"), "aggregate")
	if err != nil || len(keys) != 1 || keys["a"].Partition != 0 || string(keys["a"].Value) != `{"n":1}` {
		t.Fatalf("got %v, %v", keys, err)
	}
	lines = append(lines, strings.Replace(lines[0], `"partition":0`, `"partition":1`, 1))
	if _, err := foldChangelog(strings.Join(lines, "\n"), "aggregate"); err == nil {
		t.Fatal("a key with state in two partitions was taken")
	}
	if _, err := foldChangelog("no JSON", "aggregate"); err == nil {
		t.Fatal("a line that is no JSON was taken")
	}
}

const groupTable = `
Consumer group 'ledger' has no active members.

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
ledger          entries         0          120             125             5               -               -               -
ledger          entries         1          7               7               0               -               -               -
ledger          ledger.jobs     0          -               40              -               w1-1            /127.0.0.1      kgo
`

func TestGroupTableIsReadByItsHeader(t *testing.T) {
	t.Parallel()
	rows, err := parseGroupTable(groupTable)
	if err != nil || len(rows) != 3 {
		t.Fatalf("got %v, %v", rows, err)
	}
	if want := (GroupLag{Topic: "entries", Partition: 0, Committed: 120, End: 125, Lag: 5}); rows[0] != want {
		t.Fatalf("got %+v", rows[0])
	}
	if lag, err := TopicLag(rows, "entries", 2); err != nil || lag != 5 {
		t.Fatalf("got %d, %v", lag, err)
	}
	if _, err := TopicLag(rows, "entries", 3); err == nil {
		t.Fatal("a partition that is not shown went unnoticed")
	}
	if _, err := TopicLag(rows, "ledger.jobs", 1); err == nil {
		t.Fatal("a partition without a committed offset went unnoticed")
	}
	if _, err := parseGroupTable("Error: no such group"); err == nil {
		t.Fatal("a text without a table was taken")
	}
}

func TestSpecTextIsReplacedExactlyOnce(t *testing.T) {
	t.Parallel()
	if got, err := substitute("topic: a, key: b", "topic: a", "topic: c"); err != nil || got != "topic: c, key: b" {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, old := range []string{"topic: b", "a"} {
		if _, err := substitute("topic: a, name: a", old, "x"); err == nil {
			t.Errorf("%q was replaced though it is not there once", old)
		}
	}
}
