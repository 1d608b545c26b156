package spec

import (
	"net"
	"strconv"
	"time"
)

// Limits that a broker has unless it is configured otherwise.
const (
	brokerMaxTransaction = Duration(15 * time.Minute) // transaction.max.timeout.ms
	brokerMinSession     = Duration(6 * time.Second)  // group.min.session.timeout.ms
	brokerMaxSession     = Duration(30 * time.Minute) // group.max.session.timeout.ms
)

// bounds checks values against each other; those of one field alone stand in its tags.
func (v *validator) bounds() {
	e, l := v.s.Epoch, v.s.Lease
	lease := func(field string) path { return path{"lease", field} }
	if e.Settle > e.MaxInterval {
		v.fault(path{"epoch", "settle"}, "epoch.settle %s is longer than epoch.max_interval %s", e.Settle, e.MaxInterval)
	}
	if l.TransactionTimeout <= e.MaxInterval {
		v.fault(lease("transaction_timeout"), "lease.transaction_timeout %s must be longer than epoch.max_interval %s", l.TransactionTimeout, e.MaxInterval)
	}
	if l.TransactionTimeout >= l.TTL {
		v.fault(lease("transaction_timeout"), "lease.transaction_timeout %s must be shorter than lease.ttl %s", l.TransactionTimeout, l.TTL)
	}
	if l.TransactionTimeout > brokerMaxTransaction {
		v.warn(lease("transaction_timeout"), "brokers refuse transactions longer than transaction.max.timeout.ms, %s unless configured", brokerMaxTransaction)
	}
	if l.ProbeInterval >= l.TTL {
		v.fault(lease("probe_interval"), "lease.probe_interval %s must be shorter than lease.ttl %s", l.ProbeInterval, l.TTL)
	}
	if l.StallTimeout <= l.TransactionTimeout {
		v.fault(lease("stall_timeout"), "lease.stall_timeout %s must be longer than lease.transaction_timeout %s", l.StallTimeout, l.TransactionTimeout)
	}
	if l.StallTimeout <= e.MaxInterval {
		v.fault(lease("stall_timeout"), "lease.stall_timeout %s must be longer than epoch.max_interval %s", l.StallTimeout, e.MaxInterval)
	}
	if l.SessionTimeout < brokerMinSession || l.SessionTimeout > brokerMaxSession {
		v.warn(lease("session_timeout"), "brokers take session timeouts from %s to %s unless configured; this is %s", brokerMinSession, brokerMaxSession, l.SessionTimeout)
	}
}

// jobsAndPartitions warns of jobs that own nothing: partition p of any stage belongs to job p mod jobs.
func (v *validator) jobsAndPartitions() {
	most := 0
	for _, s := range v.s.Streams {
		if !v.isSource(s.Name) && len(v.readingStages(s.Name)) > 0 {
			most = max(most, s.Value.Partitions)
		}
	}
	if most > 0 && v.s.Jobs > most {
		v.warn(path{"jobs"}, "%d jobs, but no internal stream has more than %d partitions; jobs above that have work only if a source topic has more", v.s.Jobs, most)
	}
}

// connection checks the kafka block.
func (v *validator) connection() {
	k := v.s.Kafka
	if len(k.Brokers) == 0 {
		v.fault(path{"kafka", "brokers"}, "brokers must not be empty")
	}
	for i, b := range k.Brokers {
		host, port, err := net.SplitHostPort(b)
		if n, portErr := strconv.Atoi(port); err != nil || portErr != nil || host == "" || n < 1 || n > 65535 {
			v.fault(path{"kafka", "brokers", i}, "broker %q is not host:port", b)
		}
	}
	if k.ReplicationFactor == 0 {
		v.fault(path{"kafka", "replication_factor"}, "replication_factor is -1 (the broker's default) or at least 1")
	}
	if t := k.TLS; t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		v.fault(path{"kafka", "tls"}, "tls needs cert_file and key_file together")
	}
	if a := k.SASL; a != nil {
		if a.Username.Empty() && a.Mechanism != "oauthbearer" && a.Mechanism != "" {
			v.fault(path{"kafka", "sasl"}, "sasl mechanism %s needs username", a.Mechanism)
		}
		if a.Password.Literal() {
			v.warn(path{"kafka", "sasl", "password"}, "the password stands in the file; write a reference such as ${env:KAFKA_PASSWORD}")
		}
	}
}

// dynamic checks that the dynamic block speaks of what exists.
func (v *validator) dynamic() {
	var d DynamicSpec
	if v.s.Dynamic.Kind == 0 || Refused(Decode(v.s.File, "dynamic", &v.s.Dynamic, &d)) {
		return
	}
	for _, c := range d.Computations {
		at := path{"dynamic", "computations", c.Name}
		static := v.s.Computations.Get(c.Name)
		if static == nil {
			v.fault(at, "unknown computation %q%s", c.Name, didYouMean(c.Name, v.computationNames()))
			continue
		}
		for _, s := range c.Value.Sinks {
			if static.Sinks.Get(s.Name) == nil {
				v.fault(append(at, "sinks", s.Name), "computation %s has no sink %q", c.Name, s.Name)
			}
		}
	}
}
