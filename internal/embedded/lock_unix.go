//go:build unix

package embedded

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes an advisory lock that belongs to the open file and ends with its process.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errBusy
	}
	return err
}
