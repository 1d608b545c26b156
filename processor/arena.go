package processor

// arenaChunk is the size of an arena's chunks, in bytes.
const arenaChunk = 256 << 10

// arena holds the bytes of one epoch's records. Slices that it handed out stay valid until reset.
type arena struct {
	chunks [][]byte
	free   [][]byte
	used   int64
}

// begin returns an empty slice to append to; it must be given to end, or dropped, before the next begin.
func (a *arena) begin() []byte {
	if n := len(a.chunks); n > 0 {
		if c := a.chunks[n-1]; cap(c)-len(c) >= 1024 {
			return c[len(c):]
		}
	}
	var c []byte
	if n := len(a.free); n > 0 {
		c, a.free = a.free[n-1], a.free[:n-1]
	} else {
		c = make([]byte, 0, arenaChunk)
	}
	a.chunks = append(a.chunks, c)
	return c
}

// end keeps b, which grew out of begin's slice, and returns it.
func (a *arena) end(b []byte) []byte {
	a.used += int64(len(b))
	c := &a.chunks[len(a.chunks)-1]
	if cap(*c)-len(*c) >= len(b) && len(b) > 0 && &(*c)[:len(*c)+1][len(*c)] == &b[0] {
		*c = (*c)[:len(*c)+len(b)]
	}
	// Else it outgrew the chunk and lives in memory of its own.
	return b[:len(b):len(b)]
}

// arenaKeep is how many chunks a reset arena keeps for the next epoch.
const arenaKeep = 32

// reset makes the memory free for the next epoch.
func (a *arena) reset() {
	for _, c := range a.chunks {
		if len(a.free) < arenaKeep {
			a.free = append(a.free, c[:0])
		}
	}
	clear(a.chunks)
	a.chunks = a.chunks[:0]
	a.used = 0
}
