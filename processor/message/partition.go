package message

import "encoding/binary"

// Partition is the partition of 0 to n-1 that a key belongs to: positive murmur2 modulo n, as in the default partitioner of
// Kafka's Java client (org.apache.kafka.common.utils.Utils.murmur2 and toPositive), so that topics written by ordinary
// producers are partitioned alike. A nil key, which Kafka would spread, is partition 0; so is any key if n is below 2.
func Partition(key []byte, n int32) int32 {
	if key == nil || n < 2 {
		return 0
	}
	return int32(murmur2(key)&0x7fffffff) % n
}

// murmur2 is Kafka's: 32 bits, its own seed.
func murmur2(key []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
