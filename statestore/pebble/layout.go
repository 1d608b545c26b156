package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kafka-processor/processor/statestore"
)

// The layout of keys in the database, all numbers big endian:
//
//	stage number (2 bytes, from 1), partition (4), 0                 position of the partition
//	stage number (2 bytes, from 1), partition (4), 1, row key        a row
//	0 (2 bytes), 0                                                   version of this layout (1 byte)
//	0 (2 bytes), 1, stage name                                       stage number (2 bytes)
//
// A partition is one range of keys, so clearing it is one range deletion.

// layoutVersion is the version of this layout.
const layoutVersion = 1

const (
	tagPosition = 0
	tagRow      = 1

	tagVersion = 0
	tagStage   = 1

	partitionBytes = 6
	rowHeadBytes   = partitionBytes + 1

	maxStages = math.MaxUint16
)

var (
	versionKey  = []byte{0, 0, tagVersion}
	stagePrefix = []byte{0, 0, tagStage}
	stageEnd    = []byte{0, 0, tagStage + 1}
)

// partitionPrefix begins all keys of a partition.
func partitionPrefix(stage uint16, partition int32) [partitionBytes]byte {
	var p [partitionBytes]byte
	binary.BigEndian.PutUint16(p[:], stage)
	binary.BigEndian.PutUint32(p[2:], uint32(partition))
	return p
}

// successor is the smallest key above all that begin with prefix; nil if there is none.
func successor(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// positionBytes is the length of an encoded position.
const positionBytes = 16 + 8 + 8 + 8

// putPosition encodes p into dst, which has positionBytes.
func putPosition(dst []byte, p statestore.Position) {
	copy(dst, p.Topic[:])
	binary.BigEndian.PutUint64(dst[16:], p.Incarnation)
	binary.BigEndian.PutUint64(dst[24:], uint64(p.Offset))
	binary.BigEndian.PutUint64(dst[32:], uint64(p.AtEnd))
}

// parsePosition fails with ErrCorrupt.
func parsePosition(b []byte) (p statestore.Position, err error) {
	if len(b) != positionBytes {
		return p, fmt.Errorf("%w: position of %d bytes", statestore.ErrCorrupt, len(b))
	}
	copy(p.Topic[:], b)
	p.Incarnation = binary.BigEndian.Uint64(b[16:])
	p.Offset = int64(binary.BigEndian.Uint64(b[24:]))
	p.AtEnd = int64(binary.BigEndian.Uint64(b[32:]))
	return p, nil
}
