// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package model checks the switch by trying everything: it searches all states
// that one source, two or three receivers and the switches between them can
// reach, with the same mcast and rc code that serves real packets.
//
// # What can happen
//
// A World is hosts (one rc.QP each), switches (one mcast.Switch each) and
// links, which are queues of packets, one for each direction. In each state one
// of these happens next, and the search tries each of them:
//
//   - the head of a link is delivered, whichever link;
//   - the head of a link is lost or delivered twice, or the packet behind it is
//     delivered first, if the Bounds allow another one;
//   - the next timer of a host or switch fires. That is free when nothing is in
//     flight, or when the timer is already due; else everything in flight has
//     been delayed beyond it, which the Bounds limit;
//   - a receiver posts a receive it has withheld so far (until then it answers
//     RNR NAK), another member begins to send, a member dies for good;
//   - the control plane makes its next change of the members, at one of the
//     switches: removals, joins of queue pairs that are fresh or live on;
//   - the queue of a port is full for a time: copies for it are Unsent.
//
// Time passes only when a timer fires, and only to its deadline.
//
// # What is checked
//
// After every step, at every switch: invariants I1 to I6 of the protocol notes,
// the MSN of every acknowledgement; at every host: that each packet accepted is
// the next one of its source and its bytes are where they belong, and that a
// completion at the sender means that every member not evicted has executed the
// message, or with a quorum that so many have. An acknowledged duplicate is not
// executed. A member that joins counts from the first message that begins after all
// switches have heard of it, or from an earlier one if it is sent that.
//
// Who is evicted, or fails a group, is dead or has answered with a fatal NAK, or
// something on its way was lost or late. A group fails only if too few others are
// left, or if its source is removed with data in flight to somebody who stays; the
// source then learns of it.
//
// Of switches that repair losses: that nobody is acknowledged what is only kept;
// that a frame which is kept is released exactly once, when everybody has it, and no copy is made
// of one that is not there; that the budget holds; that a branch which asked for something gets
// it and what follows in order, and nothing else before; that who is not ready is
// waited for; that what passes again goes to nobody who was sent it and does not lack it first; that
// the same is not sent again more often than allowed; and that the source is not asked for
// what is all there. Where only one branch is faulty, nobody else gets a packet
// twice, and the source sends none twice.
//
// From every state a fair run must complete: one in which nothing more is lost
// or delayed, everything is delivered, receives are posted and timers fire when
// nothing else is left. Two fair schedules are followed, one that prefers data
// and one that prefers feedback. A fair step is one of the steps that the
// search takes anyway, so that at its end every state has its two fair
// successors, and it remains to see that these chains all end.
//
// # How
//
// Breadth first, so that the first violation is a shortest one. A state is the
// concatenation of AppendState of all switches and QPs, with the links, what is
// left of the bounds and what the checks remember. Of a visited state only a 64-bit
// hash is kept (n states collide with probability n²/2^65: 3 in a million for
// 10 million), with that of its parent for the trace.
package model
