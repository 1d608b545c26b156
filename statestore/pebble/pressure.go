package pebblestore

import (
	"fmt"
	"sync/atomic"

	"github.com/kafka-processor/processor/statestore"
)

const (
	// compactionL0 is the read amplification of level 0 at which it is compacted. Each sublevel costs each lookup another filter, so
	// it is as low as it goes; measured with new keys, the extra compaction costs no more than it saves.
	compactionL0 = 2
	// maxL0 is the read amplification of level 0 at which writers wait for compaction.
	maxL0 = 24
)

// pressure bounds what was applied but not yet flushed, and the overlapping tables of level 0. The database has such bounds too, but a
// writer that waits there is woken only by a flush that succeeds: with a full disk, never.
type pressure struct {
	s         *Store
	quarter   int64        // of a memtable: bytes between two looks
	applied   atomic.Int64 // bytes since the last look that found room; above quarter, every writer looks
	unflushed atomic.Bool  // something was applied since the flush timer's last flush
}

func newPressure(s *Store) *pressure {
	return &pressure{s: s, quarter: s.opts.MemtableBytes / 4}
}

// admit lets bytes more be applied, or waits until there is room. It returns when the store fails or the handle is revoked. Writers
// that come at the same time may pass together, so the bound is passed by a quarter of a memtable and one batch of each.
func (p *pressure) admit(h *handle, bytes int) error {
	if p.applied.Add(int64(bytes)) < p.quarter {
		return nil
	}
	for {
		progress := p.s.progress.wait() // before the look, so that no progress after it is missed
		room, err := p.room()
		if err != nil {
			return err
		}
		if room {
			p.applied.Store(0)
			return nil
		}
		select {
		case <-progress:
		case <-h.revoking:
			return statestore.ErrRevoked
		case <-p.s.failure.failed:
			return p.s.failure.err()
		}
	}
}

// room looks at the database. There are always memtables being flushed, or a level being compacted, when it is false.
func (p *pressure) room() (bool, error) {
	m := p.s.db.Metrics()
	if limit := p.s.opts.MaxDiskBytes; limit > 0 && m.DiskSpaceUsage() > uint64(limit) {
		return false, fmt.Errorf("%w: %d of %d bytes", statestore.ErrFull, m.DiskSpaceUsage(), limit)
	}
	memtables := m.MemTable.Size <= uint64(p.s.opts.MemtableBytes*int64(p.s.opts.MaxMemtables))
	return memtables && m.Levels[0].Sublevels < maxL0, nil
}
