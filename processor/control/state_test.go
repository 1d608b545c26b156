package control

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/kafka-processor/processor/processor/lease"
)

func sample() State {
	return State{Version: Version, Incarnation: "00ff00ff00ff00ff", Generation: 7, Run: Fencing, Target: Running, FenceJobs: 4, Jobs: 2, Spec: "pipeline: p\n",
		DynamicVersion: 3, Dynamic: "epoch: {}\n", Topics: map[string]string{"p.jobs": "000102030405060708090a0b0c0d0e0f"},
		Schemas: map[string]string{"words": "[]"}, Lines: map[string]uint32{"split": 2}, Since: 1700000000000, By: "stop host 12"}
}

func TestStateSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	b, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Fatalf("%v\n%+v\n%+v", err, got, sample())
	}
	const frozen = `{"version":1,"incarnation":"00ff00ff00ff00ff","generation":7,"run":"fencing","target":"running","fence_jobs":4,"jobs":2,` +
		`"spec":"pipeline: p\n","dynamic_version":3,"dynamic":"epoch: {}\n","topics":{"p.jobs":"000102030405060708090a0b0c0d0e0f"},` +
		`"schemas":{"words":"[]"},"lines":{"split":2},"since":1700000000000,"by":"stop host 12"}`
	if string(b) != frozen {
		t.Errorf("encoding has changed:\n%s\n%s", b, frozen)
	}
}

func TestDecodeRefusesWhatItWouldLoseOrMisread(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"unknown field":          func(m map[string]any) { m["pace"] = 1 },
		"newer version":          func(m map[string]any) { m["version"] = 2; m["pace"] = 1 },
		"no version":             func(m map[string]any) { delete(m, "version") },
		"no generation":          func(m map[string]any) { delete(m, "generation") },
		"run state":              func(m map[string]any) { m["run"] = "walking" },
		"fencing without target": func(m map[string]any) { delete(m, "target") },
		"fencing to fencing":     func(m map[string]any) { m["target"] = "fencing" },
		"fencing too few":        func(m map[string]any) { m["fence_jobs"] = 1 },
		"target while stopped":   func(m map[string]any) { m["run"] = "stopped" },
		"no jobs":                func(m map[string]any) { m["jobs"] = 0 },
		"incarnation":            func(m map[string]any) { m["incarnation"] = "1" },
		"topic id":               func(m map[string]any) { m["topics"] = map[string]any{"t": "xy"} },
	} {
		b, _ := sample().Encode()
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b, _ = json.Marshal(m)
		if s, err := Decode(b); err == nil || !strings.HasPrefix(err.Error(), "decode control record: ") {
			t.Errorf("%s: decoded %+v, %v", name, s, err)
		}
	}
	b, _ := sample().Encode()
	for _, s := range []string{"", "{", string(b) + "{}"} {
		if _, err := Decode([]byte(s)); err == nil {
			t.Errorf("decoded %q", s)
		}
	}
	if _, err := (State{}).Encode(); err == nil {
		t.Error("encoded an empty state")
	}
}

func FuzzDecode(f *testing.F) {
	b, _ := sample().Encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatalf("decoded %q, which cannot be encoded: %v", b, err)
		}
		if s2, err := Decode(again); err != nil || !reflect.DeepEqual(normal(s), normal(s2)) {
			t.Fatalf("%v\n%+v\n%+v", err, s, s2)
		}
	})
}

// normal takes empty maps for none.
func normal(s State) State {
	if len(s.Topics) == 0 {
		s.Topics = nil
	}
	if len(s.Schemas) == 0 {
		s.Schemas = nil
	}
	if len(s.Lines) == 0 {
		s.Lines = nil
	}
	return s
}

// drive feeds events and compares the kinds of the answers.
func drive(t *testing.T, c *Command, steps ...any) Action {
	t.Helper()
	var a Action
	for i := 0; i < len(steps); i += 2 {
		a = c.Step(steps[i].(Event))
		if want := steps[i+1].(ActionKind); a.Kind != want {
			t.Fatalf("step %d: action %d (%s), want %d", i/2, a.Kind, a.Reason, want)
		}
	}
	return a
}

func found(s State) Event { return Event{Kind: Read, Found: true, State: s} }

func runs(generation uint64, r Run) State { return State{Generation: generation, Run: r, Jobs: 1} }

// A command whose own write was in doubt knows it again, and says that it was done, not that it was so before.
func TestCommandKnowsItsOwnRecordAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []CommandKind{Start, Create} {
		c := NewCommand(kind, Params{By: "me", State: runs(0, "")})
		read := Event{Kind: Read}
		if kind == Start {
			read = found(runs(1, Stopped))
		}
		a := drive(t, &c, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, read, WriteControl,
			Event{Kind: Failed, Verdict: lease.Unknown}, FenceControl, Event{Kind: ControlFenced}, ReadControl)
		mine := c.pending
		other := mine
		other.By = "other"
		theirs := c
		drive(t, &c, found(mine), Done)
		drive(t, &theirs, found(other), AlreadySo)
		if a.Attempt != 0 || mine.By != "me" {
			t.Errorf("attempt %d, by %s", a.Attempt, mine.By)
		}
	}
}

// apply fences the old ids and the new ones, keeps the run state, and takes over the new spec.
func TestApplyFencesOldAndNewIds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ old, new, fence int32 }{{1, 3, 3}, {3, 1, 3}} {
		before := State{Generation: 4, Run: Paused, Jobs: c.old, Spec: "old", Incarnation: "i"}
		m := NewCommand(Apply, Params{By: "me", State: State{Jobs: c.new, Spec: "new", Lines: map[string]uint32{"a": 2}}})
		a := drive(t, &m, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(before), WriteControl)
		if s := a.State; s.Run != Fencing || s.Target != Paused || s.FenceJobs != c.fence || s.Jobs != c.new || s.Generation != 5 || s.Spec != "new" || s.Incarnation != "i" {
			t.Errorf("fencing state %+v", s)
		}
		a = m.Step(Event{Kind: Written})
		for k := range c.fence {
			if a.Kind != FenceJob || a.Job != k {
				t.Fatalf("action %d of job %d, want fencing of %d", a.Kind, a.Job, k)
			}
			if a = m.Step(Event{Kind: JobFenced, LogGeneration: 4}); a.Kind != CommitFence || a.Generation != 5 {
				t.Fatalf("action %d generation %d", a.Kind, a.Generation)
			}
			a = m.Step(Event{Kind: FenceCommitted})
		}
		if s := a.State; a.Kind != WriteControl || s.Run != Paused || s.Target != "" || s.FenceJobs != 0 || s.Generation != 5 || s.Lines["a"] != 2 {
			t.Errorf("final %d %+v", a.Kind, s)
		}
		drive(t, &m, Event{Kind: Written}, Done)
	}
}

func TestCommandsRefuseWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind CommandKind
		read Event
		want ActionKind
	}{
		{Stop, Event{Kind: Read}, Refusal},
		{Start, found(runs(3, Completed)), Refusal},
		{Start, found(runs(3, Running)), AlreadySo},
		{Stop, found(runs(3, Stopped)), AlreadySo},
		{Stop, found(runs(3, Completed)), AlreadySo},
		{Pause, found(runs(3, Stopped)), AlreadySo},
		{Complete, found(runs(3, Completed)), AlreadySo},
		{Create, found(runs(3, Stopped)), AlreadySo},
		{0, found(runs(3, Stopped)), Refusal},
		{Stop, Event{Kind: Failed, Verdict: lease.Fatal}, Refusal},
		{Stop, Event{Kind: Written}, Refusal},
	} {
		m := NewCommand(c.kind, Params{})
		a := drive(t, &m, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, c.read, c.want)
		if (a.Kind == Refusal) != (a.Reason != "") && c.read.Kind != Failed {
			t.Errorf("%+v: reason %q", c, a.Reason)
		}
	}
}

// A command gives up, and says so, after a bounded number of failures.
func TestCommandGivesUp(t *testing.T) {
	t.Parallel()
	m := NewCommand(Stop, Params{})
	a := m.Step(Event{Kind: Begin})
	n := 0
	for ; a.Kind == FenceControl && n < 1000; n++ {
		a = m.Step(Event{Kind: Failed, Verdict: lease.Retry, Reason: "timeout"})
	}
	if a.Kind != Refusal || n != MaxAttempts || !strings.Contains(a.Reason, "timeout") {
		t.Errorf("after %d failures: action %d, %s", n, a.Kind, a.Reason)
	}
}

// begunStop is a stop that has written generation 2 as fencing, and waits for the id of job 0.
func begunStop(t *testing.T) (Command, State) {
	t.Helper()
	c := NewCommand(Stop, Params{By: "me"})
	before := runs(1, Running)
	before.Jobs = 2
	a := drive(t, &c, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(before), WriteControl)
	drive(t, &c, Event{Kind: Written}, FenceJob)
	return c, a.State
}

func TestCommandThatWasOvertakenSaysSo(t *testing.T) {
	t.Parallel()
	c, _ := begunStop(t)
	a := drive(t, &c, Event{Kind: Failed, Verdict: lease.Fenced}, ReadControl, found(runs(3, Running)), Superseded)
	if a.State.Generation != 3 {
		t.Errorf("superseded by generation %d", a.State.Generation)
	}
}

// A first record that was surely not written is nobody's: the command starts over, whatever was written since.
func TestCommandWhoseFirstRecordFailedStartsOver(t *testing.T) {
	t.Parallel()
	c := NewCommand(Stop, Params{By: "me"})
	a := drive(t, &c, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(runs(1, Running)), WriteControl,
		Event{Kind: Failed, Verdict: lease.Fenced}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(runs(5, Running)), WriteControl)
	if a.State.Generation != 6 || a.State.Run != Fencing {
		t.Errorf("%+v", a.State)
	}
}

// The own record in doubt did not count, another command took its generation: its fencing is finished, and then comes this one's.
func TestCommandFinishesAnothersFencingOfTheSameGeneration(t *testing.T) {
	t.Parallel()
	c := NewCommand(Stop, Params{By: "me"})
	a := drive(t, &c, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(runs(1, Running)), WriteControl)
	theirs := a.State
	theirs.By, theirs.Target = "other", Running
	a = drive(t, &c, Event{Kind: Failed, Verdict: lease.Unknown}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(theirs), FenceJob,
		Event{Kind: JobFenced}, CommitFence, Event{Kind: FenceCommitted}, WriteControl)
	if a.State.By != "other" || a.State.Run != Running || a.State.Generation != 2 {
		t.Errorf("finished as %+v", a.State)
	}
	a = drive(t, &c, Event{Kind: Written}, WriteControl)
	if a.State.By != "me" || a.State.Generation != 3 || a.State.Target != Stopped {
		t.Errorf("then %+v", a.State)
	}
}

// Half-way through one fencing another is found: it begins with the first id.
func TestAnotherFencingBeginsWithTheFirstId(t *testing.T) {
	t.Parallel()
	c := NewCommand(Start, Params{By: "me"})
	dead := State{Generation: 2, Run: Fencing, Target: Stopped, FenceJobs: 3, Jobs: 3, By: "dead"}
	drive(t, &c, Event{Kind: Begin}, FenceControl, Event{Kind: ControlFenced}, ReadControl, found(dead), FenceJob,
		Event{Kind: JobFenced}, CommitFence, Event{Kind: FenceCommitted}, FenceJob)
	same := c
	if a := drive(t, &same, Event{Kind: Failed, Verdict: lease.Fenced}, ReadControl, found(dead), FenceJob); a.Job != 1 {
		t.Errorf("the same fencing goes on with job %d", a.Job)
	}
	dead.Generation = 4
	if a := drive(t, &c, Event{Kind: JobFenced, LogGeneration: 4}, ReadControl, found(dead), FenceJob); a.Job != 0 {
		t.Errorf("another fencing begins with job %d", a.Job)
	}
}
