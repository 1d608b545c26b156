package processor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// I4 once, I5 order, I2 atomic, I3 prefix: without any fault the output is the fold of the input, and a stopped worker's store is the
// changelog up to the offset that it records. A second run goes on from there.
func TestRekeyedTotalsComeOutExactlyOnceInOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	l.add(500)
	w := c.start(totals(), "w")
	w.holds(2)
	stop := l.load()
	w.saw(4, "job restored")
	l.add(2000)
	stop()
	l.check()
	w.stop()
	if n := w.checkPrefix("totals.count", "totals.count.state"); n != 4 {
		t.Errorf("%d state partitions on disk, want 4", n)
	}
	l.add(300)
	again := c.start(totals(), "w2", func(o *Options) { o.OpenStore = storeOn(w) })
	again.holds(2)
	l.check()
	if n := again.journal.count("job restored", `rebuilt=""`); n != 4 {
		t.Errorf("%d of 4 partitions were restored from the local copy", n)
	}
}

// A stop in the middle of the load finishes what is open, and a start goes on behind it: a clean stop is no crash.
func TestStopFinishesTheOpenEpoch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": ledgerPartitions})
	l := newLedger(c)
	stop := l.load()
	defer stop()
	w := c.start(totals(), "w")
	for n := range 3 {
		w.holds(2)
		w.stop()
		// What the worker has sent through its swift stage before it stopped, it has also committed: nothing comes twice.
		w.checkPrefix("totals.count", "totals.count.state")
		old := w
		w = c.start(totals(), fmt.Sprintf("w%d", n), func(o *Options) { o.OpenStore = storeOn(old) })
		w.disk = old.disk
	}
	w.holds(2)
	stop()
	l.check()
}

const wordsSpec = `
pipeline: words
jobs: 3
epoch: {max_interval: 50ms}
lease: {session_timeout: 1s, probe_interval: 200ms, transaction_timeout: 2s, ttl: 10s, stall_timeout: 30s}
streams:
  lines:  {schema: [{name: text, type: string}]}
  raw:    {schema: [{name: word, type: string, required: true}]}
  words:  {schema: [{name: word, type: string, required: true}], partitions: 4}
  counts: {schema: [{name: word, type: string}, {name: n, type: int64}]}
computations:
  split:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: lines, parameters: {topic: lines, format: text, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: raw, for_each: 'row.text.lowerAscii().split(" ")', where: 'item != ""', columns: {word: item}}]}}
    output_stream_ids: [raw]
  filter:
    type: swift_map
    input_stream_ids: [raw]
    process: {function: map, parameters: {outputs: [{stream: words, where: 'row.word != "the"', columns: {word: row.word}}]}}
    output_stream_ids: [words]
  count:
    type: transform
    input_stream_ids: [words]
    group_by_schema: [{name: word, type: string}]
    process: {function: aggregate, parameters: {output: counts, fields: {n: {count: {}}}, emit: update}}
    output_stream_ids: [counts]
    sinks: {out: {type: kafka, input_stream_ids: [counts], parameters: {topic: counts, format: json, key: [word]}}}
`

// I4 for messages with many children, and through a fused chain.
func TestWordsAreCountedExactly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"lines": 3})
	want := map[string]int64{}
	words := []string{"the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog"}
	for p := range int32(3) {
		var lines []string
		for i := range 200 {
			line := ""
			for k := range 1 + i%6 {
				word := words[(i*7+k*3+int(p))%len(words)]
				line += word + "  "
				if word != "the" {
					want[word]++
				}
			}
			lines = append(lines, line)
		}
		c.produce("lines", p, lines...)
	}
	c.start(wordsSpec, "w")
	c.consumed("words", "lines", "words.words")
	seen := map[string][]int64{}
	for _, rs := range c.read("counts") {
		for _, r := range rs {
			var line struct {
				Word string
				N    int64
			}
			if err := json.Unmarshal(r.Value, &line); err != nil {
				t.Fatal(err)
			}
			seen[line.Word] = append(seen[line.Word], line.N)
		}
	}
	for word, n := range want {
		if got := seen[word]; int64(len(got)) != n || !slices.IsSorted(got) || got[0] != 1 || got[n-1] != n {
			t.Errorf("counts of %q are %v, want 1 to %d", word, got, n)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("words %v, want %v", slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(want)))
	}
}

const twoStreamsSpec = `
pipeline: two
jobs: 1
epoch: {max_interval: 50ms}
lease: {session_timeout: 1s, probe_interval: 200ms, transaction_timeout: 2s, ttl: 10s, stall_timeout: 30s}
streams:
  in:    {schema: [{name: k, type: string, required: true}, {name: n, type: int64}]}
  odd:   {schema: [{name: k, type: string}, {name: n, type: int64}], partitions: 1}
  even:  {schema: [{name: k, type: string}, {name: n, type: int64}], partitions: 1}
  sums:  {schema: [{name: k, type: string}, {name: c, type: int64}, {name: s, type: int64}]}
computations:
  divide:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: in, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: odd, where: row.n %% 2 == 1, columns: {k: row.k, n: row.n}}, {stream: even, where: row.n %% 2 == 0, columns: {k: row.k, n: row.n}}]}}
    output_stream_ids: [odd, even]
  %s
`

const joined = `join:
    type: transform
    input_stream_ids: [odd, even]
    group_by_schema: [{name: k, type: string}]
    process: {function: aggregate, parameters: {output: sums, fields: {c: {count: {}}, s: {sum: row.n}}, emit: update}}
    output_stream_ids: [sums]
    sinks: {out: {type: kafka, input_stream_ids: [sums], parameters: {topic: out, format: json, key: [k]}}}
`

// I4: a stage may read two streams of one writer. Their records carry ids of one origin and come in any order with respect to each
// other, so a frontier is each topic's own.
func TestTwoStreamsOfOneWriterLoseNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 1})
	var values []string
	sum := int64(0)
	for i := range int64(600) {
		sum += i
		values = append(values, fmt.Sprintf(`{"k":"a","n":%d}`, i))
	}
	c.produce("in", 0, values...)
	c.start(fmt.Sprintf(twoStreamsSpec, joined), "w")
	c.consumed("two", "in", "two.odd", "two.even")
	var last struct{ C, S int64 }
	n := 0
	for _, rs := range c.read("out") {
		for _, r := range rs {
			n++
			if err := json.Unmarshal(r.Value, &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 600 || last.C != 600 || last.S != sum {
		t.Errorf("%d outputs, the last %+v; want 600 with sum %d", n, last, sum)
	}
}

const twoReadersSpec = `
pipeline: both
jobs: 1
epoch: {max_interval: 50ms}
lease: {session_timeout: 1s, probe_interval: 200ms, transaction_timeout: 2s, ttl: 10s, stall_timeout: 30s}
streams:
  in:    {schema: [{name: k, type: string, required: true}, {name: n, type: int64}]}
  in2:   {schema: [{name: k, type: string, required: true}, {name: n, type: int64}]}
  copy1: {schema: [{name: k, type: string}, {name: n, type: int64}]}
  copy2: {schema: [{name: k, type: string}, {name: n, type: int64}]}
computations:
  first:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: in, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: copy1, columns: {k: row.k, n: row.n}}]}}
    output_stream_ids: [copy1]
    sinks: {out: {type: kafka, input_stream_ids: [copy1], parameters: {topic: out1, format: json}}}
  second:
    type: swift_ordered_source
    sources: {in: {type: kafka, output_stream_id: in2, parameters: {topic: in, format: json, start: earliest}}}
    process: {function: map, parameters: {outputs: [{stream: copy2, columns: {k: row.k, n: row.n}}]}}
    output_stream_ids: [copy2]
    sinks: {out: {type: kafka, input_stream_ids: [copy2], parameters: {topic: out2, format: json}}}
    on_error: {policy: fail, pause: 300ms}
`

// I4, I5: two computations of a job may read one source topic, each at its own position.
func TestTwoReadersOfOneTopicEachGetAllOfIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, map[string]int32{"in": 1, "out1": 1, "out2": 1})
	c.start(twoReadersSpec, "w")
	next := 0
	for range 30 {
		var values []string
		for range 40 {
			values = append(values, fmt.Sprintf(`{"k":"a","n":%d}`, next))
			next++
		}
		c.produce("in", 0, values...)
	}
	c.consumed("both", "in")
	c.consumed("both.second", "in")
	for _, topic := range []string{"out1", "out2"} {
		for i, r := range c.read(topic)[0] {
			if want := fmt.Sprintf(`{"k":"a","n":%d}`, i); string(r.Value) != want {
				t.Fatalf("%s: record %d is %s, want %s", topic, i, r.Value, want)
			}
		}
		if n := len(c.read(topic)[0]); n != next {
			t.Errorf("%s: %d records, want %d", topic, n, next)
		}
	}
}
