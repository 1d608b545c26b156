package control

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns the JSON of a valid state, with the version of this package.
func (s State) Encode() ([]byte, error) {
	s.Version = Version
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("encode control record: %w", err)
	}
	return json.Marshal(s)
}

// Decode reads what Encode wrote. It refuses other versions and unknown fields: a command that kept only what it knows would
// rewrite the record without them.
func Decode(b []byte) (State, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return State{}, fmt.Errorf("decode control record: %w", err)
	}
	if head.Version != Version {
		return State{}, fmt.Errorf("decode control record: version %d, this program knows %d: use the program that wrote it, or a newer one", head.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var s State
	if err := d.Decode(&s); err != nil {
		return State{}, fmt.Errorf("decode control record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return State{}, errors.New("decode control record: more than one JSON value")
	}
	if err := s.validate(); err != nil {
		return State{}, fmt.Errorf("decode control record: %w", err)
	}
	return s, nil
}

func (s State) validate() error {
	if id, err := hex.DecodeString(s.Incarnation); err != nil || len(id) != 8 {
		return fmt.Errorf("incarnation %q is not 16 hex digits", s.Incarnation)
	}
	if s.Generation == 0 {
		return errors.New("generation 0")
	}
	if s.Jobs < 1 {
		return fmt.Errorf("%d jobs", s.Jobs)
	}
	switch s.Run {
	case Running, Stopped, Paused, Completed:
		if s.Target != "" || s.FenceJobs != 0 {
			return fmt.Errorf("run state %s with a target %q or jobs to fence", s.Run, s.Target)
		}
	case Fencing:
		switch s.Target {
		case Running, Stopped, Paused, Completed:
		default:
			return fmt.Errorf("fencing with target %q", s.Target)
		}
		if s.FenceJobs < s.Jobs {
			return fmt.Errorf("fencing %d of %d jobs", s.FenceJobs, s.Jobs)
		}
	default:
		return fmt.Errorf("run state %q", s.Run)
	}
	for topic, id := range s.Topics {
		if b, err := hex.DecodeString(id); err != nil || len(b) != 16 {
			return fmt.Errorf("topic %s: id %q is not 32 hex digits", topic, id)
		}
	}
	return nil
}
