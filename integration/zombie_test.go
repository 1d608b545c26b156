package integration

import (
	"regexp"
	"testing"
	"time"
)

// woken lets a paused worker go on, and waits until its log shows what the broker answered to its attempt to commit under the old
// lease: the term ends with that refusal, and the job stands down or is acquired anew.
func woken(t *testing.T, w *Worker) {
	t.Helper()
	mark := w.Log.Mark()
	must(t, w.Resume())
	refusal, err := w.Await(within(t, time.Minute), mark, func(l Line) bool { return l.Message == "term ended" && refusedCommit.MatchString(l.Text) })
	if err != nil {
		t.Fatalf("%s: no commit was refused: %v", w.Name, err)
	}
	down, err := w.Await(within(t, time.Minute), mark, func(l Line) bool {
		return l.Message == "job stood down" || l.Message == "job acquired"
	})
	if err != nil {
		t.Fatalf("%s did not stand down: %v", w.Name, err)
	}
	t.Logf("refused: %s\nlet go: %s", refusal.Text, down.Text)
}

// patient lets a sleeper's commit wait for the broker's answer after it wakes, instead of running into its own deadline first. (The
// ledger's test has sleepers that sleep past all time-outs.)
var patient = []string{"transaction_timeout: 10s", "transaction_timeout: 60s, ttl: 120s, stall_timeout: 120s"}

// refusedCommit are a transaction coordinator's or a partition leader's answers to a fenced producer.
var refusedCommit = regexp.MustCompile("INVALID_PRODUCER_EPOCH|PRODUCER_FENCED|INVALID_TXN_STATE")

// TestZombieThatWakesCannotCommit (I1): a worker that sleeps in the middle of its work until others have its jobs gets the
// broker's refusal when it wakes, lets go, and what comes out is exact.
func TestZombieThatWakesCannotCommit(t *testing.T) {
	t.Parallel()
	ledger := Ledger{Entries: 60_000, Accounts: 1000, Seed: 4}
	p := newPipeline(t, theKafka(t), "ledger", patient...)
	zombie := p.worker("zombie")
	p.awaitJobs(zombie, 0, 4, time.Minute)
	heir := p.worker("heir")
	p.awaitJobs(heir, 0, 1, time.Minute)
	loaded := make(chan error, 1)
	go func() {
		loaded <- Load(t.Context(), p.server.Brokers, p.source, 0, ledger.Entries, 3000, ledger.Record)
	}()
	awaitOutput(t, p, 5000)
	must(t, zombie.Pause())
	p.awaitJobs(heir, 0, 4, time.Minute)
	woken(t, zombie)
	must(t, <-loaded)
	p.drained(time.Minute)
	p.exact(ledger.History(), DecodeBalance)
	p.stateHolds(ledger.History())
	p.noLag()
}

// awaitOutput waits until the output topic has that many records and markers.
func awaitOutput(t *testing.T, p *pipeline, n int64) {
	t.Helper()
	ctx := within(t, time.Minute)
	must(t, poll(ctx, "outputs of "+p.name, func() (bool, error) {
		end, err := EndOffsets(ctx, p.server.Brokers, p.out)
		return err == nil && end >= n, nil
	}))
}

// TestZombieThatWakesAfterStopCannotCommit (I11): `stop` returns although the only worker sleeps, and after it nothing that the
// sleeper had in hand becomes visible; after `start` everything is there once.
func TestZombieThatWakesAfterStopCannotCommit(t *testing.T) {
	t.Parallel()
	p, ledger := sleeper(t, 5)
	zombie, loaded := p.sleepingWorker(ledger)
	p.command("stop", p.name)
	must(t, <-loaded)
	stopped, err := EndOffsets(within(t, time.Minute), p.server.Brokers, p.out)
	must(t, err)
	woken(t, zombie)
	p.command("status", p.name) // a round trip of the whole control topic: the sleeper has had its chance
	after, err := EndOffsets(within(t, time.Minute), p.server.Brokers, p.out)
	must(t, err)
	if after != stopped {
		t.Errorf("the output topic grew from %d to %d after stop had returned", stopped, after)
	}
	p.startAndFinish(zombie, ledger)
}

// TestStopKilledHalfWayIsFinishedByStart (I11): `stop` dies after it has announced the fencing; `start` finishes it, so that
// the sleeper is fenced, and the pipeline goes on exactly.
func TestStopKilledHalfWayIsFinishedByStart(t *testing.T) {
	t.Parallel()
	p, ledger := sleeper(t, 6)
	zombie, loaded := p.sleepingWorker(ledger)
	ctx := within(t, time.Minute)
	before, err := EndOffsets(ctx, p.server.Brokers, p.name+".control")
	must(t, err)
	stop, err := StartProcess("processor stop", nil, nil, nil, p.binary, "stop", p.name, "--brokers", p.server.Brokers)
	must(t, err)
	t.Cleanup(func() { stop.Kill() })
	admin, closeAdmin, err := Admin(p.server.Brokers)
	must(t, err)
	defer closeAdmin()
	for end := before; end == before; {
		ends, err := admin.ListEndOffsets(ctx, p.name+".control")
		must(t, err)
		end = ends[p.name+".control"][0].Offset
	}
	must(t, stop.Kill())
	must(t, <-loaded)
	t.Logf("stop was killed in state: %.300s", p.command("status", p.name))
	p.command("start", p.name)
	woken(t, zombie)
	p.startAndFinish(zombie, ledger)
}

func sleeper(t *testing.T, seed uint64) (*pipeline, Ledger) {
	t.Helper()
	return newPipeline(t, theKafka(t), "ledger", patient...), Ledger{Entries: 30_000, Accounts: 500, Seed: seed}
}

// sleepingWorker starts a worker and pauses it in the middle of its work; the load goes on meanwhile.
func (p *pipeline) sleepingWorker(ledger Ledger) (*Worker, <-chan error) {
	p.t.Helper()
	zombie := p.worker("zombie")
	p.awaitJobs(zombie, 0, 4, time.Minute)
	loaded := make(chan error, 1)
	go func() {
		loaded <- Load(p.t.Context(), p.server.Brokers, p.source, 0, ledger.Entries, 5000, ledger.Record)
	}()
	awaitOutput(p.t, p, 5000)
	must(p.t, zombie.Pause())
	return zombie, loaded
}

// startAndFinish brings a stopped pipeline back, with the worker restarted if it has exited, and checks everything.
func (p *pipeline) startAndFinish(w *Worker, ledger Ledger) {
	p.t.Helper()
	p.command("start", p.name)
	if !w.Running() {
		must(p.t, w.Start())
	}
	p.drained(90 * time.Second)
	p.exact(ledger.History(), DecodeBalance)
	p.stateHolds(ledger.History())
	p.noLag()
}
