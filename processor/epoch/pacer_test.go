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
	p := steady(0.5, 10*time.Millisecond)
	if got := p.Allowed(); got != 0 {
		t.Fatalf("nothing began, and yet not before %d", got)
	}
	p.Began(1_000)
	got := p.Allowed()
	if want := int64(1_000 + 5*time.Millisecond); got < want-1000 || got > want {
		t.Errorf("allowed at %d, want about %d", got, want)
	}
	// Another job begins although it was not allowed, as one that is about to end may: the budget never goes back.
	p.Began(500)
	if again := p.Allowed(); again < got {
		t.Errorf("allowed at %d, earlier than %d before", again, got)
	}
}

func TestPacerForgetsOutliers(t *testing.T) {
	t.Parallel()
	p := steady(1, 4*time.Millisecond)
	p.Took(10 * time.Second)
	p.Began(0)
	if got := time.Duration(p.Allowed()); got > 10*time.Millisecond {
		t.Errorf("one commit of 10s spaces the next ones by %v", got)
	}
	for range 40 {
		p.Took(4 * time.Millisecond)
	}
	p.Began(int64(time.Second))
	if got := time.Duration(p.Allowed()) - time.Second; got > 5*time.Millisecond {
		t.Errorf("still spaced by %v", got)
	}
}

func TestPacerOffNeverDelays(t *testing.T) {
	t.Parallel()
	p := steady(0, 20*time.Millisecond)
	p.Began(77)
	if got := p.Allowed(); got > 77 {
		t.Errorf("allowed at %d only", got)
	}
}

func TestPacerIsSharedByJobs(t *testing.T) {
	t.Parallel()
	p := steady(1, time.Millisecond)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 100 {
				p.Took(time.Millisecond)
				p.Began(int64(n * i))
				p.Allowed()
			}
		})
	}
	wg.Wait()
	if got := p.Allowed(); got < int64(900*time.Microsecond) {
		t.Errorf("allowed at %d", got)
	}
}
