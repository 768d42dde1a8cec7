// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package perf is `gleam perf`: bandwidth and latency of a group, in the
// columns of perftest (ib_write_bw, ib_write_lat, ib_send_bw, ib_send_lat), and
// of what would be done without one: a unicast to every receiver, a chain, or a
// binomial tree of receivers that pass on what they get.
//
// The sender runs the test; receivers listen and are told its parameters over a
// TCP connection each (see message), encrypted and authenticated by the key as
// the exchange of endpoint/oob is. With a group, every lane (--qps) then
// comes about by endpoint.Master and endpoint.Member: the exchange of
// endpoint/oob, at the same port, and the registration by envelopes.
//
// A lane is a sending queue pair, or several in the baselines, with its own
// memory and its own goroutines. Receivers answer each message (lat, --verify,
// chain, tree) with an empty SEND over a queue pair of their own whose
// immediate data counts the messages that have arrived; the sender never has
// more messages outstanding than there are slots in the lane's memory, so
// nothing that is still to be looked at or passed on is overwritten.
package perf
