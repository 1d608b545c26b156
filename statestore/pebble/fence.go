package pebblestore

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// retryPause slows the database's endless retries of a flush after the store has failed.
const retryPause = 100 * time.Millisecond

// fence is the file system of a store. Once the store has failed, nothing is created, written or synced any more: after a failed write
// of its manifest the database does not know what is in it, and a later write that succeeds could make a state that never was.
type fence struct {
	vfs.FS
	f *failure
}

// Unwrap lets the database find the real file system.
func (s fence) Unwrap() vfs.FS { return s.FS }

// pass fails once the store has.
func (s fence) pass() error {
	err := s.f.err()
	if err != nil {
		time.Sleep(retryPause)
	}
	return err
}

func (s fence) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.pass(); err != nil {
		return nil, err
	}
	return s.wrap(s.FS.Create(name, category))
}

func (s fence) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := s.pass(); err != nil {
		return nil, err
	}
	return s.wrap(s.FS.OpenReadWrite(name, category, opts...))
}

func (s fence) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.pass(); err != nil {
		return nil, err
	}
	return s.wrap(s.FS.ReuseForWrite(oldname, newname, category))
}

func (s fence) Rename(oldname, newname string) error {
	if err := s.f.err(); err != nil {
		return err
	}
	return s.FS.Rename(oldname, newname)
}

func (s fence) Remove(name string) error {
	if err := s.f.err(); err != nil {
		return err
	}
	return s.FS.Remove(name)
}

func (s fence) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return fencedFile{File: file, f: s.f}, nil
}

// fencedFile is a file open for writing.
type fencedFile struct {
	vfs.File
	f *failure
}

func (w fencedFile) Write(p []byte) (int, error) {
	if err := w.f.err(); err != nil {
		return 0, err
	}
	return w.File.Write(p)
}

func (w fencedFile) WriteAt(p []byte, off int64) (int, error) {
	if err := w.f.err(); err != nil {
		return 0, err
	}
	return w.File.WriteAt(p, off)
}

func (w fencedFile) Sync() error {
	if err := w.f.err(); err != nil {
		return err
	}
	return w.File.Sync()
}

func (w fencedFile) SyncData() error {
	if err := w.f.err(); err != nil {
		return err
	}
	return w.File.SyncData()
}

func (w fencedFile) SyncTo(length int64) (bool, error) {
	if err := w.f.err(); err != nil {
		return false, err
	}
	return w.File.SyncTo(length)
}
