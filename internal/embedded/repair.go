package embedded

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"
)

// What a kill leaves behind, and why the broker's own recovery is not enough:
//
//   - Transactions that were open. The broker remembers them as aborted, but in memory only, and goes on under the same producer id
//     (it is a hash of the transactional id). The producer's next commit marker then covers the old records too: readers see
//     them after the next kill, and until then may drop new ones with the old.
//   - A transaction whose markers reached some partitions only, or whose offsets are missing.
//   - What an earlier clean end saved of sequence numbers and open transactions, which the log has left behind since.
//   - A batch without its index entry: it counts as not transactional, and all later entries are off by one.
//
// So before the broker loads, every unfinished transaction gets its marker on disk: commit if the journal shows that its commit had
// begun, else abort. The producer's epoch is raised, so that a client that survived the broker cannot go on in the middle.
// Doing it twice changes nothing, so a kill during the repair is repaired by the next one.

// pidEntry is one line of the broker's log of producer ids.
type pidEntry struct {
	Type    string `json:"type"`
	PID     int64  `json:"pid"`
	Epoch   int16  `json:"epoch"`
	TxID    string `json:"txid,omitempty"`
	Timeout int32  `json:"timeout,omitempty"`
	Commit  *bool  `json:"commit,omitempty"`
}

// groupEntry is one committed offset in the broker's log of groups.
type groupEntry struct {
	Type       string  `json:"type"`
	Group      string  `json:"g"`
	Topic      string  `json:"t"`
	Partition  int32   `json:"p,omitempty"`
	Offset     int64   `json:"o,omitempty"`
	Epoch      int32   `json:"e,omitempty"`
	Metadata   *string `json:"m,omitempty"`
	LastCommit *int64  `json:"lc"`
}

// producer is what the log of producer ids says of one, in the end.
type producer struct {
	init  pidEntry
	ended int16 // epoch of its last finished transaction; -1: none
}

// repair mends the data folder after an unclean end.
func repair(dir, data string) error {
	begun, err := readJournal(dir)
	if err != nil {
		return err
	}
	producers, err := readProducers(filepath.Join(data, "pids.log"))
	if err != nil {
		return err
	}
	if begun != nil {
		if p, ok := producers[begun.Producer]; ok && p.ended == begun.Epoch {
			begun = nil // it was finished
		}
	}
	for _, stale := range []string{"seq_windows.json", "session_state.json"} {
		if err := os.Remove(filepath.Join(data, stale)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	folders, err := filepath.Glob(filepath.Join(data, "partitions", "*"))
	if err != nil {
		return err
	}
	logs := make([]*partitionLog, 0, len(folders))
	touched := false
	for _, f := range folders {
		l, err := scan(f)
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		logs = append(logs, l)
		touched = touched || begun != nil && l.holds(begun)
	}
	if !touched {
		begun = nil // refused, or nothing of it was ever written
	}
	return finish(data, logs, producers, begun)
}

// finish writes offsets, markers and raised epochs. The epochs come last: they are what a second repair does not repeat.
func finish(data string, logs []*partitionLog, producers map[int64]*producer, begun *intent) error {
	if begun != nil {
		if err := appendOffsets(filepath.Join(data, "groups.log"), begun); err != nil {
			return err
		}
	}
	raise := map[int64]bool{}
	if begun != nil {
		raise[begun.Producer] = true
	}
	for _, l := range logs {
		for pid, epoch := range l.open {
			commit := begun != nil && begun.Producer == pid && begun.Epoch == epoch
			if err := l.mark(pid, epoch, commit); err != nil {
				return fmt.Errorf("%s: %w", l.dir, err)
			}
			raise[pid] = raise[pid] || commit
		}
	}
	var entries [][]byte
	for pid, commit := range raise {
		p, ok := producers[pid]
		if !ok {
			continue
		}
		e := p.init
		e.Epoch++
		e.Commit = &commit
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		entries = append(entries, b)
	}
	return appendEntries(filepath.Join(data, "pids.log"), entries)
}

func appendOffsets(path string, begun *intent) error {
	now := time.Now().UnixMilli()
	var entries [][]byte
	for _, g := range begun.Offsets {
		for _, o := range g.Offsets {
			b, err := json.Marshal(groupEntry{"commit", g.Group, o.Topic, o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, &now})
			if err != nil {
				return err
			}
			entries = append(entries, b)
		}
	}
	return appendEntries(path, entries)
}

func readProducers(path string) (map[int64]*producer, error) {
	docs, err := readEntries(path)
	if err != nil {
		return nil, err
	}
	out := map[int64]*producer{}
	for _, d := range docs {
		var e pidEntry
		if err := json.Unmarshal(d, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p := out[e.PID]
		if p == nil {
			p = &producer{ended: -1}
			out[e.PID] = p
		}
		switch e.Type {
		case "init":
			p.init = e
		case "endtx":
			p.ended = e.Epoch
			p.init.Epoch = e.Epoch
		default:
			p.init.Epoch = e.Epoch
		}
	}
	return out, nil
}

// The broker's logs are framed: length of what follows the CRC (4), CRC-32C of that (4), version (2), document; little-endian.
const frameHead, frameVersion = 10, 1

// readEntries returns the documents of a framed log and cuts off a torn last one.
func readEntries(path string) ([][]byte, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var docs [][]byte
	pos := 0
	for pos+frameHead <= len(raw) {
		n := int(binary.LittleEndian.Uint32(raw[pos:]))
		end := pos + 8 + n
		if n < 2 || end > len(raw) || crc32.Checksum(raw[pos+8:end], castagnoli) != binary.LittleEndian.Uint32(raw[pos+4:]) {
			break
		}
		docs = append(docs, raw[pos+frameHead:end])
		pos = end
	}
	if pos < len(raw) {
		if err := os.Truncate(path, int64(pos)); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

func appendEntries(path string, docs [][]byte) error {
	if len(docs) == 0 {
		return nil
	}
	// Reading first cuts off a torn entry, behind which nothing would be found.
	if _, err := readEntries(path); err != nil {
		return err
	}
	var b []byte
	for _, d := range docs {
		body := binary.LittleEndian.AppendUint16(nil, frameVersion)
		body = append(body, d...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
		b = append(b, body...)
	}
	return appendFile(path, b)
}

func appendFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
