package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrRunning says that another live process runs the broker of this folder; Attach gives its address.
var ErrRunning = errors.New("another process runs the broker of this folder")

// errBusy is what tryLock answers when the lock is held.
var errBusy = errors.New("locked")

// owner is what the lock file says of the process that holds it. The operating system drops the lock when that process ends, however
// it ends, so a stale file never keeps anybody out; what it still says after a kill tells the next owner that the end was not clean.
type owner struct {
	Address string `json:"address"`
	PID     int    `json:"pid"`
}

// lockFile is DIR/lock, held locked for as long as the broker lives.
type lockFile struct{ f *os.File }

// acquire locks dir and tells whether the last owner ended without releasing.
func acquire(dir string) (l *lockFile, unclean bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("lock broker folder: %w", err)
	}
	if err := tryLock(f); err != nil {
		f.Close()
		if errors.Is(err, errBusy) {
			return nil, false, fmt.Errorf("%s: %w", dir, ErrRunning)
		}
		return nil, false, fmt.Errorf("lock broker folder %s: %w", dir, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, false, fmt.Errorf("lock broker folder %s: %w", dir, err)
	}
	return &lockFile{f}, info.Size() > 0, nil
}

// publish writes the owner over whatever the file said before.
func (l *lockFile) publish(o owner) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := l.f.Truncate(0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	if _, err := l.f.WriteAt(append(b, '\n'), 0); err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	return nil
}

// release lets go; clean empties the file, which is the mark of a clean end.
func (l *lockFile) release(clean bool) error {
	var err error
	if clean {
		err = l.f.Truncate(0)
	}
	return errors.Join(err, l.f.Close())
}

// readOwner returns what the lock file of dir says; an empty address: the owner has not begun to listen.
func readOwner(dir string) (owner, error) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return owner{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil || len(b) == 0 {
		return owner{}, err
	}
	var o owner
	if err := json.Unmarshal(b, &o); err != nil {
		return owner{}, nil // being written at this moment
	}
	return o, nil
}
