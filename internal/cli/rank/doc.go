// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package rank is `gleam rank`: the queue pairs of processes of one address that are written in
// another language, such as ranks of torch.distributed. Module gleam_torch starts it. The groups
// of a process that ends are left at once, so that a crash is no silence; the program ends with
// the last one.
//
// Its standard input is a Unix socket of type SOCK_SEQPACKET that listens, to which the processes
// of its user connect. It says {} to each of them first. A packet
// is one JSON object of at most [MaxPacket] bytes. Requests are [request]; each has a number, and
// has exactly one answer with it, in "re", with "error" where it failed; "post" has none but a
// completion. Lengths are in bytes, times in milliseconds, addresses are texts, g is the
// number that the process gives to a group.
//
//	{"op":"window","id":1,"g":1,"bytes":67108864,"master":true}
//	    memory for the group's WRITEs, the same number of bytes at all members
//	    {"re":1,"g":1,"at":"10.77.0.1:40123"}, with the descriptor of a memfd (SCM_RIGHTS) to be
//	    mapped, which cannot shrink; at is where members join, at the master only. Processes that
//	    add the same "name":"a" share memory, queue pair and membership: the first one's make or join
//	    is that of all, and only the last one's leave leaves. With "alone":true nobody shares
//	{"op":"make","id":2,"g":1,"ip":"10.77.254.7","members":3,"dead_after_ms":300,"mtu":4096,"timeout_ms":30000}
//	    the master makes the group of itself and 3 members. From then on it takes in everybody who joins
//	{"op":"join","id":3,"g":1,"master":"10.77.0.1:40123","timeout_ms":30000}
//	{"re":3,"g":1,"qpn":75}                                 the number of this address's queue pair
//	{"op":"post","id":64,"g":1,"offset":0,"len":1048576,"imm":64}
//	    the window's bytes from offset on go to the same place in all members' windows
//	{"op":"remove","id":5,"g":1,"member":"10.77.0.3","qpn":75}
//	    the master takes a member out, if it has that queue pair: one that has come back has another
//	{"op":"leave","id":6,"g":1}                             at the master it ends the group
//
// Without a request come completions, and what happens to a group:
//
//	{"g":1,"done":[64,65]}               posts of this address that all members have, in order
//	{"g":1,"got":[[64,1048576]]}         imm and len of another process's post, whose bytes are in the window
//	{"g":1,"event":"evicted","member":"10.77.0.3","qpn":75,"text":"silent for dead_after"}
//	    as package endpoint names events; "failed", "ended", and "evicted" without a member, are last
package rank
