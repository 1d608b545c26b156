// Package control is the content of the topic <pipeline>.control and the machine of the commands that write it.
//
// Control is written only under one transactional id: fence it, read to the end, write. So a write is a compare-and-set: what
// was read is what is replaced, or the write fails as fenced.
//
// A Command is pure: a driver feeds an Event, carries out the Action that comes back and feeds what came of it. A command that
// ends work goes in three parts: write generation g+1 as fencing; for every job's id from 0 to FenceJobs-1, take the id and
// commit a fence record of generation g+1 under it; write the final state, of the same generation. From then on nothing of an
// older generation can commit, however late it wakes: its lease is gone, and acquiring again shows it the newer generation.
//
// Laws:
//  1. A command says Done only when what it wants is true and is in control.
//  2. No final state is written over an unfinished fencing: whoever finds one finishes it first, in the name of who began it.
//  3. A command whose generation was followed by another says Superseded.
//  4. An unknown outcome is settled by reading control again: State.By tells a command its own record.
//  5. No fence record is committed into a log that knows a newer generation.
package control
