package processor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kafka-processor/processor/internal/kafka"
	"github.com/kafka-processor/processor/processor/message"
)

// A hole is a swift record whose predecessor has not been seen. As a rule its sender's attempt has failed, and the replay follows
// later in the log. It cannot heal any more once the sender has committed a source offset behind the missing record (all outputs of
// that prefix were acknowledged, so they lie before the log's present end) and the reader has passed that end.

// holePatience is how long a hole may stay before it is looked into.
const holePatience = 10 * time.Second

type hole struct {
	feed      *feed
	since     time.Time
	origin    message.ID // the missing predecessor
	offset    int64      // of the record that names it
	asked     time.Time
	end       atomic.Int64 // log end as of the proof; 0: no proof yet
	committed atomic.Int64 // the sender's source offset
}

// gap notes a record that was dropped because its predecessor is missing.
func (p *part) gap(f *feed, e *message.Envelope, offset int64) {
	if p.hole != nil {
		return
	}
	missing := e.ID
	missing.Offset, missing.Ordinal = e.PrevOffset, e.PrevOrdinal
	p.hole = &hole{feed: f, since: time.Now(), origin: missing, offset: offset}
	p.stage.term.job.log.Warn("gap: the predecessor of a record is missing; waiting for the replay", "stage", p.stage.plan.Name, "topic", f.tp.Topic, "partition", f.tp.Partition,
		"offset", offset, "origin_partition", missing.Partition, "origin_offset", missing.Offset)
}

// heal forgets the hole when the missing record, or one behind it, has come.
func (p *part) heal(id message.ID) {
	if h := p.hole; h != nil && id.Fingerprint == h.origin.Fingerprint && id.Partition == h.origin.Partition && id.Offset >= h.origin.Offset {
		p.hole = nil
	}
}

// look asks for the proof that a hole cannot heal, and parks the partition for good once there is one.
func (p *part) look(clock time.Time) {
	h := p.hole
	f := h.feed
	if end := h.end.Load(); end > 0 && f.position >= end {
		p.parked = &parked{attempts: 1, since: h.since, until: clock.Add(100 * 365 * 24 * time.Hour), topic: f.tp.Topic, offset: h.offset, final: true,
			cause: fmt.Sprintf("messages are missing: the record at offset %d follows origin partition %d offset %d, which is not in the log, although the sender has committed offset %d of its source", h.offset, h.origin.Partition, h.origin.Offset, h.committed.Load())}
		p.stage.term.troubled.Store(true)
		p.stage.term.job.log.Error("hole in a swift stream", "stage", p.stage.plan.Name, "partition", p.number, "cause", p.parked.cause)
		return
	}
	if clock.Sub(h.since) < holePatience || clock.Sub(h.asked) < holePatience {
		return
	}
	h.asked = clock
	go p.stage.term.job.worker.prove(h, f)
}

// prove reads the sender's committed source offset and then the end of the log that it writes.
func (w *Worker) prove(h *hole, f *feed) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, in := range f.input.Upstream.Inputs {
		if in.Internal() || sourceFingerprint(w.incarnation, f.input.Upstream, in, w.topology.Topics[in.Topic].ID) != h.origin.Fingerprint {
			continue
		}
		offsets, err := w.cluster.CommittedNow(ctx, in.Group)
		if err != nil {
			return
		}
		at := offsets[kafka.TP{Topic: in.Topic, Partition: int32(h.origin.Partition)}]
		if uint64(at) <= h.origin.Offset {
			return
		}
		if end, err := w.cluster.End(ctx, f.tp, true); err == nil {
			h.committed.Store(at)
			h.end.Store(end)
		}
		return
	}
}
