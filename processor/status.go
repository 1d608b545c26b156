package processor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kafka-processor/processor/processor/control"
	"github.com/kafka-processor/processor/processor/joblog"
)

// JobStatus is a job as this worker sees it.
type JobStatus struct {
	ID       int32            `json:"job"`
	Label    string           `json:"-"`
	Phase    string           `json:"phase"`
	Term     uint64           `json:"term,omitempty"`
	Error    string           `json:"last_error,omitempty"` // of the last term or attempt that failed
	Stats    []joblog.Stats   `json:"stats,omitempty"`
	Troubles []joblog.Trouble `json:"troubles,omitempty"`
}

// Jobs lists the jobs that the group has assigned to this worker.
func (w *Worker) Jobs() []JobStatus {
	w.mu.Lock()
	jobs := make([]*job, 0, len(w.jobs))
	for _, j := range w.jobs {
		jobs = append(jobs, j.job)
	}
	w.mu.Unlock()
	out := make([]JobStatus, 0, len(jobs))
	for _, j := range jobs {
		s := JobStatus{ID: j.id, Label: strconv.Itoa(int(j.id))}
		if p := j.phase.Load(); p != nil {
			s.Phase = *p
		}
		if p := j.lastError.Load(); p != nil {
			s.Error = *p
		}
		if t := j.current.Load(); t != nil {
			s.Term = t.number
			if p := t.statistics.Load(); p != nil {
				s.Stats = *p
			}
			if p := t.troubles.Load(); p != nil {
				s.Troubles = *p
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b JobStatus) int { return int(a.ID - b.ID) })
	return out
}

// Ready tells whether the pipeline runs and every job of this worker processes; why says what is missing.
func (w *Worker) Ready() (ok bool, why string) {
	if s := w.state.Load(); s == nil {
		return false, "control has not been read yet"
	} else if s.Run != control.Running {
		return false, "the pipeline is " + string(s.Run) + " since " + when(s.Since)
	}
	if !w.ready.Load() {
		return false, "not a member of the group"
	}
	var waiting []string
	for _, j := range w.Jobs() {
		if j.Phase != "running" {
			waiting = append(waiting, "job "+j.Label+" is "+j.Phase)
		}
	}
	return len(waiting) == 0, strings.Join(waiting, ", ")
}

// difference shows the lines that only one of two texts has.
func difference(old, new string) string {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	var out []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			out = append(out, "+ "+l)
		}
	}
	if len(out) > 40 {
		out = append(out[:40], "...")
	}
	return strings.Join(out, "\n")
}
