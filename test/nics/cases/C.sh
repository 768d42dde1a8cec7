# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# To be sourced in the guest: the cases of machine C, whose ports are igb. Its driver resets the NIC when a program is
# attached, and with each change of its queues: the links are down for a second or two.

all_up() { local i; for i in $(seq "$N"); do is "$i" up true || return 1; done; }
up() { await 60 all_up || fail "not all ports are up: $(g port list | head -n $((N + 1)))"; }
queues() { local i; for i in $(seq "$N"); do is "$i" queues "$1" && is "$i" state open || return 1; done; }

fast_path() {
	start 'fast_path: require' && up && modes native native native && transfer write-bw --verify -n 20 -s 64K || return
	local i sent
	for i in 2 3; do
		is $i fast_path.used true || fail "p$i is not used: $(port $i fast_path.reason)" || return
		sent=$(port $i fast_path.sent)
		[ "${sent:-0}" -gt 0 ] || fail "no copies by XDP at p$i" || return
		did+="${did:+; }p$i $sent copies by XDP of 1280 packets, $(port $i fast_path.lost) lost"
	done
}
# Groups that the NIC hashes to a queue without a socket would be lost for good.
queues_1_to_8_under_gleamd() {
	local i
	stop
	for i in $(seq "$N"); do sw ethtool -L "p$i" combined 1 || fail "p$i does not take one queue" || return; done
	start && up && transfer write-bw --verify -n 5 || return
	queues 1 || fail "not one queue: $(g port list | head -n $((N + 1)))" || return
	mark
	for i in $(seq "$N"); do sw ethtool -L "p$i" combined 8 || fail "p$i does not take 8 queues" || return; done
	for i in $(seq "$N"); do says 'port is opened again' "p$i" && says 'port is taken up again' "p$i" || return; done
	await 60 queues 8 || fail "not 8 queues: $(g port list | head -n $((N + 1)))" || return
	up && transfer write-bw --verify -n 20 -s 64K && transfer send-bw --verify -n 20 -s 5000
}
path_MTU_2048_at_MTU_2200() {
	stop
	set_mtu 2200 && start && up && modes native native native && transfer write-bw -m 2048 --verify -n 20 -s 64K
	local code=$?
	stop
	set_mtu 1500
	return $code
}
MTU_4200_is_generic_and_says_why() {
	stop
	set_mtu 4200 || return
	refused_natively
	local code=$?
	stop
	set_mtu 1500
	return $code
}
refused_natively() {
	local i out
	conf
	out=$(check)
	for i in $(seq "$N"); do
		grep -q "port p$i: the driver igb has native XDP only for frames in one buffer, and the MTU is 4200" <<<"$out" || fail "--check does not say why of p$i: $out" || return
	done
	start && up && modes generic generic generic || return
	mark=0
	for i in $(seq "$N"); do says 'the driver refuses native XDP at this MTU' "p$i" || return; done
	! grep 'has no native XDP' $W/log || fail "the log says that igb has no native XDP" || return
	transfer write-bw -m 4096 --verify -n 20 -s 64K
}

all() { run fast_path queues_1_to_8_under_gleamd path_MTU_2048_at_MTU_2200 MTU_4200_is_generic_and_says_why; }
