// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package oob is the out-of-band exchange of a group: over TCP, the master
// collects the connection state of every member's queue pair and tells the
// members the group to connect to (Gleam paper, appendix A).
//
// Either side may listen. A connection is TLS 1.3, and both sides prove to each other
// that they have the group's key ([Identity]). A connection without that proof is closed
// and does not affect the exchange. docs/EXCHANGE.md describes it in full. Messages are
// JSON objects, one a line, at most [MaxLine] bytes; "v" is the version of the exchange
// in each of them:
//
//	member → master  {"v":2,"type":"hello","member":{"ip":…,"qpn":…,"sq_psn":…,"rq_psn":…,"window":{"va":…,"len":…,"rkey":…}}}
//	master → member  {"v":2,"type":"group","group":{"ip":…,"qpn":…,"path_mtu":…,"members":…,"window":{…}}}
//	member → master  {"v":2,"type":"ready"}        its queue pair is connected and it answers envelopes
//	master → member  {"v":2,"type":"registered"}   data may flow
//
// In place of any of them, {"v":2,"type":"error","error":"…"} gives the reason why the
// sender gives up; both sides then close the connection. "member" and "group" may have
// "app", JSON that the exchange passes on for the application.
//
// A connection of [DialMaster] serves one group after another: both sides keep it after
// "registered" until the member's next hello, and the handshake is saved.
//
// Without a key, which the application has to request explicitly, connections are plain
// text and open to all.
//
// # Other ways
//
//   - TLS's own pre-shared keys: crypto/tls has them for resumption only. Both sides derive a key pair from the
//     group's key instead.
//   - Noise (NNpsk0, github.com/flynn/noise) saves a round trip, and would be a dependency with rare releases; framing,
//     deadlines and the end of a stream would be ours to get right.
//   - A PAKE: keys are 32 random bytes or more, not passwords.
//   - Envelopes in place of TCP: the exchange has up to 32 KiB of an application's data for each member, and members
//     wait in it for minutes. The switch need not know it.
//   - A timeout for strangers' connections: the oldest of the address with the most gives way instead, so no time has
//     to be chosen between a slow member and an attacker.
package oob
