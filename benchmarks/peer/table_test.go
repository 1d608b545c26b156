package main

import (
	"strings"
	"testing"
	"time"
)

func TestTableShowsMediansAndRatios(t *testing.T) {
	t.Parallel()
	var out report
	for i, rate := range []float64{100, 500, 300} {
		out.Results = append(out.Results,
			result{App: streamsApp, Kind: "drain", Round: i, Records: 1, PerSecond: rate, Exact: true},
			result{App: processorApp, Kind: "drain", Round: i, Records: 1, PerSecond: 4 * rate, Exact: i != 1})
	}
	var text strings.Builder
	printTable(&text, out)
	line := strings.Fields(strings.Split(text.String(), "\n")[1])
	if got := strings.Join(line[len(line)-3:], " "); got != "300 1200 4.00" {
		t.Errorf("got %q in\n%s", got, text.String())
	}
	if !strings.Contains(text.String(), "WRONG OUTPUTS: processor, drain, round 1") {
		t.Errorf("wrong outputs went unnoticed:\n%s", text.String())
	}
	if strings.Contains(text.String(), "latency") {
		t.Errorf("a figure without runs is shown:\n%s", text.String())
	}
}

func TestLatencyPercentiles(t *testing.T) {
	t.Parallel()
	var samples []float64
	for i := range 200 {
		samples = append(samples, float64(200-i))
	}
	var r result
	r.setLatencies(samples)
	if r.P50 != 100 || r.P90 != 180 || r.P99 != 198 || r.Max != 200 || r.Samples != 200 {
		t.Errorf("got %+v", r)
	}
}

func TestOutputSaysWhenItsInputWasMade(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int64{
		`{"user":"a","count":1,"sum":2,"ts":1700000000000001}`: 1700000000000001,
		`{"ts":1700000000000002,"count":1}`:                    1700000000000002,
	} {
		if got, err := madeAt([]byte(value)); err != nil || !got.Equal(time.UnixMicro(want)) {
			t.Errorf("%s: got %v, %v", value, got, err)
		}
	}
	for _, value := range []string{`{"count":1}`, `{"ts":"x"}`, `{"ts":12`} {
		if _, err := madeAt([]byte(value)); err == nil {
			t.Errorf("%s was taken", value)
		}
	}
}
