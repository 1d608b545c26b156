package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kafka-processor/processor/statestore"
)

// benchKeys is how many rows the benchmarks' store has.
const benchKeys = 1_000_000

// benchKey is the changelog key of a state for the n-th message key, 16 bytes in random order. The low bit tells absent keys.
func benchKey(n uint64, absent bool) []byte {
	x := n*0x9e3779b97f4a7c15 ^ n>>7
	x = x << 1
	if absent {
		x |= 1
	}
	key := binary.BigEndian.AppendUint64(nil, x)
	return statestore.AppendKey(nil, statestore.KindState, "count", binary.BigEndian.AppendUint64(key, n))
}

// benchChanges are n rows from the first-th key on, sorted, with values of 100 bytes.
func benchChanges(first, n uint64) []statestore.Change {
	value := make([]byte, 100)
	rng := rand.New(rand.NewPCG(first, n))
	for i := range 50 {
		value[i] = byte(rng.Uint32())
	}
	changes := make([]statestore.Change, n)
	for i := range changes {
		changes[i] = statestore.Change{Key: benchKey(first+uint64(i), false), Value: value}
	}
	slices.SortFunc(changes, func(a, b statestore.Change) int { return slices.Compare(a.Key, b.Key) })
	return changes
}

// load replays benchKeys records in batches.
func load(b *testing.B, dir string) *Store {
	b.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	h, err := s.Acquire(statestore.PartitionID{Stage: "stage"})
	if err != nil {
		b.Fatal(err)
	}
	for at := uint64(0); at < benchKeys; at += 10_000 {
		if err := h.Apply(benchChanges(at, 10_000), statestore.Position{Offset: int64(at)}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func benchmarkGet(b *testing.B, absent bool) {
	s := load(b, b.TempDir())
	h, err := s.Acquire(statestore.PartitionID{Stage: "stage"})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const size = 1000
	batches := make([][][]byte, 100)
	for i := range batches {
		for range size {
			batches[i] = append(batches[i], benchKey(rng.Uint64N(benchKeys), absent))
		}
		slices.SortFunc(batches[i], func(a, b []byte) int { return slices.Compare(a, b) })
	}
	hits := 0
	if err := s.Flush(); err != nil {
		b.Fatal(err)
	}
	for {
		progress := s.progress.wait() // before the look
		if s.db.Metrics().Compact.NumInProgress == 0 {
			break
		}
		<-progress
	}
	before := cpuSeconds(b)
	b.ResetTimer()
	for i := range b.N {
		if err := h.Get(batches[i%len(batches)], func(int, []byte) error {
			hits++
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric((cpuSeconds(b)-before)*1e9/float64(b.N*size), "cpu-ns/key")
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "keys/s")
	b.ReportMetric(float64(hits)/float64(b.N*size), "found")
	reportPeak(b)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkGetExisting(b *testing.B) { benchmarkGet(b, false) }
func BenchmarkGetAbsent(b *testing.B)   { benchmarkGet(b, true) }

// BenchmarkApplyNew applies batches of 10,000 keys that are new, the state growing.
func BenchmarkApplyNew(b *testing.B) { benchmarkApply(b, false) }

// BenchmarkApplyNewAfterGet also looks each key up first, as a job does for keys it meets for the first time.
func BenchmarkApplyNewAfterGet(b *testing.B) { benchmarkApply(b, true) }

func benchmarkApply(b *testing.B, get bool) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	h, err := s.Acquire(statestore.PartitionID{Stage: "stage"})
	if err != nil {
		b.Fatal(err)
	}
	const size = 10_000
	before := cpuSeconds(b)
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		changes := benchChanges(uint64(i)*size, size)
		keys := make([][]byte, size)
		for j := range changes {
			keys[j] = changes[j].Key
		}
		b.StartTimer()
		if get {
			if err := h.Get(keys, func(int, []byte) error { return fmt.Errorf("found a new key") }); err != nil {
				b.Fatal(err)
			}
		}
		if err := h.Apply(changes, statestore.Position{Offset: int64(i)}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric((cpuSeconds(b)-before)*1e9/float64(b.N*size), "cpu-ns/record")
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "records/s")
	reportPeak(b)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReopen opens a store of benchKeys rows. After a crash it does the same, since there is no log to read.
func BenchmarkReopen(b *testing.B) {
	dir := b.TempDir()
	if err := load(b, dir).Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// reportPeak reports the process's highest resident size so far; run one benchmark at a time to make sense of it.
func reportPeak(b *testing.B) {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // not on Linux
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			b.ReportMetric(kib/1024, "peak-MiB")
		}
	}
}

// cpuSeconds is what the process has used, background work included; on a busy machine it says more than the clock.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
