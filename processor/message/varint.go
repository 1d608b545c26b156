package message

// uvarint reads a varint (as in encoding/binary) and refuses every form but the shortest, so that equal values have equal
// bytes. n is the number of bytes, 0 if there is no varint.
func uvarint(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i == 9 && c > 1 {
			return 0, 0 // more than 64 bits
		}
		if c < 0x80 {
			if c == 0 && i > 0 {
				return 0, 0
			}
			return v | uint64(c)<<(7*i), i + 1
		}
		v |= uint64(c&0x7f) << (7 * i)
	}
	return 0, 0
}

// zigzag maps small negative and positive numbers to small unsigned ones: 0, -1, 1, -2 become 0, 1, 2, 3.
func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
