// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package perf is `gleam perf`: bandwidth and latency of a group, in the columns of
// perftest (ib_write_bw, ib_write_lat, ib_send_bw, ib_send_lat), and of the alternatives
// without a group: a unicast to every receiver, a chain, or a binomial tree of receivers
// that forward messages.
//
// The sender runs the test; receivers listen and get its parameters over a TCP connection
// each (see message), encrypted and authenticated by the key like the exchange of
// host/endpoint/oob. With a group, endpoint.Master and endpoint.Member then set up every lane
// (--qps): the exchange of host/endpoint/oob, at the same port, and the registration by
// envelopes.
//
// A lane is a sending queue pair, or several in the baselines, with its own memory and
// its own goroutines. Receivers answer each message (lat, --verify, chain, tree) with an
// empty SEND over a queue pair of their own. The SEND's immediate data counts the
// messages that have arrived. The sender never has more messages outstanding than there
// are slots in the lane's memory, so no message is overwritten before it has been checked
// or forwarded.
package perf
