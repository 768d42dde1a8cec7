# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# To be sourced in the guest: the cases of machine D, whose ports are virtio-net with two queues, at taps: they have
# checksum offload and hardware GRO. The driver takes no change of either while a program is attached.

combined() { local i; for i in $(seq "$N"); do sw ethtool -L "p$i" combined "$1" || fail "p$i does not take $1 queues" || return; done; }
gro() { sw ethtool -k p1 | sed -n 's/^rx-gro-hw: \([a-z]*\).*/\1/p'; }
finding() { check | grep 'port p1: the NIC merges packets of TCP (hardware GRO)'; }

two_queues() {
	stop
	combined 2 && start && modes native native native || return
	local i
	for i in $(seq "$N"); do is "$i" queues 2 || fail "p$i has $(port $i queues) queues" || return; done
	transfer write-bw --verify -n 20 -s 64K && transfer send-bw --verify -n 20 -s 5000 || return
	sw ethtool -L p1 combined 1 2>/dev/null && fail "the driver takes a change of queues under XDP: docs/HARDWARE.md says that it does not" && return 1
	is 1 queues 2 || fail "p1 has $(port 1 queues) queues"
}
hardware_GRO() {
	stop
	combined 2
	conf
	sw ethtool -K p1 rx-gro-hw on
	[ "$(gro)" = on ] || fail "p1 has no hardware GRO: $(sw ethtool -k p1 | grep gro)" || return
	finding >/dev/null || fail "--check does not speak of hardware GRO: $(check)" || return
	start && modes native native native && transfer write-bw --verify -n 20 -s 64K || return
	sw gleam --socket $W/s.sock doctor -c $W/g.yaml --no-packets >$W/doctor 2>&1
	! grep 'hardware GRO' $W/doctor || fail "doctor has a finding about hardware GRO at a port that runs natively" || return
	sw ethtool -K p1 rx-gro-hw off >/dev/null 2>&1 && fail "the driver takes a change of GRO under XDP: docs/HARDWARE.md says that it does not" && return 1
	stop
	# The kernel remembers what was refused, and takes the same command for no change.
	sw ethtool -K p1 rx-gro-hw on
	sw ethtool -K p1 rx-gro-hw off
	! finding || fail "--check speaks of hardware GRO that is off"
}
fewer_transmit_channels_than_CPUs() {
	stop
	combined 1
	conf 'fast_path: auto'
	check | grep -q 'port p1: fewer transmit channels (1) than CPUs (2)' || fail "--check does not say so: $(check)" || return
	combined 2
	! check | grep 'fewer transmit channels' || fail "--check says so of two channels"
}

all() { run two_queues hardware_GRO fewer_transmit_channels_than_CPUs; }
