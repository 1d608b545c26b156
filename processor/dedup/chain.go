package dedup

import "fmt"

// Chain remembers, for one fingerprint and one attempt, the last id handed to the producer from each origin partition for each
// target partition. A new attempt needs a new Chain. It is not safe for concurrent use.
type Chain struct {
	targets int32
	links   []link // origin*targets + target; grows with the origins
}

type link struct {
	offset, ordinal uint64
	used            bool
}

// NewChain returns the chain of an attempt that writes to this many target partitions.
func NewChain(targets int32) *Chain { return &Chain{targets: targets} }

// Next records that (offset, ordinal) is about to be handed to the producer and returns its predecessor, or start if there is
// none in this attempt. Once called, the record must be handed over, or the attempt must end: the next record names this one.
//
// Ids of one origin grow. One that does not would be dropped by the receiver as a duplicate, so that Next panics: a broken
// invariant of the caller, as is a partition out of range.
func (c *Chain) Next(origin uint32, target int32, offset, ordinal uint64) (start bool, prevOffset, prevOrdinal uint64) {
	if target < 0 || target >= c.targets || origin >= MaxOrigins {
		panic(fmt.Sprintf("dedup: origin %d, target %d of %d out of range", origin, target, c.targets))
	}
	i := int(origin)*int(c.targets) + int(target)
	if i >= len(c.links) {
		c.grow(int(origin) + 1)
	}
	l := &c.links[i]
	start, prevOffset, prevOrdinal = !l.used, l.offset, l.ordinal
	if l.used && !below(prevOffset, prevOrdinal, offset, ordinal) {
		panic(fmt.Sprintf("dedup: origin %d, target %d: (%d,%d) was sent before (%d,%d)", origin, target, prevOffset, prevOrdinal, offset, ordinal))
	}
	*l = link{offset: offset, ordinal: ordinal, used: true}
	return start, prevOffset, prevOrdinal
}

func (c *Chain) grow(origins int) {
	n := max(origins*int(c.targets), 2*len(c.links))
	n -= n % int(c.targets)
	links := make([]link, n)
	copy(links, c.links)
	c.links = links
}

// below says whether the first id is lower than the second, both of one origin.
func below(offset, ordinal, offset2, ordinal2 uint64) bool {
	return offset < offset2 || offset == offset2 && ordinal < ordinal2
}
