package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kafka-processor/processor/processor"
	"github.com/kafka-processor/processor/statestore"
)

// recordWriter prints one record.
type recordWriter func(io.Writer, *kgo.Record) error

// recordFormat returns the writer of a --format.
func recordFormat(name string, show processor.StateShower) (recordWriter, error) {
	switch name {
	case "value":
		return writeValue, nil
	case "key-value":
		return writeKeyValue, nil
	case "json":
		return writeJSON, nil
	case "state":
		return func(w io.Writer, r *kgo.Record) error { return writeState(w, r, show) }, nil
	}
	return nil, fmt.Errorf("--format %q is unknown: use value, key-value, json or state", name)
}

func writeValue(w io.Writer, r *kgo.Record) error {
	_, err := fmt.Fprintf(w, "%s\n", r.Value)
	return err
}

func writeKeyValue(w io.Writer, r *kgo.Record) error {
	_, err := fmt.Fprintf(w, "%s\t%s\n", r.Key, r.Value)
	return err
}

// jsonRecord is a line of --format json. Key and value are the record's bytes as strings, null where it has none; bytes that are
// no UTF-8 are in the fields with _base64 instead.
type jsonRecord struct {
	Partition   int32   `json:"partition"`
	Offset      int64   `json:"offset"`
	Timestamp   string  `json:"timestamp"` // RFC 3339, UTC
	Key         *string `json:"key"`
	KeyBase64   string  `json:"key_base64,omitempty"`
	Value       *string `json:"value"`
	ValueBase64 string  `json:"value_base64,omitempty"`
}

func writeJSON(w io.Writer, r *kgo.Record) error {
	j := jsonRecord{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	j.Key, j.KeyBase64 = text(r.Key)
	j.Value, j.ValueBase64 = text(r.Value)
	return writeLine(w, j)
}

func text(b []byte) (*string, string) {
	if b == nil {
		return nil, ""
	}
	if !utf8.Valid(b) {
		return nil, base64.StdEncoding.EncodeToString(b)
	}
	s := string(b)
	return &s, ""
}

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// stateRecord is a line of --format state, a record of a changelog. Value is null where the record deletes the row.
type stateRecord struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	Key       string `json:"key"`
	KeyHex    string `json:"key_hex,omitempty"` // instead of key, where that is no UTF-8
	Schema    string `json:"schema,omitempty"`  // fingerprint, hex
	Value     any    `json:"value"`
	Error     string `json:"error,omitempty"` // why it could not be decoded; key and value are then those of the record, hex
}

func writeState(w io.Writer, r *kgo.Record, show processor.StateShower) error {
	s := stateRecord{Partition: r.Partition, Offset: r.Offset}
	kind, name, key, err := statestore.ParseKey(r.Key)
	if err == nil {
		s.Kind, s.Name = kind.String(), string(name)
		s.Value, s.Schema, err = statePayload(kind, s.Name, r.Value, show)
	}
	switch {
	case err != nil:
		s = stateRecord{Partition: r.Partition, Offset: r.Offset, KeyHex: hex.EncodeToString(r.Key), Value: hex.EncodeToString(r.Value), Error: err.Error()}
	case utf8.Valid(key):
		s.Key = string(key)
	default:
		s.KeyHex = hex.EncodeToString(key)
	}
	return writeLine(w, s)
}

// statePayload decodes the value of a changelog record. How a payload is laid out follows from the function that owns the state: where
// control tells which that is, its fields are shown, else the payload's bytes as hex.
func statePayload(kind statestore.Kind, name string, value []byte, show processor.StateShower) (payload any, schema string, err error) {
	if len(value) == 0 {
		return nil, "", nil
	}
	fingerprint, b, err := statestore.ParseValue(value)
	if err != nil {
		return nil, "", err
	}
	schema = fmt.Sprintf("%016x", fingerprint)
	if kind == statestore.KindState && show != nil {
		payload, err = show(name, fingerprint, b)
		return payload, schema, err
	}
	return hex.EncodeToString(b), schema, nil
}

// startAt is where reading begins; the zero time and offset -1 with latest unset mean the earliest record.
type startAt struct {
	latest bool
	offset int64
	time   time.Time
}

// parseStart reads earliest, latest, an offset or an RFC 3339 time.
func parseStart(text string) (startAt, error) {
	s := startAt{offset: -1}
	switch text {
	case "earliest":
		return s, nil
	case "latest":
		s.latest = true
		return s, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		s.offset = n
		return s, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return s, fmt.Errorf("--from %q is neither earliest, latest, an offset nor an RFC 3339 time such as 2026-11-30T12:00:00Z", text)
	}
	s.time = t
	return s, nil
}
