package spec

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration such as "100ms" or "1m30s".
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("not a duration such as 100ms, 5s or 1m30s")
	}
	return Duration(d), nil
}

// String is the duration as it is written in a spec.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// sizeUnits are the suffixes of a Size, the longer ones first.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1},
}

// ParseSize reads a number of bytes such as "4096", "64Mi" or "10M".
func ParseSize(text string) (Size, error) {
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			break
		}
		return Size(int64(n) * u.bytes), nil
	}
	return 0, fmt.Errorf("not a size such as 4096, 10M or 64Mi")
}

// String is the size as it is written in a spec, in the largest binary unit that divides it.
func (s Size) String() string {
	for _, u := range []int{2, 1, 0} {
		if unit := sizeUnits[u]; s != 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
