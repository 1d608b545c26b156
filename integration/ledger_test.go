package integration

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestLedgerExactUnderKillAndPause (I1, I2, I4, I5): while entries arrive, one worker is killed every five seconds and started
// again, another is stopped for longer than session and transaction time-outs and woken, and the third is left in peace.
// Nothing may be missing, doubled or different in the end.
func TestLedgerExactUnderKillAndPause(t *testing.T) {
	t.Parallel()
	entries := number(t, "SOAK_ENTRIES", number(t, "LEDGER_ENTRIES", 200_000))
	rate := number(t, "LEDGER_RATE", 6000)
	if seconds := number(t, "SOAK_SECONDS", entries/rate+1); os.Getenv("SOAK_SECONDS") != "" {
		rate = max(entries/seconds, 1)
	}
	ledger := Ledger{Entries: entries, Accounts: 10_000, Seed: 1}
	p := newPipeline(t, theKafka(t), "ledger")
	killed, paused, calm := p.worker("killed"), p.worker("paused"), p.worker("calm")
	p.awaitJobs(calm, 0, 1, time.Minute)

	ctx, stop := context.WithCancel(t.Context())
	faults := make(chan error, 2)
	go func() { faults <- killRepeatedly(ctx, killed, 5*time.Second) }()
	go func() { faults <- pauseRepeatedly(ctx, paused, 3*time.Second, 22*time.Second) }()
	loaded := Load(t.Context(), p.server.Brokers, p.source, 0, entries, rate, ledger.Record)
	stop()
	must(t, errors.Join(loaded, <-faults, <-faults))

	p.drained(2 * time.Minute)
	history := ledger.History()
	p.exact(history, DecodeBalance)
	p.stateHolds(history)
	p.noLag()
}

// killRepeatedly ends a worker with SIGKILL and starts it again, until the context ends. The worker runs when it returns.
func killRepeatedly(ctx context.Context, w *Worker, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := w.Kill(); err != nil {
			return err
		}
		if err := w.Start(); err != nil {
			return err
		}
	}
}

// pauseRepeatedly lets a worker run for a while and stops it for a while, until the context ends. The worker runs when it
// returns. A worker that ended by itself, as a fenced one does, is started again.
func pauseRepeatedly(ctx context.Context, w *Worker, running, paused time.Duration) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-w.Done():
			if err := w.Start(); err != nil {
				return err
			}
			continue
		case <-time.After(running):
		}
		if err := w.Pause(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(paused):
		}
		if err := w.Resume(); err != nil {
			return err
		}
	}
	return nil
}

// TestTransactionProtocolOne: the ledger is exact on a Kafka with the transaction protocol before KIP-890's second part, where
// partitions and offsets have to be announced.
func TestTransactionProtocolOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skipped by -short: needs a real Kafka")
	}
	script, err := KafkaScript(shared.root)
	needKafka(t, err)
	server, err := StartKafka(within(t, 2*time.Minute), script, KafkaOptions{TransactionVersion: 1})
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	ledger := Ledger{Entries: 40_000, Accounts: 1000, Seed: 2}
	p := newPipeline(t, server, "ledger")
	first, second := p.worker("first"), p.worker("second")
	p.awaitJobs(second, 0, 1, time.Minute)
	p.load(0, 20_000, 8000, ledger.Record)
	must(t, first.Kill())
	must(t, first.Start())
	p.load(20_000, ledger.Entries, 8000, ledger.Record)
	p.drained(time.Minute)
	p.exact(ledger.History(), DecodeBalance)
	p.stateHolds(ledger.History())
	p.noLag()
}

// TestGroupLagToolsShowEveryStage: what an operator's own tools say about the group is what is there to do, for source and
// internal stream alike.
func TestGroupLagToolsShowEveryStage(t *testing.T) {
	t.Parallel()
	ledger := Ledger{Entries: 3000, Accounts: 100, Seed: 3}
	p := newPipeline(t, theKafka(t), "ledger")
	w := p.worker("only")
	p.load(0, 2000, 0, ledger.Record)
	p.drained(time.Minute)
	p.noLag()
	must(t, w.Kill())
	p.load(2000, ledger.Entries, 0, ledger.Record)
	rows, err := DescribeGroup(within(t, time.Minute), p.server, p.name)
	needKafka(t, err)
	if lag, err := TopicLag(rows, p.source, sourcePartitions); err != nil || lag != 1000 {
		t.Fatalf("lag %d of the source while nobody works, %v, want 1000", lag, err)
	}
	must(t, w.Start())
	p.drained(time.Minute)
	p.noLag()
	p.exact(ledger.History(), DecodeBalance)
}
