// Package integration holds the processor's promises as seen from outside: the real binary against a real Kafka, under
// kill -9, SIGSTOP and commands that die half way, judged by checkers that share no code with what they judge.
//
//	kafkaserver.go  a real Kafka: an outside one (KAFKA_BROKERS), or one started from a script (KAFKA_SERVER_SCRIPT)
//	process.go      a child process with its log, signals and a bounded end
//	log.go          a log that can be waited on
//	processor.go    the binary, its workers and its commands
//	topics.go       topics, load, reading to the end, waiting for a drained group
//	history.go      per key, the one right sequence of outputs; verdicts missing, doubled, different
//	ledger.go       the ledger's input and the fold that gives its history
//	counts.go       the same for words and for the count-and-sum pipelines
//	changelog.go    the keys that a stage's changelog holds
//	grouplag.go     what Kafka's own tool says about a group
//	spectext.go     specs from examples/specs under other names
//
// The tests' lengths: LEDGER_ENTRIES, RESTART_KEYS, and for long runs SOAK_ENTRIES and SOAK_SECONDS.
package integration
