package joblog

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// replace is the plain way to what merge does.
func replace[T any](list []T, item T, partition func(*T) int32) []T {
	for i := range list {
		if partition(&list[i]) == partition(&item) {
			list[i] = item
			return list
		}
	}
	return append(list, item)
}

// A fold that starts anywhere in the log shows, once it is ready, what one from the beginning shows; and that is what the
// writer knew.
func TestFoldFromAnywhereShowsTheSame(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	truth := Record{Kind: Acquired, Complete: true, Generation: 1, Term: 1, Worker: "w1", Jobs: 2}
	log := [][]byte{Encode(&truth)}
	for range 200 {
		next := Record{Kind: Kind(2 + r.IntN(2)), Complete: r.IntN(6) == 0, Generation: truth.Generation, Term: truth.Term,
			EpochTerm: truth.EpochTerm, EpochNumber: truth.EpochNumber, Jobs: 2, At: truth.At + 1}
		switch {
		case r.IntN(20) == 0:
			next.Kind, next.Complete, next.Term, next.Worker = Acquired, true, truth.Term+1, "w2"
		case next.Kind == Epoch:
			next.EpochTerm, next.EpochNumber = next.Term, truth.EpochNumber+1
			for range r.IntN(4) {
				o := Offset{Stage: "s", Topic: "t", Partition: r.Int32N(6), Offset: r.Int64N(100)}
				next.Offsets = append(next.Offsets, o)
				truth.Offsets = replace(truth.Offsets, o, func(x *Offset) int32 { return x.Partition })
				e := End{Topic: "t", Partition: r.Int32N(6), Offset: r.Int64N(100)}
				next.Ends = append(next.Ends, e)
				truth.Ends = replace(truth.Ends, e, func(x *End) int32 { return x.Partition })
				w := Watermark{Stage: "s", Partition: r.Int32N(3), Event: r.Int64N(100)}
				next.Watermarks = append(next.Watermarks, w)
				truth.Watermarks = replace(truth.Watermarks, w, func(x *Watermark) int32 { return x.Partition })
			}
			next.Stats = []Stats{{Stage: "s", In: next.EpochNumber}}
		}
		offsets, ends, marks, worker := truth.Offsets, truth.Ends, truth.Watermarks, truth.Worker
		truth = next
		truth.Complete = true
		truth.Offsets, truth.Ends, truth.Watermarks = offsets, ends, marks
		if next.Worker == "" {
			truth.Worker = worker
		}
		if next.Complete {
			next = truth
		}
		log = append(log, Encode(&next))
		truth, _ = Decode(Encode(&truth)) // its lists are nobody else's
	}
	for from := range log {
		var f Fold
		complete := false
		for _, b := range log[from:] {
			rec, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Apply(rec); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			complete = complete || rec.Complete
			if f.Ready() != complete {
				t.Fatalf("seed %d: ready %v", seed, f.Ready())
			}
		}
		if f.Ready() && !reflect.DeepEqual(*f.View(), truth) {
			t.Fatalf("seed %d, from %d:\n got %+v\nwant %+v", seed, from, *f.View(), truth)
		}
	}
}

func TestFoldRefusesWhatNoHolderCanHaveWritten(t *testing.T) {
	t.Parallel()
	base := Record{Kind: Epoch, Complete: true, Generation: 3, Term: 5, EpochTerm: 5, EpochNumber: 9, Job: 1}
	fence := base
	fence.Kind, fence.Generation = Fence, 4
	for _, c := range []struct {
		name   string
		before Record
		change func(*Record)
		ok     bool
	}{
		{"next epoch", base, func(r *Record) { r.EpochNumber = 10 }, true},
		{"same epoch again", base, func(*Record) {}, false},
		{"earlier epoch", base, func(r *Record) { r.EpochNumber = 8 }, false},
		{"epoch of another term", base, func(r *Record) { r.EpochTerm, r.EpochNumber = 4, 10 }, false},
		{"probe", base, func(r *Record) { r.Kind = Probe }, true},
		{"probe with another epoch", base, func(r *Record) { r.Kind, r.EpochNumber = Probe, 10 }, false},
		{"older generation", base, func(r *Record) { r.EpochNumber, r.Generation = 10, 2 }, false},
		{"older term", base, func(r *Record) { r.Kind, r.Term = Probe, 4 }, false},
		{"term that was not acquired", base, func(r *Record) { r.Kind, r.Term = Probe, 6 }, false},
		{"acquired", base, func(r *Record) { r.Kind, r.Term = Acquired, 6 }, true},
		{"acquired twice", base, func(r *Record) { r.Kind = Acquired }, false},
		{"another job's", base, func(r *Record) { r.EpochNumber, r.Job = 10, 2 }, false},
		{"fence", base, func(r *Record) { r.Kind, r.Generation = Fence, 4 }, true},
		{"second fence", fence, func(*Record) {}, true},
		{"epoch after a fence", fence, func(r *Record) { r.Kind, r.EpochNumber = Epoch, 10 }, false},
		{"probe after a fence", fence, func(r *Record) { r.Kind = Probe }, false},
		{"acquired after a fence", fence, func(r *Record) { r.Kind, r.Term = Acquired, 6 }, true},
	} {
		var f Fold
		if err := f.Apply(c.before); err != nil {
			t.Fatal(err)
		}
		r := c.before
		c.change(&r)
		if err := f.Apply(r); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrOrder) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestFenceRepeatsTheView(t *testing.T) {
	t.Parallel()
	var f Fold
	r := f.Fence(3, 8, 2, "stop", 99)
	if want := (Record{Kind: Fence, Complete: true, Generation: 2, Job: 3, Jobs: 8, Worker: "stop", At: 99}); !reflect.DeepEqual(r, want) {
		t.Errorf("fence of an empty log %+v", r)
	}
	before := sample()
	if err := f.Apply(before); err != nil {
		t.Fatal(err)
	}
	r = f.Fence(before.Job, 8, 9, "stop", 99)
	if err := f.Apply(r); err != nil {
		t.Error(err)
	}
	r.Kind, r.Generation, r.Worker, r.At = before.Kind, before.Generation, before.Worker, before.At
	if !reflect.DeepEqual(r, before) {
		t.Errorf("fence changes more than it should: %+v", r)
	}
}
