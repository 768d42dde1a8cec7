// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package switchbench is `gleam bench switch`: how many packets a second various
// methods to replicate one sender's packets to several receivers take in and put
// out on this machine, what they cost, and what they lose, measured in turn in
// one run.
//
// # What is measured
//
// Every method (a row) has a lab of its own: a switch and hosts in namespaces, joined
// by veths. All labs exist while a case (bytes of payload, number of receivers) is
// measured; in every round each row is measured once. Rows differ in the switch's
// method alone.
//
// The source's frames are made by an XDP program that the kernel runs over and
// over (BPF_PROG_TEST_RUN with live frames): valid RoCEv2 packets of one source
// with rising PSNs and right ICRCs. It runs on a CPU of its own, and since the
// kernel receives on a veth in the sender's context, so does the reception by
// the switch. Frames longer than a page are sent from a packet socket instead.
// The receivers count and drop: in tc, since an XDP program there would have the
// kernel convert every skb, or, where XDP sends the copies, in XDP, which takes
// NAPI at the sink. They check addresses, QPN and length of each frame.
//
// # What the numbers mean
//
// in_pps and out_pps are of a run whose offered load is 1.5 times the row's measured
// throughput, and higher as long as nothing is lost: a method in the kernel shares the
// generator's CPU and slows it down, and one in user space loses frames at its socket.
// in_pps is the rate of replicated packets, out_pps / receivers. A PSN counts once at
// each receiver, so packets that a switch repairs or sends twice are no throughput.
// loss is the share that the receiver with the fewest packets lacks in another run, at
// 0.9 times the in_pps of the same round. The targets' ratios are medians of the
// rounds' ratios: the throughput of all rows changes from round to round with the
// machine's other load.
//
// cpu_ns_per_out is all CPU time that the row costs per packet out, up to and including
// the sinks' drop: that of this process's threads, which are the row's
// (thread_ns_per_out; the kernel runs the sinks' receive path in the thread that
// sends), and that of the generator's thread and of ksoftirqd, less the generator's own
// cost (softirq_ns_per_out). The latter is measured in every round, by a generator that
// sends to a port which drops; the time in which it waits for its next frame is
// measured during each run.
package switchbench

//go:generate ../../../scripts/bpf bpf/replicate.c replicate.o v2
