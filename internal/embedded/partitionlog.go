package embedded

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	batchHead  = 61 // bytes of a record batch before its records (message format v2)
	indexEntry = 15 // bytes of one entry of the broker's index

	attrTransactional = 1 << 4
	attrControl       = 1 << 5
)

// partitionLog is what a scan of one partition's segments found.
type partitionLog struct {
	dir       string
	segment   string          // path of the last segment, without its extension; empty: there is none
	next      int64           // offset behind the last batch
	leader    uint32          // leader epoch of the last batch
	open      map[int64]int16 // producers with a transaction that has no marker, with its producer epoch
	committed map[int64]int16 // epoch of each producer's last commit marker
}

// scan reads the heads of all batches of a partition, cuts off a torn last batch and completes the index.
func scan(dir string) (*partitionLog, error) {
	l := &partitionLog{dir: dir, open: map[int64]int16{}, committed: map[int64]int16{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.dat"))
	if err != nil {
		return nil, err
	}
	type segment struct {
		base int64
		path string
	}
	var segments []segment
	for _, p := range paths {
		stem := strings.TrimSuffix(p, ".dat")
		base, err := strconv.ParseInt(filepath.Base(stem), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("segment name %s: %w", p, err)
		}
		segments = append(segments, segment{base, stem})
	}
	slices.SortFunc(segments, func(a, b segment) int { return cmp.Compare(a.base, b.base) })
	for _, s := range segments {
		l.segment, l.next = s.path, max(l.next, s.base)
		if err := l.scanSegment(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// holds tells whether the transaction wrote to this partition: its records are without marker, or its commit marker is the last one.
func (l *partitionLog) holds(in *intent) bool {
	open, isOpen := l.open[in.Producer]
	done, isDone := l.committed[in.Producer]
	return isOpen && open == in.Epoch || isDone && done == in.Epoch
}

func (l *partitionLog) scanSegment() error {
	f, err := os.Open(l.segment + ".dat")
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	known, err := os.ReadFile(l.segment + ".idx")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r := bufio.NewReaderSize(f, 1<<20)
	var pos int64
	var index []byte
	head := make([]byte, batchHead)
	for pos+batchHead <= info.Size() {
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		size := 12 + int64(int32(binary.BigEndian.Uint32(head[8:])))
		if size < batchHead || pos+size > info.Size() {
			break
		}
		body := make([]byte, 0)
		if rest := int(size - batchHead); binary.BigEndian.Uint16(head[21:])&attrControl != 0 {
			body = make([]byte, rest)
			_, err = io.ReadFull(r, body)
		} else {
			_, err = r.Discard(rest)
		}
		if err != nil {
			return err
		}
		// A rewritten (compacted) segment has lost its markers; there only the index tells that a batch is no part of an open one.
		finished := len(index)+indexEntry <= len(known) && known[len(index)+indexEntry-1]&1 == 0
		index = append(index, l.batch(head, body, finished)...)
		pos += size
	}
	if pos < info.Size() {
		if err := os.Truncate(l.segment+".dat", pos); err != nil {
			return err
		}
	}
	return l.completeIndex(index)
}

// batch takes one batch into account and returns its index entry.
func (l *partitionLog) batch(head, body []byte, finished bool) []byte {
	attr := binary.BigEndian.Uint16(head[21:])
	pid := int64(binary.BigEndian.Uint64(head[43:]))
	epoch := int16(binary.BigEndian.Uint16(head[51:]))
	l.leader = binary.BigEndian.Uint32(head[12:])
	l.next = int64(binary.BigEndian.Uint64(head)) + int64(int32(binary.BigEndian.Uint32(head[23:]))) + 1
	data := attr&attrTransactional != 0 && attr&attrControl == 0
	switch {
	case data && !finished:
		l.open[pid] = epoch
	case attr&attrControl != 0:
		delete(l.open, pid)
		var rec kmsg.Record
		if err := rec.ReadFrom(body); err == nil && len(rec.Key) >= 4 && binary.BigEndian.Uint16(rec.Key[2:]) == uint16(kmsg.ControlRecordKeyTypeCommit) {
			l.committed[pid] = epoch
		}
	}
	return encodeIndex(l.leader, binary.BigEndian.Uint64(head[35:]), data)
}

// encodeIndex is the broker's index entry: version, checksum, leader epoch, largest timestamp, flag "in a transaction".
func encodeIndex(leader uint32, timestamp uint64, transactional bool) []byte {
	b := make([]byte, indexEntry)
	b[0] = frameVersion
	binary.LittleEndian.PutUint32(b[2:], leader)
	binary.LittleEndian.PutUint64(b[6:], timestamp)
	if transactional {
		b[14] = 1
	}
	b[1] = byte(crc32.Checksum(b[2:], castagnoli))
	return b
}

// completeIndex appends the entries that a kill kept from being written. Entries that are there stay: the broker clears the
// transaction flag when it rewrites a segment.
func (l *partitionLog) completeIndex(want []byte) error {
	path := l.segment + ".idx"
	info, err := os.Stat(path)
	have := int64(0)
	switch {
	case err == nil:
		have = info.Size() / indexEntry * indexEntry
		if have != info.Size() || have > int64(len(want)) {
			have = min(have, int64(len(want)))
			if err := os.Truncate(path, have); err != nil {
				return err
			}
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if have == int64(len(want)) {
		return nil
	}
	return appendFile(path, want[have:])
}

// mark appends a commit or abort marker.
func (l *partitionLog) mark(pid int64, epoch int16, commit bool) error {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	if commit {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	marker := kmsg.EndTxnMarker{}
	rec := kmsg.Record{Key: key.AppendTo(nil), Value: marker.AppendTo(nil)}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1) // the length itself is one byte
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		FirstOffset: l.next, PartitionLeaderEpoch: int32(l.leader), Magic: 2, Attributes: attrControl | attrTransactional,
		FirstTimestamp: now, MaxTimestamp: now, ProducerID: pid, ProducerEpoch: epoch, FirstSequence: -1,
		NumRecords: 1, Records: rec.AppendTo(nil),
	}
	enc := b.AppendTo(nil)
	b.Length = int32(len(enc) - 12)
	b.CRC = int32(crc32.Checksum(enc[21:], castagnoli))
	if err := appendFile(l.segment+".dat", b.AppendTo(nil)); err != nil {
		return err
	}
	l.next++
	return appendFile(l.segment+".idx", encodeIndex(l.leader, uint64(now), false))
}
