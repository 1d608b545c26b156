//go:build !linux

package integration

import "syscall"

// Only Linux tells a child of its parent's death.
func childAttributes() *syscall.SysProcAttr { return nil }
