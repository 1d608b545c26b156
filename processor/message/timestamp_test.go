package message

import (
	"errors"
	"math"
	"regexp"
	"testing"
	"time"
)

func TestTimestampsAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	t.Parallel()
	r := newRandom(t)
	moments := []int64{0, -1, 1, minTime, maxTime, 951_782_400_000_000, 1_709_164_800_000_000, 1_700_000_000_120_000}
	for range 20000 {
		moments = append(moments, minTime+r.Int64N(maxTime-minTime+1))
	}
	for _, micros := range moments {
		got, err := AppendTimestamp(nil, micros)
		if want := time.UnixMicro(micros).UTC().Format(time.RFC3339Nano); err != nil || string(got) != want {
			t.Fatalf("%d is written %s, %v, want %s", micros, got, err, want)
		}
		if back, err := ParseTimestamp(string(got)); err != nil || back != micros {
			t.Fatalf("%s reads as %d, %v, want %d", got, back, err, micros)
		}
	}
}

func TestTimestampsThatCannotBeWrittenAreErrors(t *testing.T) {
	t.Parallel()
	for _, micros := range []int64{minTime - 1, maxTime + 1, math.MinInt64, math.MaxInt64} {
		if got, err := AppendTimestamp([]byte("head"), micros); !errors.Is(err, errTimeRange) || string(got) != "head" {
			t.Errorf("%d is written %s, %v", micros, got, err)
		}
	}
}

// shape is the grammar of RFC 3339 as far as package time does not insist on it.
var shape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func libraryTime(s string) (int64, bool) {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !shape.MatchString(s) {
		return 0, false
	}
	micros := at.UnixMicro()
	return micros, micros >= minTime && micros <= maxTime
}

var timeSamples = []string{
	"2026-01-31T23:59:59Z", "2026-01-31T23:59:59.25+01:00", "2026-01-31T23:59:59.123456789-23:59", "1969-12-31T23:59:59.9999999Z",
	"2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-04-31T00:00:00Z",
	"0000-01-01T00:00:00Z", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-00:01",
	"2024-13-01T00:00:00Z", "2024-00-01T00:00:00Z", "2024-01-00T00:00:00Z", "2024-01-32T00:00:00Z", "2024-01-01T24:00:00Z",
	"2024-01-01T00:60:00Z", "2024-01-01T00:00:60Z", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", "2024-01-01T00:00:00z",
	"2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+0100", "2024-01-01T0:00:00Z",
	"2024-01-01T00:00:00+01:60", "2024-01-01T00:00:00ZZ", "", "2024", "+024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456+00:00:00",
}

func TestTimestampsAreReadAsTheLibraryReadsThem(t *testing.T) {
	t.Parallel()
	for _, s := range timeSamples {
		compareTime(t, s)
	}
}

func compareTime(t *testing.T, s string) {
	t.Helper()
	want, ok := libraryTime(s)
	if got, err := ParseTimestamp(s); (err == nil) != ok || ok && got != want {
		t.Errorf("%q reads as %d, %v; the library reads %d, %v", s, got, err, want, ok)
	}
}

func FuzzParseTimestamp(f *testing.F) {
	for _, s := range timeSamples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { compareTime(t, s) })
}
