package pebblestore

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		runVictim(dir)
	}
	goleak.VerifyTestMain(m)
}

// small makes memtables fill and tables be compacted within a test.
func small(fs vfs.FS) Options {
	return Options{BlockCacheBytes: minBlockCacheBytes, MemtableBytes: minMemtableBytes, FlushInterval: minFlushInterval, fs: fs}
}

// ground is a file system in memory of which a crash keeps what was synced and a random part of the rest.
type ground struct {
	fs  *vfs.MemFS
	rng *rand.Rand
}

func (g *ground) Open() (statestore.Store, error) {
	s, err := Open("state", small(g.fs))
	if err != nil {
		return nil, err // not a typed nil
	}
	return s, nil
}

func (g *ground) Crash() error {
	g.fs = g.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: g.rng.IntN(101), RNG: g.rng})
	return nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Opener {
		return &ground{fs: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(7, 7))}
	})
}

func openSmall(t *testing.T, dir string, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(dir, small(fs))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func acquire(t *testing.T, s *Store, partition int32) statestore.Handle {
	t.Helper()
	h, err := s.Acquire(statestore.PartitionID{Stage: "stage", Partition: partition})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func row(key, value string) []statestore.Change {
	return []statestore.Change{{Key: []byte(key), Value: []byte(value)}}
}

func TestTimerFlushesWhatWasApplied(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	s := openSmall(t, "state", fs)
	h := acquire(t, s, 0)
	must(t, h.Apply(row("k", "v"), statestore.Position{Offset: 4}))
	for {
		progress := s.progress.wait()
		crashed := openSmall(t, "state", fs.CrashClone(vfs.CrashCloneCfg{}))
		pos, _, err := acquire(t, crashed, 0).Position()
		must(t, err)
		must(t, crashed.Close())
		if pos.Offset == 4 {
			break
		}
		<-progress
	}
	must(t, s.Close())
}

const (
	victimDir     = "PEBBLESTORE_VICTIM_DIR"
	victimSeed    = 99
	victimBatches = 100_000
)

// runVictim applies random batches until it is killed, and says how far it is after each flush.
func runVictim(dir string) {
	s, err := Open(dir, small(vfs.Default))
	if err != nil {
		panic(err)
	}
	h, err := s.Acquire(statestore.PartitionID{Stage: "stage"})
	if err != nil {
		panic(err)
	}
	var model storetest.Model
	rng := rand.New(rand.NewPCG(victimSeed, 0))
	for range victimBatches {
		batch, end := model.Batch(rng, 100)
		if err := h.Apply(batch, statestore.Position{Offset: end}); err != nil {
			panic(err)
		}
		if rng.IntN(100) == 0 {
			if err := s.Flush(); err != nil {
				panic(err)
			}
			fmt.Println(end)
		}
	}
	os.Exit(0)
}

func TestKilledProcessLeavesPrefix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, err := os.Executable()
	must(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	flushed := int64(0)
	for range 5 {
		if !lines.Scan() {
			t.Fatal("the victim ended by itself")
		}
		flushed, err = strconv.ParseInt(lines.Text(), 10, 64)
		must(t, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	s := openSmall(t, dir, vfs.Default)
	var model storetest.Model
	rng := rand.New(rand.NewPCG(victimSeed, 0))
	h := acquire(t, s, 0)
	pos, _, err := h.Position()
	must(t, err)
	for model.End() < pos.Offset {
		model.Batch(rng, 100)
		rng.IntN(100) // the victim draws here, to flush or not
	}
	if model.End() != pos.Offset {
		t.Fatalf("position %d is within a batch that ends at %d", pos.Offset, model.End())
	}
	at, err := model.Check(h)
	must(t, err)
	if at < flushed {
		t.Errorf("the store is at %d, but %d was flushed", at, flushed)
	}
	must(t, s.Close())
}

// failing is a file system whose writes of some files fail from a moment on.
func failing(inner vfs.FS, toggle *errorfs.Toggle) vfs.FS { return errorfs.Wrap(inner, toggle) }

// diskFull fails all writes to files whose name contains part.
func diskFull(part string) *errorfs.Toggle {
	return &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		write := op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData ||
			op.Kind == errorfs.OpCreate
		if write && strings.Contains(op.Path, part) {
			return syscall.ENOSPC
		}
		return nil
	})}
}

func TestFailedWritesFailAllCallsAndKeepThePrefix(t *testing.T) {
	t.Parallel()
	for _, part := range []string{".sst", "MANIFEST"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			inner := vfs.NewCrashableMem()
			toggle := diskFull(part)
			s := openSmall(t, "state", failing(inner, toggle))
			h := acquire(t, s, 0)
			var model storetest.Model
			rng := rand.New(rand.NewPCG(1, 2))
			apply := func() error {
				batch, end := model.Batch(rng, 100)
				return h.Apply(batch, statestore.Position{Offset: end})
			}
			must(t, apply())
			must(t, s.Flush())
			toggle.On()
			// Many memtables' worth: without the failure's end of the wait, this would hang.
			err := error(nil)
			for range 10_000 {
				if err = apply(); err != nil {
					break
				}
			}
			if !errors.Is(err, statestore.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("apply gives %v", err)
			}
			toggle.Off()
			wantFailed(t, s, h)
			if err := s.Close(); !errors.Is(err, statestore.ErrFailed) {
				t.Errorf("close gives %v", err)
			}
			again := openSmall(t, "state", inner)
			if at, err := model.Check(acquire(t, again, 0)); err != nil || at == 0 {
				t.Errorf("reopened at %d: %v", at, err)
			}
			must(t, again.Close())
		})
	}
}

// wantFailed calls everything.
func wantFailed(t *testing.T, s *Store, h statestore.Handle) {
	t.Helper()
	_, _, posErr := h.Position()
	_, listErr := s.Partitions()
	_, acquireErr := s.Acquire(statestore.PartitionID{Stage: "other"})
	for name, err := range map[string]error{
		"position":   posErr,
		"get":        h.Get([][]byte{[]byte("k")}, func(int, []byte) error { return nil }),
		"scan":       h.Scan(nil, func(_, _ []byte) bool { return true }),
		"apply":      h.Apply(nil, statestore.Position{}),
		"clear":      h.Clear(),
		"flush":      s.Flush(),
		"partitions": listErr,
		"acquire":    acquireErr,
	} {
		if !errors.Is(err, statestore.ErrFailed) {
			t.Errorf("%s gives %v", name, err)
		}
	}
}

// written makes a folder with a flushed table.
func written(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := openSmall(t, dir, vfs.Default)
	var model storetest.Model
	batch, end := model.Batch(rand.New(rand.NewPCG(3, 3)), 1000)
	must(t, acquire(t, s, 0).Apply(batch, statestore.Position{Offset: end}))
	must(t, s.Close())
	return dir
}

func TestDamagedFolderIsCorrupt(t *testing.T) {
	t.Parallel()
	// overwrite replaces files by what change makes of them.
	overwrite := func(t *testing.T, pattern string, change func([]byte) []byte) {
		t.Helper()
		files, err := filepath.Glob(pattern)
		must(t, err)
		if len(files) == 0 {
			t.Fatalf("no file %s", pattern)
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			must(t, err)
			must(t, os.WriteFile(f, change(content), 0o644))
		}
	}
	cases := map[string]func(t *testing.T, dir string){
		"table cut short": func(t *testing.T, dir string) {
			overwrite(t, dir+"/*.sst", func(b []byte) []byte { return b[:len(b)/2] })
		},
		"table with other bytes": func(t *testing.T, dir string) {
			overwrite(t, dir+"/*.sst", func(b []byte) []byte {
				for i := range b {
					b[i] ^= 0x55
				}
				return b
			})
		},
		"missing tables": func(t *testing.T, dir string) {
			files, err := filepath.Glob(dir + "/*.sst")
			must(t, err)
			for _, f := range files {
				must(t, os.Remove(f))
			}
		},
		"empty manifest": func(t *testing.T, dir string) {
			overwrite(t, dir+"/MANIFEST*", func([]byte) []byte { return nil })
		},
		"unknown version of the library": func(t *testing.T, dir string) {
			files, err := filepath.Glob(dir + "/marker.format-version.*")
			must(t, err)
			must(t, os.Rename(files[0], dir+"/marker.format-version.000999.999"))
		},
		"unknown version of the layout": func(t *testing.T, dir string) {
			s := openSmall(t, dir, vfs.Default)
			must(t, s.db.Set(versionKey, []byte{layoutVersion + 1}, pebble.NoSync))
			must(t, s.Close())
		},
		"rows without a version": func(t *testing.T, dir string) {
			s := openSmall(t, dir, vfs.Default)
			must(t, s.db.Delete(versionKey, pebble.NoSync))
			must(t, s.Close())
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := written(t)
			damage(t, dir)
			s, err := Open(dir, small(vfs.Default))
			if err == nil {
				// Some damage shows only in the block that is read.
				var h statestore.Handle
				if h, err = s.Acquire(statestore.PartitionID{Stage: "stage"}); err == nil {
					err = h.Scan(nil, func(_, _ []byte) bool { return true })
				}
				_ = s.Close() // which gives the same error
			}
			if !errors.Is(err, statestore.ErrCorrupt) {
				t.Fatalf("open gives %v", err)
			}
			must(t, os.RemoveAll(dir))
			must(t, openSmall(t, dir, vfs.Default).Close())
		})
	}
}

func TestFolderThatCannotBeMadeIsNotCorrupt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("x"), 0o644))
	_, err := Open(filepath.Join(file, "state"), Options{})
	if err == nil || errors.Is(err, statestore.ErrCorrupt) || errors.Is(err, statestore.ErrLocked) {
		t.Errorf("open gives %v", err)
	}
}

func TestApplyFailsWhenTheDiskSpaceIsUsedUp(t *testing.T) {
	t.Parallel()
	o := small(vfs.NewMem())
	o.MaxDiskBytes = 1 << 20
	s, err := Open("state", o)
	must(t, err)
	h := acquire(t, s, 0)
	rng := rand.New(rand.NewPCG(5, 5))
	value := make([]byte, 64<<10)
	for i := range 1000 {
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		if err = h.Apply(row(strconv.Itoa(i), string(value)), statestore.Position{Offset: int64(i)}); err != nil {
			break
		}
	}
	if !errors.Is(err, statestore.ErrFull) {
		t.Errorf("apply gives %v", err)
	}
	must(t, s.Close())
}

func TestWaitingWriterIsRevoked(t *testing.T) {
	t.Parallel()
	// Flushes hang while the gate is shut, so memtables pile up and the writer waits.
	gate := make(chan struct{})
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			<-gate
		}
		return nil
	})}
	s := openSmall(t, "state", failing(vfs.NewMem(), toggle))
	toggle.On()
	h := acquire(t, s, 0)
	stopped := make(chan error, 1)
	go func() {
		value := strings.Repeat("v", 32<<10)
		var err error
		for i := 0; err == nil; i++ {
			err = h.Apply(row(strconv.Itoa(i), value), statestore.Position{Offset: int64(i)})
		}
		stopped <- err
	}()
	// Once more than is allowed lies in memory, the writer waits or soon will; either way a new term must get through.
	limit := uint64(minMemtableBytes * defaultMaxMemtables)
	deadline := time.Now().Add(30 * time.Second)
	for s.db.Metrics().MemTable.Size <= limit {
		if time.Now().After(deadline) {
			t.Fatal("memtables do not pile up")
		}
	}
	next := acquire(t, s, 0)
	if err := <-stopped; !errors.Is(err, statestore.ErrRevoked) {
		t.Errorf("the waiting writer gets %v", err)
	}
	if size := s.db.Metrics().MemTable.Size; size > limit+2*minMemtableBytes {
		t.Errorf("%d bytes of memtables, the limit is %d", size, limit)
	}
	close(gate)
	must(t, next.Apply(row("k", "v"), statestore.Position{}))
	must(t, s.Close())
}

func TestOptionsReportAllFaults(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir(), Options{BlockCacheBytes: 1, MemtableBytes: -1, MaxMemtables: 1, FlushInterval: 1, MaxDiskBytes: -1})
	for _, name := range []string{"BlockCacheBytes", "MemtableBytes", "MaxMemtables", "FlushInterval", "MaxDiskBytes"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in %v", name, err)
		}
	}
}
