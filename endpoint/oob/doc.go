// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package oob is the out-of-band exchange of a group: over TCP, the master
// collects the connection state of every member's queue pair and tells the
// members what to connect to (Gleam paper, appendix A).
//
// Either side may listen. Messages are JSON objects, one a line, at most
// [MaxLine] bytes; "v" is the version of the exchange in each of them:
//
//	member → master  {"v":1,"type":"hello","member":{"ip":…,"qpn":…,"sq_psn":…,"rq_psn":…,"window":{"va":…,"len":…,"rkey":…}}}
//	master → member  {"v":1,"type":"group","group":{"ip":…,"qpn":…,"path_mtu":…,"members":…,"window":{…}}}
//	member → master  {"v":1,"type":"ready"}        its queue pair is connected and it answers envelopes
//	master → member  {"v":1,"type":"registered"}   data may flow
//
// Instead of any of them, {"v":1,"type":"error","error":"…"} says why the
// sender gives up; both then close the connection. "member" and "group" may
// hold "app", JSON that the exchange carries for the application.
//
// The exchange is neither encrypted nor authenticated, and carries R_Keys: it
// belongs on a network that is trusted with RDMA.
package oob
