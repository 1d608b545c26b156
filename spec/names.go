package spec

import (
	"strconv"
	"strings"
)

// Names of topics and transactional ids; all begin with the pipeline's name.

// JobsTopic is the topic of the job logs.
func JobsTopic(pipeline string) string { return pipeline + ".jobs" }

// ControlTopic holds the spec in force and the run state.
func ControlTopic(pipeline string) string { return pipeline + ".control" }

// StreamTopic is the topic of an internal stream; stage is the reading stage where several read the stream, else "".
func StreamTopic(pipeline, stream, stage string) string {
	if stage == "" {
		return pipeline + "." + stream
	}
	return pipeline + "." + stream + "." + stage
}

// StateTopic is the changelog of a stage.
func StateTopic(pipeline, stage string) string { return pipeline + "." + stage + ".state" }

// OutboxTopic holds an asynchronous sink's messages between commit and delivery.
func OutboxTopic(pipeline, computation, sink string) string {
	return pipeline + "." + computation + "." + sink + ".outbox"
}

// JobTransactionalID is the transactional id under which job commits: its lease.
func JobTransactionalID(pipeline string, job int) string {
	return pipeline + ".job." + strconv.Itoa(job)
}

// ControlTransactionalID is the transactional id under which control is written.
func ControlTransactionalID(pipeline string) string { return pipeline + ".control" }

// longestTopic is Kafka's limit on the length of a topic's name.
const longestTopic = 249

// reservedNames would make topics that mean something else.
var reservedNames = []string{"jobs", "control", "state", "outbox"}

// consistsOf reports whether name is not empty and has only characters of alphabet.
func consistsOf(name, alphabet string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(alphabet, r) })
}

const (
	digits         = "0123456789"
	lowerLetters   = "abcdefghijklmnopqrstuvwxyz"
	pipelineRunes  = lowerLetters + digits + "-"
	nameRunes      = lowerLetters + digits + "_-"
	kafkaNameRunes = nameRunes + "ABCDEFGHIJKLMNOPQRSTUVWXYZ."
)
