package spec

import "testing"

func TestNamesOfTopicsAndIDs(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		JobsTopic("p"):                 "p.jobs",
		ControlTopic("p"):              "p.control",
		StreamTopic("p", "s", ""):      "p.s",
		StreamTopic("p", "s", "stage"): "p.s.stage",
		StateTopic("p", "stage"):       "p.stage.state",
		OutboxTopic("p", "c", "sink"):  "p.c.sink.outbox",
		JobTransactionalID("p", 3):     "p.job.3",
		ControlTransactionalID("p"):    "p.control",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
