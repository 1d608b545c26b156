// Package epoch decides when a job's open epoch closes. It is a pure machine: it has no clock, goroutine or I/O; times come in
// with the events as nanoseconds of any monotonic clock, and what to do goes out.
//
// Processing fills the open epoch in memory. When it closes, it is sent in one transaction while the next one fills; at most one
// epoch is being sent. Closing adapts as a database's group commit does: at once when the inputs are drained and nothing is
// being sent, else when the epoch is full or old; never within Settle of the last end of a transaction (a produce that meets
// unwritten markers waits 20 ms at the broker), and never before the worker's pacer allows another transaction.
//
// Laws: an epoch is closed only if it has work; at most one is being sent; the open one takes no more work
// once it is full.
package epoch

import "time"

// Config is when epochs close.
type Config struct {
	MaxInterval time.Duration // age of the open epoch's first work
	Settle      time.Duration // least time between the end of a transaction and the next close
	MaxRecords  int           // input messages
	MaxBytes    int64         // bytes held by the open epoch
}

// Event is what happened.
type Event uint8

// The events.
const (
	Worked    Event = iota // input was processed: Input.Records and Input.Bytes are what it added
	Looked                 // nothing was processed now: Input.Drained tells whether the inputs are empty
	Committed              // the epoch being sent is committed
	Ended                  // the term ended: nothing of either epoch counts
)

// Input belongs to an event.
type Input struct {
	Now     int64 // nanoseconds
	Records int   // Worked: input messages
	Bytes   int64 // Worked: bytes that the open epoch holds because of them
	Silent  bool  // Worked: it moved source positions only, nothing that a reader waits for
	Drained bool  // Looked: the queues of all stages of the job are empty
	Finish  bool  // Looked: the term is to end: what is open closes at once
	Slot    int64 // Looked: time of the transaction that the worker's pacer has reserved for the open epoch; 0: none yet
}

// Action is what to do now.
type Action struct {
	Close bool  // seal the open epoch and send it
	Ask   bool  // reserve a slot and look again: the epoch may close as soon as the pacer allows it
	Wake  int64 // look again at this time, if nothing happens before; 0: no need
}

// Machine is one term's. The zero Machine with a Config is ready.
type Machine struct {
	Config Config

	records int   // input messages in the open epoch
	bytes   int64 // bytes held by it
	since   int64 // when it got its first work
	loud    bool  // it has something that a reader waits for
	sending bool
	settled int64 // no close before this
	ended   bool
}

// Step takes an event. Only Looked is answered with something to do: whoever tells of work or of a commit looks next.
func (m *Machine) Step(e Event, in Input) Action {
	switch e {
	case Worked:
		if m.records == 0 && m.bytes == 0 && !m.loud {
			m.since = in.Now
		}
		m.records += in.Records
		m.bytes += in.Bytes
		m.loud = m.loud || !in.Silent
	case Committed:
		m.sending = false
		m.settled = in.Now + int64(m.Config.Settle)
	case Ended:
		m.ended = true
	case Looked:
		return m.decide(in)
	}
	return Action{}
}

func (m *Machine) decide(in Input) Action {
	if m.ended || m.empty() || m.sending {
		return Action{}
	}
	if in.Finish {
		return m.close()
	}
	due := m.since + int64(m.Config.MaxInterval)
	if m.Full() || in.Drained && m.loud {
		due = m.since
	}
	if due = max(due, m.settled); in.Now < due {
		return Action{Wake: due}
	}
	switch {
	case in.Slot == 0:
		return Action{Ask: true}
	case in.Now < in.Slot:
		return Action{Wake: in.Slot}
	}
	return m.close()
}

func (m *Machine) close() Action {
	m.records, m.bytes, m.loud, m.sending = 0, 0, false, true
	return Action{Close: true}
}

// Idle tells that nothing is open and nothing is being sent.
func (m *Machine) Idle() bool { return m.empty() && !m.sending }

func (m *Machine) empty() bool { return m.records == 0 && m.bytes == 0 && !m.loud }

// Full tells that the open epoch takes no more input until it has been closed.
func (m *Machine) Full() bool {
	return m.records >= m.Config.MaxRecords || m.bytes >= m.Config.MaxBytes
}

// Sending tells whether an epoch is on its way.
func (m *Machine) Sending() bool { return m.sending }

// Open tells how many input messages the open epoch has.
func (m *Machine) Open() int { return m.records }
