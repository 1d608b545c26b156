package processor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/kafka-processor/processor/statestore"
)

// TestArenaSlicesStayIntactUntilReset: records of an epoch are slices of the arena until the epoch is committed. Also those that
// outgrow a chunk, and those whose begin was dropped, must not disturb the others.
func TestArenaSlicesStayIntactUntilReset(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 9))
	var a arena
	for range 4 {
		var kept, want [][]byte
		var used int64
		for range 3000 {
			n := rnd.IntN(400)
			if rnd.IntN(200) == 0 {
				n = arenaChunk/2 + rnd.IntN(arenaChunk)
			}
			b := a.begin()
			if len(b) != 0 {
				t.Fatalf("begin gave %d bytes", len(b))
			}
			fill := byte(rnd.IntN(256))
			for range 1 + rnd.IntN(3) { // grows in steps
				b = append(b, bytes.Repeat([]byte{fill}, n/3)...)
			}
			if rnd.IntN(10) == 0 {
				continue // dropped
			}
			used += int64(len(b))
			kept, want = append(kept, a.end(b)), append(want, bytes.Clone(b))
		}
		for i := range kept {
			if !bytes.Equal(kept[i], want[i]) {
				t.Fatalf("slice %d of %d bytes was overwritten", i, len(want[i]))
			}
			if cap(kept[i]) != len(kept[i]) {
				t.Fatalf("slice %d can be appended to in place: the next one would be overwritten", i)
			}
		}
		if a.used != used {
			t.Errorf("used %d, want %d", a.used, used)
		}
		a.reset()
		if a.used != 0 || len(a.chunks) != 0 || len(a.free) > arenaKeep {
			t.Errorf("after reset: used %d, %d chunks, %d free", a.used, len(a.chunks), len(a.free))
		}
	}
}

// TestLastOfEachKeepsTheNewest: replay hands a batch over sorted, each key once, the newest value winning (I3).
func TestLastOfEachKeepsTheNewest(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		want := map[string]string{}
		var changes []statestore.Change
		for i := range rnd.IntN(30) {
			k, v := string(rune('a'+rnd.IntN(6))), string(rune('A'+i))
			if rnd.IntN(4) == 0 {
				v = ""
			}
			want[k] = v
			changes = append(changes, statestore.Change{Key: []byte(k), Value: []byte(v)})
		}
		got := lastOfEach(changes)
		if len(got) != len(want) {
			t.Fatalf("%d keys, want %d", len(got), len(want))
		}
		for i, c := range got {
			if i > 0 && bytes.Compare(got[i-1].Key, c.Key) >= 0 {
				t.Fatalf("not sorted at %q", c.Key)
			}
			if want[string(c.Key)] != string(c.Value) {
				t.Fatalf("key %q is %q, want %q", c.Key, c.Value, want[string(c.Key)])
			}
		}
	}
}
