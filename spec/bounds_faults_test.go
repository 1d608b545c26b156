package spec

import (
	"testing"
)

func TestValuesThatContradictEachOtherAreRefused(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"epoch and lease", []string{"jobs: 2", "epoch: {max_interval: 20s, settle: 10s}\nlease: {ttl: 5s, probe_interval: 5s, stall_timeout: 15s}"}, `
3:1: lease.transaction_timeout 15s must be longer than epoch.max_interval 20s
3:1: lease.transaction_timeout 15s must be shorter than lease.ttl 5s
3:34: lease.probe_interval 5s must be shorter than lease.ttl 5s
3:53: lease.stall_timeout 15s must be longer than lease.transaction_timeout 15s
3:53: lease.stall_timeout 15s must be longer than epoch.max_interval 20s
`},
		{"settle", []string{"jobs: 2", "epoch: {max_interval: 10ms, settle: 20ms}"}, `
2:37: epoch.settle 20ms is longer than epoch.max_interval 10ms
`},
		{"long transactions and sessions", []string{"jobs: 2", "lease: {ttl: 1h, transaction_timeout: 20m, stall_timeout: 1h, session_timeout: 1s}"}, `
2:39: warning: brokers refuse transactions longer than transaction.max.timeout.ms, 15m0s unless configured
2:80: warning: brokers take session timeouts from 6s to 30m0s unless configured; this is 1s
`},
		{"brokers", []string{"[\"127.0.0.1:9092\"]", "[a, \"b:0\", \":1\", \"c:9092\"]"}, `
3:19: broker "a" is not host:port
3:22: broker "b:0" is not host:port
3:29: broker ":1" is not host:port
`},
		{"no brokers", []string{"[\"127.0.0.1:9092\"]", "[]"}, `
3:9: brokers must not be empty
`},
		{"replication", []string{"kafka: {", "kafka: {replication_factor: 0, "}, `
3:29: replication_factor is -1 (the broker's default) or at least 1
`},
		{"tls and sasl", []string{"kafka: {", "kafka: {tls: {cert_file: a}, sasl: {mechanism: plain, password: literal}, "}, `
3:9: tls needs cert_file and key_file together
3:30: sasl mechanism plain needs username
3:65: warning: the password stands in the file; write a reference such as ${env:KAFKA_PASSWORD}
`},
		{"sasl of an unknown mechanism", []string{"kafka: {", "kafka: {sasl: {mechanism: scram, username: u, password: \"${env:SPEC_TEST_UNSET:-x}\"}, "}, `
3:27: unknown mechanism "scram"; known are plain, scram-sha-256, scram-sha-512, oauthbearer
`},
	})
}
