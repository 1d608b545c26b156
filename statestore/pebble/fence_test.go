package pebblestore

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kafka-processor/processor/statestore"
)

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	f := newFailure(slog.New(slog.DiscardHandler))
	s := fence{FS: vfs.NewMem(), f: f}
	file, err := s.Create("file", vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = file.Write([]byte("before"))
	must(t, err)
	f.set(errors.New("disk is gone"))

	calls := map[string]func() error{
		"write":     func() error { _, err := file.Write([]byte("after")); return err },
		"write at":  func() error { _, err := file.WriteAt([]byte("after"), 0); return err },
		"sync":      file.Sync,
		"sync data": file.SyncData,
		"sync to":   func() error { _, err := file.SyncTo(1); return err },
		"create":    func() error { _, err := s.Create("other", vfs.WriteCategoryUnspecified); return err },
		"open":      func() error { _, err := s.OpenReadWrite("file", vfs.WriteCategoryUnspecified); return err },
		"reuse":     func() error { _, err := s.ReuseForWrite("file", "other", vfs.WriteCategoryUnspecified); return err },
		"rename":    func() error { return s.Rename("file", "other") },
		"remove":    func() error { return s.Remove("file") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, statestore.ErrFailed) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if info, err := s.Stat("file"); err != nil || info.Size() != int64(len("before")) {
		t.Errorf("the file changed: %v %v", info, err)
	}
	must(t, file.Close())
}
