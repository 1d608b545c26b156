//go:build !unix

package embedded

import (
	"errors"
	"os"
)

func tryLock(*os.File) error {
	return errors.New("the embedded broker needs file locks that end with their process, which this operating system's port lacks; use a Kafka")
}
