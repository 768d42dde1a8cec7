// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package endpoint is the host side of Gleam: RDMA devices behind one
// interface, and joining a multicast group with one queue pair.
//
// A [Device] registers memory and makes reliable connected queue pairs.
// Package host/endpoint/soft implements it on a packet socket, with the protocol in
// user space, and package host/endpoint/verbs on libibverbs, for RNICs and the
// kernel's soft-RoCE. Because of the latter work requests name registered memory
// ([Segment]) and PSNs are chosen before the connection, as ibv_modify_qp wants
// them. Package test/endpointtest has the tests that both must pass.
//
// A group has one master and any number of members ([Master], [Member]). Every
// member, the master included, connects its queue pair to the same virtual
// peer (GroupIP, virtual QPN). The master collects the members' connection
// states over TCP (package host/endpoint/oob) and registers the group with the
// switch by envelopes (package envelope); members confirm to it. Then any SEND
// or WRITE that one member posts reaches all others.
//
// Every method that waits takes a context. When the context of a join ends, the join is
// given up and the other side is told; the error is the context's cause, with the missing
// part: the members that have not come, or the member that has not connected its queue
// pair. Once Master or Member has returned, its context no longer matters: the group
// lives until [Group.Leave], [Group.Close], or an event that ends it ([Group.Events],
// [Group.Over]). If that is [Ended] because the switch has started again and does not know the
// group, master and members join again, with queue pairs that have other PSNs. A group that
// stalls says so at its source and its master ([Stalled], [Resumed]).
//
// The queue pair may be the application's own ([Local].QP): joining calls its
// Info and its Connect, at the point where the group is known, and nothing else.
// Programs in other languages join by package libgleam.
package endpoint
