// Package spec is what to run, as pure data: the types of the spec file, its strict parser, defaults, validation and names.
//
// A spec is parsed with the position of every value kept, so that each fault can name file, line and column.
//
// What a field may hold stands in its tags, which the decoder, the JSON Schema and the documentation all read: `default` is
// the value of a missing field, `enum` the allowed words, `min` and `max` inclusive bounds, `spec:"required"` a field that
// must be there, `variant:"WORD"` a reading of `parameters` when `type` is WORD, and `doc` one line for people.
package spec

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a length of time, written as in Go ("100ms", "1m30s").
type Duration time.Duration

// Size is a number of bytes, written as a plain number or with a suffix: k, M, G (powers of 1000) or Ki, Mi, Gi (powers of 1024).
type Size int64

// Secret is a string that may hold references (${env:NAME}, ${env:NAME:-default}, ${file:PATH}). The reference is what is
// stored, printed and logged; Reveal alone gives the value. It is kept behind a pointer, since fmt prints the fields of a struct
// inside a struct without asking it.
type Secret struct{ reference *string }

// Spec is a whole pipeline. String fields hold the values of their references; Document and Normalised keep the references.
type Spec struct {
	File string `yaml:"-" json:"-"`
	// Document is the file without comments, aliases and merge keys; its references are not resolved.
	Document yaml.Node `yaml:"-" json:"-"`

	Pipeline     string           `yaml:"pipeline" spec:"required" doc:"Name: a-z, 0-9 and -, at most 100 characters. It is the consumer group and the prefix of topics and transactional ids."`
	Jobs         int              `yaml:"jobs" default:"1" min:"1" max:"10000" doc:"Number of leases: the greatest parallelism."`
	Kafka        Kafka            `yaml:"kafka" doc:"How to reach the cluster. Not kept in the control topic."`
	Epoch        Epoch            `yaml:"epoch" doc:"When epochs close (dynamic)."`
	Lease        Lease            `yaml:"lease" doc:"How ownership of jobs is held and watched."`
	Standbys     int              `yaml:"standby_replicas" default:"0" min:"0" max:"16" doc:"Warm copies of every state partition on other workers."`
	JobTracker   JobTracker       `yaml:"job_tracker" doc:"Bounds of the state cache (dynamic)."`
	Streams      Map[Stream]      `yaml:"streams" doc:"Every stream of the pipeline by its name."`
	Computations Map[Computation] `yaml:"computations" doc:"Every computation of the pipeline by its name."`
	Dynamic      yaml.Node        `yaml:"dynamic" shape:"DynamicSpec" doc:"First values of what may change while the pipeline runs; same paths as in the spec."`

	broken []Fault // what Parse found, so that Validate does not report its consequences
}

// Entry is one named member of a Map.
type Entry[T any] struct {
	Name  string
	Value T
	Node  *yaml.Node `json:"-"` // of the name
}

// Map is a YAML mapping whose order is the file's.
type Map[T any] []Entry[T]

// Get returns the member of this name, or nil.
func (m Map[T]) Get(name string) *T {
	for i := range m {
		if m[i].Name == name {
			return &m[i].Value
		}
	}
	return nil
}

// Kafka says how to reach the cluster. It is not part of what control keeps.
type Kafka struct {
	Brokers           []string `yaml:"brokers" default:"127.0.0.1:9092" doc:"Addresses host:port of some brokers."`
	TLS               *TLS     `yaml:"tls" doc:"Encrypts the connections; {} uses the system's authorities."`
	SASL              *SASL    `yaml:"sasl" doc:"How to authenticate."`
	Rack              string   `yaml:"rack" doc:"Rack of this worker: follower fetching, and where standbys go."`
	ReplicationFactor int16    `yaml:"replication_factor" default:"-1" min:"-1" max:"1000" doc:"Of created topics; -1 is the broker's default."`
	GroupProtocol     string   `yaml:"group_protocol" default:"classic" enum:"classic,consumer" doc:"Group protocol; consumer is KIP-848."`
}

// TLS names PEM files.
type TLS struct {
	CAFile     string `yaml:"ca_file" doc:"PEM file of the authorities to trust; the system's without it."`
	CertFile   string `yaml:"cert_file" doc:"PEM file of the client certificate."`
	KeyFile    string `yaml:"key_file" doc:"PEM file of the client certificate's key."`
	ServerName string `yaml:"server_name" doc:"Name expected in the broker's certificate."`
}

// SASL is how to authenticate: mechanism plain, scram-sha-256, scram-sha-512 or oauthbearer (the password is the token).
type SASL struct {
	Mechanism string `yaml:"mechanism" spec:"required" enum:"plain,scram-sha-256,scram-sha-512,oauthbearer" doc:"Mechanism."`
	Username  Secret `yaml:"username" doc:"User name; not used by oauthbearer."`
	Password  Secret `yaml:"password" spec:"required" doc:"Password, or the token of oauthbearer; give it as a reference."`
}

// Epoch is when epochs close; dynamic.
type Epoch struct {
	MaxInterval Duration `yaml:"max_interval" default:"100ms" min:"1ms" max:"10m" doc:"Longest time that an epoch stays open."`
	Pace        float64  `yaml:"pace" default:"1.0" min:"0.01" max:"100" doc:"Factor on the worker's budget of transactions."`
	Settle      Duration `yaml:"settle" default:"5ms" min:"0s" max:"10s" doc:"Shortest time from the end of one transaction to the next."`
	MaxRecords  int      `yaml:"max_records" default:"50000" min:"1" max:"10000000" doc:"Most records of an epoch."`
	MaxBytes    Size     `yaml:"max_bytes" default:"64Mi" min:"1Ki" max:"4Gi" doc:"Most bytes of an epoch."`
}

// Lease is how ownership is held and watched.
type Lease struct {
	TTL                Duration `yaml:"ttl" default:"30s" min:"1s" max:"24h" doc:"A job silent for so long is an alarm."`
	ProbeInterval      Duration `yaml:"probe_interval" default:"5s" min:"100ms" max:"1h" doc:"How often an idle job commits a probe."`
	TransactionTimeout Duration `yaml:"transaction_timeout" default:"15s" min:"1s" max:"1h" doc:"When the broker ends a transaction that was left open."`
	StallTimeout       Duration `yaml:"stall_timeout" default:"60s" min:"1s" max:"24h" doc:"A worker whose job hangs for so long leaves and exits."`
	SessionTimeout     Duration `yaml:"session_timeout" default:"10s" min:"100ms" max:"1h" doc:"How long a silent worker keeps its jobs."`
}

// JobTracker bounds the state cache; dynamic.
type JobTracker struct {
	StateCache StateCache `yaml:"state_cache" doc:"Cache of state in each worker."`
}

// StateCache weighs decoded objects and compressed bytes.
type StateCache struct {
	Uncompressed Size `yaml:"uncompressed_cache_weight" default:"100Mi" min:"0" max:"1024Gi" doc:"Bytes of decoded objects."`
	Compressed   Size `yaml:"compressed_cache_weight" default:"1Gi" min:"0" max:"1024Gi" doc:"Bytes of compressed rows."`
}

// Stream is a flow of messages.
type Stream struct {
	Schema     []Column          `yaml:"schema" spec:"required" doc:"Columns in order."`
	Partitions int               `yaml:"partitions" min:"1" max:"10000" doc:"Partitions of an internal stream, 16 unless said; of a source stream, those of its topic."`
	Settings   map[string]string `yaml:"topic_settings" doc:"Kafka settings of the stream's topic."`
}

// Column is one column of a stream or of a grouping.
type Column struct {
	Name       string    `yaml:"name" spec:"required" doc:"Name of the column."`
	Type       string    `yaml:"type" spec:"required" enum:"string,int64,uint64,double,boolean,timestamp,json" doc:"Type of the values."`
	Required   bool      `yaml:"required" default:"false" doc:"Forbids null."`
	Expression string    `yaml:"expression" doc:"In group_by_schema: the value, such as farm_hash(word)."`
	Node       yaml.Node `yaml:"-" json:"-" spec:"node"`
}

// Computation types.
const (
	SwiftOrderedSource     = "swift_ordered_source"
	TransformOrderedSource = "transform_ordered_source"
	SwiftMap               = "swift_map"
	Transform              = "transform"
)

// Computation is a node of the topology.
type Computation struct {
	Type           string               `yaml:"type" spec:"required" enum:"swift_ordered_source,transform_ordered_source,swift_map,transform" doc:"What kind of node it is."`
	Sources        Map[Source]          `yaml:"sources" doc:"Where an ordered source reads, by name."`
	InputStreams   []string             `yaml:"input_stream_ids" doc:"Streams that a swift_map or transform reads."`
	GroupBy        []Column             `yaml:"group_by_schema" doc:"Columns of the key by which the input is partitioned."`
	Process        Process              `yaml:"process" spec:"required" doc:"The process function."`
	OutputStreams  []string             `yaml:"output_stream_ids" doc:"Streams that it writes."`
	Sinks          Map[Sink]            `yaml:"sinks" doc:"Where output streams leave the pipeline, by name."`
	Managers       Map[StateManager]    `yaml:"external_state_managers" doc:"State tables that this computation alone writes, by name."`
	Joiners        Map[StateJoiner]     `yaml:"external_state_joiners" doc:"Tables that this computation reads, by name."`
	OnError        OnError              `yaml:"on_error" doc:"What happens to a message that cannot be processed."`
	SkipIf         string               `yaml:"skip_if" doc:"CEL; input for which it holds is dropped and counted (dynamic)."`
	ProcessingMode string               `yaml:"processing_mode" default:"exactly_once" enum:"exactly_once,at_least_once_consistent" doc:"The second switches off deduplication by message id; transforms only."`
	Parameters     ComputationParameter `yaml:"parameters" doc:"Rarely needed settings."`
	Node           yaml.Node            `yaml:"-" json:"-" spec:"node"`
}

// ComputationParameter are rarely needed settings of a computation.
type ComputationParameter struct {
	RelaxedBatching bool  `yaml:"allow_batching_with_relaxed_guarantees" default:"false" doc:"swift_map only: an output may have several parents."`
	CompactInput    *bool `yaml:"use_compact_input_messages" doc:"true: deduplicate by frontier; false: by a catalog of ids."`
}

// Source is where a source stream comes from. Parameters are read by the source's type, see KafkaSource.
type Source struct {
	Type         string       `yaml:"type" spec:"required" enum:"kafka,kafka_async,static_table,service_log,generator" doc:"Kind of source."`
	OutputStream string       `yaml:"output_stream_id" spec:"required" doc:"Stream that it produces for its computation."`
	Cluster      *Kafka       `yaml:"kafka" doc:"The other cluster of type kafka_async."`
	Parameters   yaml.Node    `yaml:"parameters" doc:"Parameters of the type."`
	Watermark    yaml.Node    `yaml:"watermark" shape:"Watermark" doc:"Event time of the source."`
	Kafka        *KafkaSource `yaml:"-" variant:"kafka"` // filled for type kafka
}

// KafkaSource are the parameters of a source of type kafka.
type KafkaSource struct {
	Topic         string   `yaml:"topic" spec:"required" doc:"Topic to read, read committed."`
	Format        string   `yaml:"format" default:"json" enum:"json,text,raw,avro,protobuf,json_schema,row" doc:"json: object = row; text: one string column; raw: bytes in one string column."`
	Start         string   `yaml:"start" default:"earliest" doc:"Where the first run starts: earliest, latest or an RFC 3339 time."`
	PartitionedBy []string `yaml:"partitioned_by" doc:"Columns by whose key the topic is already partitioned."`
}

// Watermark is the event time of a source.
type Watermark struct {
	Timestamp         string   `yaml:"timestamp" spec:"required" doc:"kafka, or CEL over row such as row.at."`
	MaxOutOfOrderness Duration `yaml:"max_out_of_orderness" default:"0s" min:"0s" doc:"How far event times may run backwards."`
	IdleTimeout       Duration `yaml:"idle_timeout" min:"0s" doc:"After so long at its end a partition no longer holds the watermark."`
	IdleMaxRatio      float64  `yaml:"idle_max_ratio" default:"0.4" min:"0" max:"1" doc:"Greatest share of idle partitions with which the watermark still moves."`
}

// Process names a function and its parameters, which the function itself reads (functions.Build).
type Process struct {
	Function   string    `yaml:"function" spec:"required" doc:"Name of a built-in or registered function."`
	Parameters yaml.Node `yaml:"parameters" doc:"Parameters of the function."`
	Node       yaml.Node `yaml:"-" json:"-" spec:"node"`
}

// Sink is where streams leave the pipeline.
type Sink struct {
	Type         string     `yaml:"type" spec:"required" enum:"kafka,kafka_async,http,clickhouse_batching,clickhouse_sharded,clickhouse_at_least_once,clickhouse_at_most_once,arrival_order_table" doc:"Kind of sink."`
	InputStreams []string   `yaml:"input_stream_ids" spec:"required" doc:"Output streams of its computation that it takes."`
	Cluster      *Kafka     `yaml:"kafka" doc:"The other cluster of type kafka_async."`
	Parameters   yaml.Node  `yaml:"parameters" doc:"Parameters of the type."`
	Kafka        *KafkaSink `yaml:"-" variant:"kafka"` // filled for type kafka
}

// KafkaSink are the parameters of a sink of type kafka.
type KafkaSink struct {
	Topic      string            `yaml:"topic" spec:"required" doc:"Topic to write, in the epoch's transaction."`
	Format     string            `yaml:"format" default:"json" enum:"json,text,raw,avro,protobuf,json_schema,row" doc:"json: object = row; text and raw: one string column."`
	Key        []string          `yaml:"key" doc:"Columns of the record key; null without."`
	Partitions int               `yaml:"partitions" default:"0" min:"0" max:"10000" doc:"Of a topic that has to be created; 0 is the broker's default."`
	Create     *bool             `yaml:"create" default:"true" doc:"Whether a missing topic is created."`
	Settings   map[string]string `yaml:"topic_settings" doc:"Kafka settings of a created topic."`
}

// StateManager is a table outside that one computation alone writes.
type StateManager struct {
	Type       string    `yaml:"type" spec:"required" enum:"kafka_table,postgres_table" doc:"Kind of table."`
	Parameters yaml.Node `yaml:"parameters" doc:"Parameters of the type; path names the table."`
}

// StateJoiner is a table that a computation reads and claims nothing of.
type StateJoiner struct {
	Type       string    `yaml:"type" spec:"required" enum:"kafka_table,postgres_table,clickhouse_table,state" doc:"Kind of table."`
	TTL        Duration  `yaml:"ttl" default:"60s" min:"0s" doc:"How long a loaded row may be used."`
	Parameters yaml.Node `yaml:"parameters" doc:"Parameters of the type."`
}

// OnError is what happens to a message that cannot be processed: "fail" (park and retry), "skip", or {dead_letter: STREAM}.
// Written as a mapping it may also say how often and how fast to try before: {policy: skip, max_attempts: 3, pause: 1s}.
type OnError struct {
	Policy      string    // fail, skip, dead_letter
	DeadLetter  string    // stream
	MaxAttempts int       // before the policy applies; default 1
	Pause       Duration  // between attempts; default 100ms
	Node        yaml.Node `json:"-"`
}

// DynamicSpec is the shape of `dynamic:`: what may change while the pipeline runs, at the paths of the spec.
type DynamicSpec struct {
	Epoch        *Epoch                  `yaml:"epoch" doc:"When epochs close."`
	JobTracker   *JobTracker             `yaml:"job_tracker" doc:"Bounds of the state cache."`
	Computations Map[DynamicComputation] `yaml:"computations" doc:"Computations by name."`
}

// DynamicComputation is what may change in a computation.
type DynamicComputation struct {
	SkipIf string           `yaml:"skip_if" doc:"CEL; input for which it holds is dropped and counted."`
	Sinks  Map[DynamicSink] `yaml:"sinks" doc:"Sinks by name."`
}

// DynamicSink is what may change in a sink.
type DynamicSink struct {
	Parameters yaml.Node `yaml:"parameters" doc:"Dynamic parameters of the sink's type."`
}

// Fault is one thing wrong with a spec.
type Fault struct {
	File         string
	Line, Column int    // from 1; 0 where no position is known
	Path         string // such as computations.split.process.function
	Message      string // what is wrong and what to do
	Warning      bool   // shown, but not refused
}
