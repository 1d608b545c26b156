package integration

import (
	"os"
	"testing"
	"time"
)

// TestRestartReplaysOnlyTheTail (I3): after kill -9 a worker with its data folder replays only what the store had not yet
// written down, and one without it everything; the state is right both times.
func TestRestartReplaysOnlyTheTail(t *testing.T) {
	t.Parallel()
	keys := number(t, "RESTART_KEYS", 200_000)
	tail := keys / 100
	// Every key once, and a tail before the first kill and after each restart.
	events := Events{Records: keys + 3*tail, Users: keys, Sequential: true}
	p := newPipeline(t, theKafka(t), "peer-count")
	w := p.worker("only")
	p.load(0, keys, 0, events.Record)
	p.drained(3 * time.Minute)
	// Work goes on while the store's timers write down what it holds.
	p.load(keys, keys+tail, max(tail/12, 1), events.Record)
	p.drained(time.Minute)
	written, err := EndOffsets(within(t, time.Minute), p.server.Brokers, p.state)
	must(t, err)

	replayed, seconds := p.restart(w, events, keys+tail, keys+2*tail)
	t.Logf("with its data: %.0f of %d changelog records replayed in %.2f s", replayed, written, seconds)
	if replayed*10 >= float64(written) {
		t.Errorf("replayed %.0f of %d changelog records although the data was there", replayed, written)
	}
	must(t, w.Kill())
	must(t, os.RemoveAll(w.options.Data))
	replayed, seconds = p.restart(w, events, keys+2*tail, keys+3*tail)
	t.Logf("without its data: %.0f changelog records replayed in %.2f s", replayed, seconds)
	if replayed < float64(keys) {
		t.Errorf("replayed %.0f changelog records, fewer than there are keys", replayed)
	}
	history := events.History(events.Records, Same)
	p.exact(history, DecodeTotal)
	p.stateHolds(history)
	p.noLag()
}

// restart kills the worker, starts it, waits for its jobs, and has it process more. It returns how many changelog records were
// replayed by all jobs and the longest time that one took.
func (p *pipeline) restart(w *Worker, events Events, from, to int) (replayed, seconds float64) {
	p.t.Helper()
	must(p.t, w.Kill())
	mark := w.Log.Mark()
	must(p.t, w.Start())
	p.awaitJobs(w, mark, 4, time.Minute)
	p.load(from, to, 0, events.Record)
	p.drained(2 * time.Minute)
	restored := w.Log.Find(mark, func(l Line) bool { return l.Message == "job restored" })
	if len(restored) == 0 {
		p.t.Fatalf("no log line says what was restored: %s", w.Log.Tail(20))
	}
	for _, line := range restored {
		if line.Number("replayed") < 0 || line.Number("seconds") < 0 {
			p.t.Fatalf("log line without replayed or seconds: %s", line.Text)
		}
		replayed += line.Number("replayed")
		seconds = max(seconds, line.Number("seconds"))
	}
	return replayed, seconds
}
