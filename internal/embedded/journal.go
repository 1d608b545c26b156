package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// intent is a transaction whose commit has begun: enough to finish it after a kill.
type intent struct {
	Producer int64          `json:"producer"`
	Epoch    int16          `json:"epoch"`
	Offsets  []groupOffsets `json:"offsets,omitempty"`
}

type groupOffsets struct {
	Group   string         `json:"group"`
	Offsets []offsetCommit `json:"offsets"`
}

type offsetCommit struct {
	Topic       string  `json:"topic"`
	Partition   int32   `json:"partition"`
	Offset      int64   `json:"offset"`
	LeaderEpoch int32   `json:"leader_epoch"`
	Metadata    *string `json:"metadata,omitempty"`
}

// journal makes EndTxn atomic over a kill. The broker writes a transaction's markers partition by partition and its offsets last; a
// kill in between would leave half of it. So the transaction is written down before its EndTxn is handled. Requests are handled
// one at a time, so at most the last one written can be half done, and the file holds only that.
//
// Form: length and CRC-32C of a JSON document, little-endian, then the document. A torn record belongs to a commit that had not begun.
type journal struct {
	f       *os.File
	pending map[int64]*pending // by producer id, bounded by their number
}

// pending are the offsets handed over in a producer's open transaction.
type pending struct {
	epoch    int16
	requests []*kmsg.TxnOffsetCommitRequest
}

func openJournal(dir string, c *kfake.Cluster) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, "commit.journal"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("commit journal: %w", err)
	}
	j := &journal{f: f, pending: map[int64]*pending{}}
	c.ControlKey(int16(kmsg.TxnOffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		j.offsets(r.(*kmsg.TxnOffsetCommitRequest))
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		// An error closes the connection: the client learns that the outcome is unknown, and nothing was begun.
		err := j.end(r.(*kmsg.EndTxnRequest))
		return nil, err, err != nil
	})
	return j, nil
}

// offsets keeps the request itself: where it names topics by id, the broker fills in their names while handling it.
func (j *journal) offsets(r *kmsg.TxnOffsetCommitRequest) {
	p := j.pending[r.ProducerID]
	if p == nil || p.epoch != r.ProducerEpoch {
		p = &pending{epoch: r.ProducerEpoch}
		j.pending[r.ProducerID] = p
	}
	p.requests = append(p.requests, r)
}

func (j *journal) end(r *kmsg.EndTxnRequest) error {
	in := intent{Producer: r.ProducerID, Epoch: r.ProducerEpoch}
	if p := j.pending[r.ProducerID]; p != nil && p.epoch == r.ProducerEpoch {
		for _, req := range p.requests {
			in.Offsets = append(in.Offsets, offsetsOf(req))
		}
		delete(j.pending, r.ProducerID)
	}
	if !r.Commit {
		return nil
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if _, err := j.f.WriteAt(frame(b), 0); err != nil {
		return fmt.Errorf("commit journal: %w", err)
	}
	return nil
}

func offsetsOf(r *kmsg.TxnOffsetCommitRequest) groupOffsets {
	g := groupOffsets{Group: r.Group}
	for _, t := range r.Topics {
		for _, o := range t.Partitions {
			g.Offsets = append(g.Offsets, offsetCommit{t.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata})
		}
	}
	return g
}

// Close empties the journal: after a clean end nothing is half done.
func (j *journal) Close() error { return errors.Join(j.f.Truncate(0), j.f.Close()) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func frame(doc []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(doc)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(doc, castagnoli))
	return append(b, doc...)
}

// readJournal returns the last commit that began, or nil.
func readJournal(dir string) (*intent, error) {
	b, err := os.ReadFile(filepath.Join(dir, "commit.journal"))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(b) < 8 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > len(b)-8 || crc32.Checksum(b[8:8+n], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return nil, nil
	}
	var p intent
	if err := json.Unmarshal(b[8:8+n], &p); err != nil {
		return nil, fmt.Errorf("commit journal: %w", err)
	}
	return &p, nil
}
