// Package storetest holds what each implementation of statestore.Store must do.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/kafka-processor/processor/statestore"
)

// Opener opens the stores of one test, all on the same ground.
type Opener interface {
	// Open opens the store with all that is there.
	Open() (statestore.Store, error)
	// Crash makes the next Open see what is left if the process had been killed now. The suite does not use the store that was open
	// any more, except to close it.
	Crash() error
}

// Run runs the suite; ground returns an Opener on new, empty ground.
func Run(t *testing.T, ground func(t *testing.T) Opener) {
	cases := []struct {
		name string
		run  func(t *testing.T, o Opener)
	}{
		{"a new store is empty", newIsEmpty},
		{"applied changes are found, deleted ones are not", applyAndGet},
		{"get calls found in order and returns its error", getInOrder},
		{"scan gives the rows of a prefix in order", scanPrefix},
		{"the position moves without changes", positionAlone},
		{"partitions do not see each other", partitionsApart},
		{"clear removes rows and position", clearAll},
		{"a new handle revokes the old one", acquireRevokes},
		{"revoke waits for a scan and ends it", revokeEndsScan},
		{"acquire waits for a get under way", acquireWaitsForGet},
		{"a closed store answers that it is closed", closedAnswers},
		{"a second open of the same ground is refused", secondOpenRefused},
		{"a closed store comes back whole", closeKeepsAll},
		{"what was flushed survives a crash", flushSurvives},
		{"a crash leaves a prefix of each partition", crashLeavesPrefix},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, ground(t))
		})
	}
}

var (
	first  = statestore.PartitionID{Stage: "first", Partition: 0}
	second = statestore.PartitionID{Stage: "first", Partition: 1}
	third  = statestore.PartitionID{Stage: "firs", Partition: 0}
)

// open opens a store that is closed at the end of the test.
func open(t *testing.T, o Opener) statestore.Store {
	t.Helper()
	s, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func acquire(t *testing.T, s statestore.Store, p statestore.PartitionID) statestore.Handle {
	t.Helper()
	h, err := s.Acquire(p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// position is a position with all fields set.
func position(offset int64) statestore.Position {
	return statestore.Position{Topic: [16]byte{1, 15: 2}, Incarnation: 1<<63 + 3, Offset: offset, AtEnd: 5 * offset}
}

// changes makes pairs of key and value into changes.
func changes(pairs ...string) []statestore.Change {
	var list []statestore.Change
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, statestore.Change{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return list
}

// wantRows compares a partition, by scan and by get, and its position (-1 is none).
func wantRows(t *testing.T, h statestore.Handle, offset int64, pairs ...string) {
	t.Helper()
	var scanned []string
	must(t, h.Scan(nil, func(key, value []byte) bool {
		scanned = append(scanned, string(key), string(value))
		return true
	}))
	if fmt.Sprintf("%q", scanned) != fmt.Sprintf("%q", pairs) {
		t.Errorf("scan gives %q, want %q", scanned, pairs)
	}
	var keys [][]byte
	for i := 0; i < len(pairs); i += 2 {
		keys = append(keys, []byte(pairs[i]))
	}
	got := 0
	must(t, h.Get(keys, func(i int, value []byte) error {
		got++
		if string(value) != pairs[2*i+1] {
			t.Errorf("get of %q gives %q, want %q", pairs[2*i], value, pairs[2*i+1])
		}
		return nil
	}))
	if got != len(keys) {
		t.Errorf("get finds %d of %d keys", got, len(keys))
	}
	pos, ok, err := h.Position()
	must(t, err)
	if ok != (offset >= 0) || ok && pos != position(offset) {
		t.Errorf("position is %+v, %v; want offset %d", pos, ok, offset)
	}
}

func newIsEmpty(t *testing.T, o Opener) {
	s := open(t, o)
	wantRows(t, acquire(t, s, first), -1)
	partitions, err := s.Partitions()
	must(t, err)
	if len(partitions) != 0 {
		t.Errorf("partitions %v", partitions)
	}
}

func applyAndGet(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), first)
	key, value := []byte("b"), []byte("2")
	must(t, h.Apply([]statestore.Change{{Key: []byte("a"), Value: []byte("1")}, {Key: key, Value: value}}, position(2)))
	key[0], value[0] = 'x', 'x' // the store keeps no reference
	wantRows(t, h, 2, "a", "1", "b", "2")
	must(t, h.Apply(changes("", "root", "a", "", "absent", "", "b", "3"), position(3)))
	wantRows(t, h, 3, "", "root", "b", "3")
	must(t, h.Get([][]byte{[]byte("a"), []byte("absent"), []byte("bb")}, func(i int, value []byte) error {
		return fmt.Errorf("found key %d: %q", i, value)
	}))
}

func getInOrder(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), first)
	must(t, h.Apply(changes("b", "1", "d", "2", "d\x00", "3", "f", "4"), position(1)))
	keys := [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d"), []byte("d\x00"), []byte("e"), []byte("f"), []byte("g")}
	var seen []int
	must(t, h.Get(keys, func(i int, _ []byte) error {
		seen = append(seen, i)
		return nil
	}))
	if fmt.Sprint(seen) != "[1 3 4 6]" {
		t.Errorf("found %v", seen)
	}
	stop := errors.New("enough")
	calls := 0
	err := h.Get(keys, func(int, []byte) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

func scanPrefix(t *testing.T, o Opener) {
	h := acquire(t, open(t, o), first)
	must(t, h.Apply(changes("a", "0", "b", "1", "b\x00", "2", "b\xff", "3", "c", "4", "\xff", "5", "\xff\xff", "6"), position(1)))
	for prefix, want := range map[string]string{"b": "123", "\xff": "56", "c": "4", "d": "", "": "0123456"} {
		var got []byte
		must(t, h.Scan([]byte(prefix), func(_, value []byte) bool {
			got = append(got, value...)
			return true
		}))
		if string(got) != want {
			t.Errorf("scan of %q gives %q, want %q", prefix, got, want)
		}
	}
	calls := 0
	must(t, h.Scan(nil, func(_, _ []byte) bool {
		calls++
		return calls < 2
	}))
	if calls != 2 {
		t.Errorf("a scan that was told to stop after 2 rows went on to %d", calls)
	}
}

func positionAlone(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	must(t, h.Apply(nil, position(0)))
	wantRows(t, h, 0)
	must(t, h.Apply(nil, position(7)))
	wantRows(t, h, 7)
	partitions, err := s.Partitions()
	must(t, err)
	if len(partitions) != 1 || partitions[0] != first {
		t.Errorf("partitions %v", partitions)
	}
}

func partitionsApart(t *testing.T, o Opener) {
	s := open(t, o)
	for i, p := range []statestore.PartitionID{first, second, third} {
		must(t, acquire(t, s, p).Apply(changes("k", fmt.Sprint(i)), position(int64(i))))
	}
	for i, p := range []statestore.PartitionID{first, second, third} {
		wantRows(t, acquire(t, s, p), int64(i), "k", fmt.Sprint(i))
	}
	partitions, err := s.Partitions()
	must(t, err)
	if len(partitions) != 3 {
		t.Errorf("partitions %v", partitions)
	}
}

func clearAll(t *testing.T, o Opener) {
	s := open(t, o)
	h, other := acquire(t, s, first), acquire(t, s, second)
	must(t, other.Apply(changes("", "1", "k", "2"), position(1)))
	must(t, h.Apply(changes("", "1", "k", "2", "\xff\xff", "3"), position(1)))
	must(t, h.Clear())
	wantRows(t, h, -1)
	wantRows(t, other, 1, "", "1", "k", "2")
	partitions, err := s.Partitions()
	must(t, err)
	if len(partitions) != 1 || partitions[0] != second {
		t.Errorf("partitions %v", partitions)
	}
	must(t, h.Apply(changes("k", "3"), position(2)))
	wantRows(t, h, 2, "k", "3")
}

// wantAll calls each method of a handle and compares the error's kind.
func wantAll(t *testing.T, h statestore.Handle, want error) {
	t.Helper()
	_, _, err := h.Position()
	calls := map[string]error{
		"position": err,
		"get":      h.Get([][]byte{[]byte("k")}, func(int, []byte) error { return nil }),
		"scan":     h.Scan(nil, func(_, _ []byte) bool { return true }),
		"apply":    h.Apply(changes("k", "late"), position(9)),
		"clear":    h.Clear(),
	}
	for name, err := range calls {
		if !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", name, err, want)
		}
	}
}

func acquireRevokes(t *testing.T, o Opener) {
	s := open(t, o)
	old := acquire(t, s, first)
	must(t, old.Apply(changes("k", "1"), position(1)))
	next := acquire(t, s, first)
	wantAll(t, old, statestore.ErrRevoked)
	wantRows(t, next, 1, "k", "1")
	next.Revoke()
	next.Revoke()
	wantAll(t, next, statestore.ErrRevoked)
}

func revokeEndsScan(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	must(t, h.Apply(changes("a", "1", "b", "2"), position(1)))
	inside, done := make(chan struct{}), make(chan error)
	revoked := make(chan struct{})
	rows := 0
	go func() {
		done <- h.Scan(nil, func(_, _ []byte) bool {
			rows++
			close(inside) // a second row would close it again
			// The revocation cannot be seen from here, other than by a call that it refuses.
			for {
				if _, _, err := h.Position(); err != nil {
					return true
				}
			}
		})
	}()
	<-inside
	go func() {
		h.Revoke()
		close(revoked)
	}()
	if err := <-done; !errors.Is(err, statestore.ErrRevoked) || rows != 1 {
		t.Errorf("scan gives %v after %d rows", err, rows)
	}
	<-revoked
}

func acquireWaitsForGet(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	must(t, h.Apply(changes("k", "1"), position(1)))
	inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	acquired := make(chan error, 1)
	go func() {
		defer close(done)
		_ = h.Get([][]byte{[]byte("k")}, func(int, []byte) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	go func() {
		_, err := s.Acquire(first)
		acquired <- err
	}()
	// Once the old handle refuses calls, the new term has begun to wait.
	for {
		if _, _, err := h.Position(); err != nil {
			break
		}
	}
	select {
	case <-acquired:
		t.Error("acquire returned while a get of the old term was under way")
		acquired <- nil
	default:
	}
	close(leave)
	must(t, <-acquired)
	<-done
}

func closedAnswers(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	must(t, s.Close())
	wantAll(t, h, statestore.ErrRevoked)
	_, acquireErr := s.Acquire(first)
	_, listErr := s.Partitions()
	for name, err := range map[string]error{"acquire": acquireErr, "partitions": listErr, "flush": s.Flush()} {
		if !errors.Is(err, statestore.ErrClosed) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	must(t, s.Close())
}

func secondOpenRefused(t *testing.T, o Opener) {
	s := open(t, o)
	if _, err := o.Open(); !errors.Is(err, statestore.ErrLocked) {
		t.Fatalf("second open gives %v", err)
	}
	must(t, s.Close())
	open(t, o)
}

func closeKeepsAll(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	big := string(bytes.Repeat([]byte("v"), 1<<20))
	must(t, h.Apply(changes("a", big, "b", "1"), position(1)))
	must(t, acquire(t, s, third).Apply(changes("b", "2"), position(2)))
	must(t, h.Apply(changes("b", ""), position(3)))
	if s.Size() <= 0 {
		t.Errorf("size is %d", s.Size())
	}
	must(t, s.Close())
	s = open(t, o)
	// Another stage, asked for first, must not get the number of one that is there.
	must(t, acquire(t, s, statestore.PartitionID{Stage: "new"}).Apply(changes("n", "n"), position(4)))
	wantRows(t, acquire(t, s, first), 3, "a", big)
	wantRows(t, acquire(t, s, third), 2, "b", "2")
}

func flushSurvives(t *testing.T, o Opener) {
	s := open(t, o)
	h := acquire(t, s, first)
	must(t, h.Apply(changes("a", "1"), position(1)))
	must(t, h.Clear())
	must(t, h.Apply(changes("b", "2"), position(2)))
	must(t, s.Flush())
	must(t, o.Crash())
	wantRows(t, acquire(t, open(t, o), first), 2, "b", "2")
}
