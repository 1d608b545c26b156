package joblog

import (
	"errors"
	"fmt"
)

// ErrOrder is wrapped by the error of a record that cannot follow the ones before it: nobody who held the lease can have
// written it.
var ErrOrder = errors.New("job log out of order")

// Fold is the complete view of a job log up to some record. The zero value is empty.
//
// Laws: terms never fall, nor do generations, nor, compared as (term, number), epochs; a term begins with an acquired record;
// what is not complete follows a complete record of its own term.
type Fold struct {
	view  Record
	ready bool
}

// Ready says whether a complete record was seen.
func (f *Fold) Ready() bool { return f.ready }

// View is the complete view, valid until the next Apply; its Kind is that of the last record. It must not be changed, and is
// empty unless Ready.
func (f *Fold) View() *Record { return &f.view }

// Apply takes the next record of the log, and its lists with it. What is not complete before the first complete record is passed over: it belongs to
// what was not read.
func (f *Fold) Apply(r Record) error {
	if !f.ready {
		if r.Complete {
			f.view, f.ready = r, true
		}
		return nil
	}
	if err := f.follows(&r); err != nil {
		return fmt.Errorf("%w: %s of job %d, term %d, generation %d, epoch (%d,%d): %w", ErrOrder, r.Kind, r.Job, r.Term, r.Generation,
			r.EpochTerm, r.EpochNumber, err)
	}
	if r.Complete {
		f.view = r
		return nil
	}
	v := &f.view
	v.Offsets = merge(v.Offsets, r.Offsets, func(a, b *Offset) bool {
		return a.Partition == b.Partition && a.Stage == b.Stage && a.Topic == b.Topic
	})
	v.Watermarks = merge(v.Watermarks, r.Watermarks, func(a, b *Watermark) bool {
		return a.Partition == b.Partition && a.Stage == b.Stage
	})
	v.Ends = merge(v.Ends, r.Ends, func(a, b *End) bool { return a.Partition == b.Partition && a.Topic == b.Topic })
	v.Kind, v.Generation, v.Term, v.At = r.Kind, r.Generation, r.Term, r.At
	v.EpochTerm, v.EpochNumber = r.EpochTerm, r.EpochNumber
	v.Troubles, v.Stats = r.Troubles, r.Stats
	if r.Worker != "" {
		v.Worker = r.Worker
	}
	return nil
}

// follows checks the laws.
func (f *Fold) follows(r *Record) error {
	v := &f.view
	switch {
	case r.Job != v.Job:
		return fmt.Errorf("in the log of job %d", v.Job)
	case r.Generation < v.Generation:
		return fmt.Errorf("after generation %d", v.Generation)
	case r.Kind == Acquired && r.Term <= v.Term, r.Term < v.Term:
		return fmt.Errorf("after term %d", v.Term)
	case r.Kind != Acquired && r.Term != v.Term:
		return fmt.Errorf("term %d was not acquired", r.Term)
	case v.Kind == Fence && r.Kind != Acquired && r.Kind != Fence:
		return errors.New("after a fence")
	case r.EpochTerm < v.EpochTerm || r.EpochTerm == v.EpochTerm && r.EpochNumber < v.EpochNumber:
		return fmt.Errorf("after epoch (%d,%d)", v.EpochTerm, v.EpochNumber)
	case r.Kind == Epoch && (r.EpochTerm != r.Term || r.EpochTerm == v.EpochTerm && r.EpochNumber == v.EpochNumber):
		return fmt.Errorf("epoch after (%d,%d) in term %d", v.EpochTerm, v.EpochNumber, v.Term)
	case r.Kind != Epoch && (r.EpochTerm != v.EpochTerm || r.EpochNumber != v.EpochNumber):
		return fmt.Errorf("not an epoch, after epoch (%d,%d)", v.EpochTerm, v.EpochNumber)
	}
	return nil
}

// merge replaces the entries of old which have the key of a new one, in place, and appends the rest. Deltas are short and name
// entries in the order of the complete record, so that the search goes on from where the last one ended.
func merge[T any](old, changed []T, same func(a, b *T) bool) []T {
	at, n := 0, len(old)
	for i := range changed {
		found := false
		for range n {
			if same(&old[at], &changed[i]) {
				found = true
				break
			}
			at = (at + 1) % n
		}
		if found {
			old[at] = changed[i]
			continue
		}
		old = append(old, changed[i])
	}
	return old
}

// Fence returns the fence record that a command commits behind this view: all of it, under a newer generation. An empty view
// (a log without records) gives one of term 0. Its lists are the view's.
func (f *Fold) Fence(job, jobs int32, generation uint64, by string, at int64) Record {
	r := f.view
	r.Kind, r.Complete = Fence, true
	r.Job, r.Generation, r.Worker, r.At = job, generation, by, at
	if r.Jobs == 0 {
		r.Jobs = jobs
	}
	return r
}
