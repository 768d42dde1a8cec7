// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package model checks the switch exhaustively: it searches all states that one source,
// two or three receivers and the switches between them can reach, with the same mcast and
// rc code that serves real packets.
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
//     switches: removals, joins of queue pairs that are fresh or live on; where the
//     change is stored, hosts hear of it when it is durable, and a restart before
//     takes it back;
//   - the queue of a port is full for a time: copies for it are requeued;
//   - a fast path and its driver do their next atomic step (fastpath.go), and the driver
//     takes a fast path back without a reason of the switch's, as when no data comes.
//
// Time passes only when a timer fires, and only to its deadline.
//
// # What is checked
//
// After every step these are checked at every switch: invariants I1 to I6
// (docs/AGGREGATION.md), and the MSN of every acknowledgement. At every host: each packet
// accepted is the next one of its source, and its bytes are in their place. A completion
// at the sender means that every member not evicted has executed the message, or with a
// quorum that a quorum has. An acknowledged duplicate is not executed. A member that
// joins counts from the first message that begins after all switches have made the
// change, or from an earlier one if that is sent to it.
//
// A member is evicted, or makes a group fail, only if it is dead, if it has answered with
// a fatal NAK, or if a packet on its way was lost or delayed. A group fails only if too
// few others are left, or if its source is removed with data in flight to a remaining
// member; the source then learns of it.
//
// Switches that repair losses have further properties. No packet is acknowledged for
// being retained. A retained frame is freed exactly once, when every receiver has it, and
// no copy is made of a frame that is not retained. The budget holds. A leg that sent a
// NAK gets the packet named and its successors in order, and nothing else before. A
// receiver that is not ready is waited for. Data that the source repeats goes to no leg
// that was sent it and does not lack it first. The number of resends of the same packet
// is bounded. The source is not asked for packets that are all retained. Where only one
// leg is faulty, no other leg gets a packet twice, and the source sends none twice.
//
// A fast path sends each leg consecutive packets, and none to a leg that recovers; what it
// has taken is reported before anything else is given to the switch. Grants, take-backs for
// each reason, idle ones and legs that fall behind are searched with losses, which are gaps
// and the source's rewinds ("fast", "fast-losses"), reordering ("fast-strict"), late packets
// ("fast-late", "fast-idle-late"), full rings ("fast-ring"), receivers that are not ready
// ("fast-rnr"), deaths ("fast-death", "fast-quorum"), changes of the source ("fast-turns",
// "fast-sources", "fast-fair"), members that leave and join ("fast-rejoin"), trees
// ("fast-rack", "fast-leaves"), a tree that becomes another one ("fast-rebuild") and
// restarts ("fast-restart"). Those with "idle" in their name have idle take-backs, too.
//
// From every state a fair run must complete: a run in which nothing more is lost or
// delayed, every packet is delivered, receives are posted, and timers fire when nothing
// else is left. Two fair schedules are followed, one that prefers data and one that
// prefers feedback. A fair step is one of the steps that the search takes anyway, so that
// after the search every state has its two fair successors, and it remains to check that
// these chains all end.
//
// # How
//
// Breadth first, so that the first violation is a shortest one. A state is the
// concatenation of AppendState of all switches and QPs, with the links, the remaining
// bounds and the records of the checks. Of a visited state only a 64-bit hash is stored
// (n states collide with probability n²/2^65: 3 in a million for 10 million), with that
// of its parent for the trace.
package model
