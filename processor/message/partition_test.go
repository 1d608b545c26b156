package message

import "testing"

// The vectors are those of Kafka's own test of its Utils.murmur2.
func TestMurmur2IsKafkas(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
		if got, want := Partition([]byte(key), 7), (want&0x7fffffff)%7; got != want {
			t.Errorf("Partition(%q, 7) = %d, want %d", key, got, want)
		}
	}
}

func TestPartitionOfNilIsZeroAndOfEmptyIsHashed(t *testing.T) {
	t.Parallel()
	if got := Partition(nil, 64); got != 0 {
		t.Errorf("a nil key is in partition %d", got)
	}
	// The 32-bit hash of no bytes is 275646681.
	if got := Partition([]byte{}, 64); got != 275646681%64 {
		t.Errorf("an empty key is in partition %d", got)
	}
	if Partition([]byte("foobar"), 1) != 0 || Partition([]byte("foobar"), 0) != 0 {
		t.Error("one partition has a number other than 0")
	}
}
