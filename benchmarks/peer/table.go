package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// row is one line of the table: a figure of a result, of one kind of run.
type row struct {
	title, kind string
	value       func(result) float64
	format      string
}

var rows = []row{
	{"records/s, from the first commit", "drain", func(r result) float64 { return r.PerSecond }, "%.0f"},
	{"records/s, second half", "drain", func(r result) float64 { return r.PerSecondInSecondHalf }, "%.0f"},
	{"seconds to the first commit", "drain", func(r result) float64 { return r.FirstCommit }, "%.2f"},
	{"seconds until all is done", "drain", func(r result) float64 { return r.Drained }, "%.2f"},
	{"CPU of the app, us a record", "drain", func(r result) float64 { return r.AppCPU * 1e6 / float64(r.Records) }, "%.2f"},
	{"CPU of the broker, us a record", "drain", func(r result) float64 { return r.BrokerCPU * 1e6 / float64(r.Records) }, "%.2f"},
	{"CPU of others meanwhile, s", "drain", func(r result) float64 { return r.Any }, "%.1f"},
	{"peak memory draining, MiB", "drain", func(r result) float64 { return float64(r.PeakMemory) }, "%.0f"},
	{"latency p50, ms", "latency", func(r result) float64 { return r.P50 }, "%.1f"},
	{"latency p90, ms", "latency", func(r result) float64 { return r.P90 }, "%.1f"},
	{"latency p99, ms", "latency", func(r result) float64 { return r.P99 }, "%.1f"},
	{"peak memory at the steady rate, MiB", "latency", func(r result) float64 { return float64(r.PeakMemory) }, "%.0f"},
}

func printTable(w io.Writer, out report) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "median\t%s\t%s\tratio\t\n", streamsApp, processorApp)
	for _, r := range rows {
		peer, peers := median(out.Results, streamsApp, r)
		ours, oursN := median(out.Results, processorApp, r)
		if peers+oursN == 0 {
			continue
		}
		ratio := shown("%.2f", ours/peer, min(peers, oursN))
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", r.title, shown(r.format, peer, peers), shown(r.format, ours, oursN), ratio)
	}
	table.Flush()
	for _, r := range out.Results {
		if !r.Exact {
			fmt.Fprintf(w, "WRONG OUTPUTS: %s, %s, round %d\n", r.App, r.Kind, r.Round)
		}
	}
}

// shown is a figure that n runs gave.
func shown(format string, value float64, n int) string {
	if n == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// median of a figure over an app's runs, and how many there were.
func median(results []result, app string, r row) (float64, int) {
	var values []float64
	for _, one := range results {
		if one.App == app && one.Kind == r.kind {
			values = append(values, r.value(one))
		}
	}
	if len(values) == 0 {
		return 0, 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle], len(values)
	}
	return (values[middle-1] + values[middle]) / 2, len(values)
}
