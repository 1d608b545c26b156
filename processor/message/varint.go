package message

import "encoding/binary"

// uvarint reads a varint (as in encoding/binary) and refuses every form but the shortest, so that equal values have equal
// bytes. n is the number of bytes, 0 if there is no varint.
func uvarint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	v, n = binary.Uvarint(b)
	if n <= 0 || b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// zigzag maps small negative and positive numbers to small unsigned ones: 0, -1, 1, -2 become 0, 1, 2, 3.
func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
