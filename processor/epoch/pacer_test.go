package epoch

import (
	"sync"
	"testing"
	"time"
)

// steady returns a pacer that has learned that commits take d.
func steady(pace float64, d time.Duration) *Pacer {
	p := NewPacer(pace)
	for range 200 {
		p.Took(d)
	}
	return p
}

func TestPacerSpacesTransactionsByWhatCommitsTake(t *testing.T) {
	t.Parallel()
	p := steady(1, 10*time.Millisecond)
	if got := p.Reserve(1_000); got != 1_000 {
		t.Fatalf("nothing began, and yet the slot is at %d", got)
	}
	got := p.Reserve(1_000)
	if want := int64(1_000 + 5*time.Millisecond); got < want-1000 || got > want {
		t.Errorf("second slot at %d, want about %d: two commits at a time", got, want)
	}
	if late := p.Reserve(int64(time.Second)); late != int64(time.Second) {
		t.Errorf("slot at %d: a budget that was not used does not delay", late)
	}
}

func TestPacerGivesSlotsInTheOrderOfAsking(t *testing.T) {
	t.Parallel()
	p := steady(1, 8*time.Millisecond)
	last := int64(0)
	for job := range 16 {
		slot := p.Reserve(5)
		if slot <= last {
			t.Fatalf("job %d got slot %d, not behind %d", job, slot, last)
		}
		last = slot
	}
}

func TestPacerForgetsOutliers(t *testing.T) {
	t.Parallel()
	p := steady(1, 4*time.Millisecond)
	p.Took(10 * time.Second)
	p.Reserve(1)
	if got := time.Duration(p.Reserve(1)); got > 5*time.Millisecond {
		t.Errorf("one commit of 10s spaces the next ones by %v", got)
	}
}

func TestPacerOffNeverDelays(t *testing.T) {
	t.Parallel()
	p := steady(0, 20*time.Millisecond)
	for range 3 {
		if got := p.Reserve(77); got != 77 {
			t.Errorf("slot at %d", got)
		}
	}
}

func TestPacerIsSharedByJobs(t *testing.T) {
	t.Parallel()
	p := steady(1, time.Millisecond)
	slots := make([][]int64, 4)
	var wg sync.WaitGroup
	for i := range slots {
		wg.Go(func() {
			for range 100 {
				slots[i] = append(slots[i], p.Reserve(1))
			}
		})
	}
	wg.Wait()
	seen := map[int64]bool{}
	for _, s := range slots {
		for _, at := range s {
			if seen[at] {
				t.Fatalf("slot %d was given out twice", at)
			}
			seen[at] = true
		}
	}
}
