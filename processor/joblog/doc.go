// Package joblog has the records of a job log, their encoding and their fold.
//
// The job log of job k is partition k of <pipeline>.jobs: every record ever committed under job k's lease. The last complete
// record is always enough to go on from, so that a reader starts at the end and goes back in growing steps until a Fold that
// was given everything from there to the end is Ready. See docs/formats.md for the bytes.
package joblog
