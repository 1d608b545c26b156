// Package dedup is both ends of a swift stream: the Chain of the sender, which links every record to the one handed to the
// producer before it, and the Frontier of the receiver, which by that link tells new records from repeated ones and from those
// that follow a hole.
//
// A swift record becomes visible at once, outside any transaction. An attempt that fails is followed by another which makes
// the same outputs again, with the same ids and in the same order; a zombie may write old ones at any time. So the log of one
// target partition holds, for each origin partition, interleaved runs of growing ids. The rules:
//
//	id <= frontier                        duplicate
//	predecessor > frontier                gap: a batch before it was lost; the replay comes later in the log
//	no frontier yet, not start of attempt gap
//	otherwise                             accept, and the frontier becomes the id
//
// The predecessor is what the attempt last handed to the producer, not what was last acknowledged: else a lost record hides
// behind the one before it. The link is compared with <=, not with equality: a replay may leave out what a filter or the log's
// compaction took away since. The frontier sees every record before any filter does: else a filtered record looks like a hole.
//
// Code, spec or partitions that change would make other outputs under the same ids, so they change the fingerprint (its line),
// and records of a fingerprint which was not accepted are foreign: dropped and counted.
//
// Each of these rules taken away loses or repeats a message; the exhaustive search in this package's tests shows how.
package dedup
