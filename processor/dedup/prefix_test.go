package dedup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/message"
)

// prefixWorld is a swift stage whose epoch also carries a record to a sink for every input: two inputs, each with one child.
type prefixWorld struct {
	committed, processed, acked, sent, attempt uint8 // sent: last input whose sink record was committed by this attempt
	sink                                       [4]uint8
	effects                                    uint8
	children                                   [4]record // in the log, acknowledged or not
	written                                    uint8
}

// An epoch of a swift stage closes over one prefix of acknowledged inputs and holds the effects of exactly that prefix. When
// the effects of all that was processed ride along, a crash repeats them.
func TestEpochOfASwiftStageClosesOverOneAcknowledgedPrefix(t *testing.T) {
	t.Parallel()
	for _, aligned := range []bool{true, false} {
		n, broken, trace := searchPrefix(aligned)
		t.Logf("aligned %v: %d worlds; %s\n\t%s", aligned, n, broken, strings.Join(trace, "\n\t"))
		if aligned != (broken == "") {
			t.Errorf("aligned %v: %q", aligned, broken)
		}
	}
}

func searchPrefix(aligned bool) (int, string, []string) {
	const inputs = 2
	type from struct {
		before prefixWorld
		what   string
	}
	start := prefixWorld{attempt: 1}
	seen, queue := map[prefixWorld]from{start: {}}, []prefixWorld{start}
	for at := 0; at < len(queue); at++ {
		w := queue[at]
		if broken := w.broken(inputs); broken != "" {
			var trace []string
			for w != start {
				trace = append([]string{seen[w].what}, trace...)
				w = seen[w].before
			}
			return len(queue), broken, trace
		}
		add := func(n prefixWorld, format string, args ...any) {
			if _, ok := seen[n]; !ok {
				seen[n] = from{w, fmt.Sprintf(format, args...)}
				queue = append(queue, n)
			}
		}
		if w.processed < inputs {
			n := w
			n.processed++
			n.children[n.written] = w.child(n.processed)
			n.written++
			add(n, "processes %d and sends its child", n.processed)
		}
		if w.acked < w.processed {
			n := w
			n.acked++
			add(n, "child of %d is acknowledged", n.acked)
		}
		high := w.processed
		if aligned {
			high = w.acked
		}
		if high > w.sent || w.acked > w.committed {
			n := w
			for i := w.sent + 1; i <= high; i++ {
				n.sink[n.effects], n.effects = i, n.effects+1
			}
			n.committed, n.sent = w.acked, high
			add(n, "epoch commits offset %d, sink records up to %d", n.committed, high)
		}
		if w.attempt < 2 {
			n := w
			n.attempt, n.processed, n.acked, n.sent = 2, w.committed, w.committed, w.committed
			add(n, "crash; a new attempt starts behind %d", w.committed)
		}
	}
	return len(queue), "", nil
}

// child is the next output of the attempt, linked by the real Chain.
func (w *prefixWorld) child(id uint8) record {
	c := NewChain(1)
	var r record
	first := uint8(1)
	if w.attempt == 2 {
		first = id // only the start of this attempt matters: its first child says so
		if w.written > 0 && w.processed > w.committed {
			first = w.committed + 1
		}
	}
	for i := first; i <= id; i++ {
		start, prev, _ := c.Next(0, 0, uint64(i), 0)
		r = record{id: i, start: start, prev: uint8(prev), attempt: w.attempt}
	}
	return r
}

func (w *prefixWorld) broken(inputs uint8) string {
	effects := w.sink[:w.effects]
	for i, e := range effects {
		if slices.Contains(effects[:i], e) {
			return fmt.Sprintf("I4: the sink holds %v", effects)
		}
	}
	f := NewFrontier()
	f.KnownLine(1)
	var got []uint8
	for _, r := range w.children[:w.written] {
		id := message.ID{Fingerprint: 1, Offset: uint64(r.id)}
		if f.Check(id, true, r.start, uint64(r.prev), 0) == Accept {
			f.Advance(id)
			got = append(got, r.id)
		}
	}
	if !slices.IsSorted(got) || w.committed == inputs && len(got) != int(inputs) {
		return fmt.Sprintf("I6: the next stage got %v", got)
	}
	return ""
}
