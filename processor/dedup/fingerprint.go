package dedup

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Fingerprint names one run of ids: the same incarnation of the pipeline, source computation and source (or output stream),
// Kafka topic and line. It is the xxHash64 of incarnation (8 bytes), line (4), topic id (16), and the two names, each after its
// length (4 bytes); integers are big-endian. A topic id of zeros stands for none. Zero is never returned.
func Fingerprint(incarnation uint64, computation, source string, topicID [16]byte, line uint32) uint64 {
	b := make([]byte, 0, 128)
	b = binary.BigEndian.AppendUint64(b, incarnation)
	b = binary.BigEndian.AppendUint32(b, line)
	b = append(b, topicID[:]...)
	for _, s := range [...]string{computation, source} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return max(xxhash.Sum64(b), 1)
}
