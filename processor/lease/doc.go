// Package lease is the machine of acquiring and losing one job's lease, and the verdict on every Kafka error along the way.
//
// It is pure: no clock, no goroutine, no I/O. A driver feeds an Event, carries out the one Action that comes back, and feeds
// what came of it. The way of an acquisition:
//
//	Assigned         -> ReadControl      a stale worker must not fence a good holder for nothing
//	ControlRead      -> InitProducerID   fences the holder before, and ends what it left open
//	Initialized      -> ReadLog          the job log to its end, and control once more
//	LogRead          -> CommitAcquired   term t+1 of generation g; fenced here means that another was faster
//	AcquiredCommitted-> Restore          only now offsets are read and state is loaded
//	Restored         -> Run
//
// Whatever goes wrong ends the term the same way: DropTerm, then Released, and only then the next thing: AwaitHeartbeat and all
// over again as long as the group still assigns the job; StandDown when the job is no longer the worker's or control says
// otherwise; LeaveGroup when this worker can never hold it.
//
// Laws:
//  1. Nothing commits data before the acquired record of its term is committed, and nothing of a term outlives DropTerm.
//  2. Generation g acquires only while control, read both before and after fencing, says that g runs, and the job log knows no
//     newer one.
//  3. Being fenced is never final: the machine tries again while a heartbeat newer than the failure still assigns the job, so
//     that two workers which fence each other, or a command that dies, leave no job without a holder.
//  4. An unknown outcome is neither success nor failure: the log, read after fencing, says which it was.
//
// The laws are checked by an exhaustive search over worlds of two workers and a command line, each running these machines, in
// the tests of this package; each rule taken away shows the shortest way in which its law breaks.
package lease
