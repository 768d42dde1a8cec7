// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package mcast is the switch itself: the packets of one RC queue pair go out as copies
// to many receivers, and the receivers' feedback goes back as the one stream that the
// sender's RNIC expects.
//
// It is a pure state machine. It gets packets as values, not as bytes, has no clock
// (every call is given the time), starts no goroutines and has no package-level state.
// The same calls give the same output.
//
// # The driver's contract
//
//  1. A Switch belongs to one goroutine at a time.
//  2. Input takes one packet for a group address. If Output.NeedVerify is set,
//     nothing has happened: check the packet's ICRC, drop it if it is wrong,
//     else call Input again with Verified set.
//  3. Send what Output lists, in order: feedback before the next packet's feedback,
//     copies for a leg in the order of the list. An Output with capacity for a copy
//     per leg and MaxResends more, and two feedback packets, makes Input free of
//     allocations. A copy that the port of a leg does not take is given back with
//     Requeue, or is lost as on a link: a full port concerns the members behind it
//     alone. Output.PortRoom prevents copies of retained frames for a full port (R70).
//  4. Call Advance when the time of NextDeadline has come. now never goes
//     backward.
//  5. The driver changes its own tables by GroupID, LegID or MemberID together with the call of Apply.
//  6. A frame with Output.Retained stays unchanged until Output.Freed lists its handle.
//     Any call may list copies of it. The copies of a call are made before its Freed is
//     served.
//  7. Between switches the Src of every packet is the address of the source that the
//     packet belongs to: of data because forwarding does not change Src, of feedback
//     because its PSN is in that source's numbering.
//  8. A group with legs to other switches has sessions with them (R84): SetSession is
//     called for each neighbour of the group after PutGroup, after an operation that adds
//     a leg, and whenever the neighbours' session changes. Output.Reports are sent, with a
//     MAC, and those that come are given to InputReport when MAC, port and L2 source are
//     those of the neighbour.
//  9. Output.Orders, of a group with GroupSpec.FastPath, are carried out in order, when the
//     copies of the call have been sent (R97). What the fast path has forwarded, and the ACKs that it has
//     counted, are reported before any other call for the group (InputForwarded, InputAcked; InputCovered for what
//     all receivers have).
//
// The rules of aggregation are numbered in docs/AGGREGATION.md; comments name
// them as R1, R2 and so on.
//
// # What to read first
//
//   - types.go has the inputs and outputs, switch.go the calls: Apply, Input, Advance and NextDeadline.
//   - data.go serves a packet of the source, forwarding.go lists its copies, feedback.go serves an
//     acknowledgement of a receiver, aggregation.go answers the source. RC.md §6 has these four as pseudo-code.
//   - testdata/R12_DuplicatesAreAnsweredHere is a rule as a conversation; each rule has a file there, and a
//     test in one of the files *rules_test.go.
//   - recovery.go begins local repair, with RC.md §9. recovery_machine.go has its table of states.
//   - tree.go, offload.go and resume.go begin what comes on top: groups over several switches, the fast path,
//     restarts.
//
// # The parts of a group
//
// A group (group.go) is made of parts, each with an invariant of its own:
//
//	source, turn               the current source and its turn                    data.go, turn.go
//	forwarding                 nxt, the window: what copies are made of           forwarding.go, targets.go
//	aggregation, policyParams  acked, the last NAK; for how many it stands        aggregation.go, policy.go
//	receivers                  which legs get copies, and which wait to           receivers.go
//	localRepair                the store, its timer, each leg's state             repair.go, repair_store.go, recovery_machine.go
//	liveness, lagLimit         receivers that are silent, or too far behind       liveness.go
//	numbering                  the verification of receivers' PSNs                numbering.go, verification.go
//	cnpFilter                  which congestion signals pass                      feedback.go
//	gates                      what stops new data of the source, in one word     gates.go
//	refusal                    what the switch answers by a fatal NAK of its own  aggregation.go
//
// The files state*.go write all of a group that packets or time can change, for the model (test/model). outcomes.go
// keeps what a group has decided, cost.go what each member has cost it. explain.go gives a packet to a clone of the
// group, and says why that served it as it did.
//
// # Other ways
//
//   - A driver that checks the ICRC of each packet: that costs more than everything else that is done to one. Only
//     the core knows when it is about to believe a packet. The steady stream is forwarded with an incremental ICRC,
//     so damage stays visible to the receivers.
//   - Everything in flight sent again to a silent receiver: that doubles the load of each receiver that pauses. A
//     probe costs one packet. Probes of one packet alone do not outlive a burst of losses; hence 4, then 16.
//   - A receiver's ACKs, or a list of records that were seen before, as the proof of its numbering: with one PSN too
//     low the first ACK is that of a right numbering, and a list does not outlive a restart. Hence probes, 2^22 below:
//     one just below would be executed by a receiver that was registered too high.
//   - RNR NAKs for a source whose message waits for proofs of receivers: they count against rnr_retry, which some
//     programs set to 0. The source is not answered, and a sequence NAK asks for the message when the last proof
//     is there.
package mcast
