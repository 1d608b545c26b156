package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// home is a worker's data folder: local state and identity, under a lock.
type home struct {
	dir    string
	worker string
	lock   *os.File
}

var errLocked = errors.New("another live worker uses it")

// maxWorkers bounds the search for a free default folder.
const maxWorkers = 1000

// openHome locks the folder and settles the worker's name: the flag's, else the one kept in the folder, else a new one.
func openHome(dir, pipeline, worker string) (*home, error) {
	if dir != "" {
		return lockHome(dir, worker)
	}
	for n := 1; n <= maxWorkers; n++ {
		h, err := lockHome(filepath.Join(".processor", pipeline, fmt.Sprintf("w%d", n)), worker)
		if !errors.Is(err, errLocked) {
			return h, err
		}
	}
	return nil, fmt.Errorf("all of .processor/%s/w1 to w%d are in use", pipeline, maxWorkers)
}

func lockHome(dir, worker string) (_ *home, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, errLocked)
	}
	h := &home{dir: dir, worker: worker, lock: lock}
	file := filepath.Join(dir, "worker")
	if h.worker == "" {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("data folder: %w", err)
		}
		if h.worker = strings.TrimSpace(string(b)); h.worker == "" {
			id := make([]byte, 4)
			_, _ = rand.Read(id)
			host, _ := os.Hostname()
			h.worker = host + "-" + hex.EncodeToString(id)
		}
	}
	if err := os.WriteFile(file, []byte(h.worker+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return h, nil
}

func (h *home) close() { h.lock.Close() }
