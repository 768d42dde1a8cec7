# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# To be sourced in the guest: the cases of machine B, whose ports are virtio-net, vmxnet3, e1000e, and igb if QEMU has it.

mixed() { if [ "$N" = 4 ]; then modes native native generic native; else modes native native generic; fi; }

path_MTU_1024_over_mixed_ports() {
	start && mixed && transfer write-bw --verify -n 20 -s 64K && transfer send-bw --verify -n 20 -s 5000 && transfer replicate --verify -n 20 || return
	did="$N ports"
}

# What the kernel says of each driver: native XDP, zero copy, several buffers, redirected frames taken.
gleam_version_has_the_kernel_flags() {
	start || return
	local i want row out
	out=$(sw gleam --socket $W/s.sock version 2>&1)
	for i in $(seq "$N"); do
		case $(port "$i" driver) in
		virtio_net) want="yes no yes yes" ;;
		vmxnet3 | igb) want="yes no no yes" ;;
		e1000e) want="no no no no" ;;
		*) want="an unknown driver" ;;
		esac
		row=$(sed -n "s/^p$i  *//p" <<<"$out" | tr -s ' ')
		[ "$row" = "$(port "$i" driver) $want" ] || fail "p$i: $row, want $want" || return
		did+="${did:+; }$row"
	done
}

fast_path_require_is_found_beforehand() {
	stop
	conf 'fast_path: require'
	local out
	out=$(check)
	grep -q 'port p3: its driver (e1000e) has no native XDP' <<<"$out" || fail "--check does not name p3: $out" || return
	! grep -E 'port p[124]: .*(fast path|native XDP)' <<<"$out" || fail "--check names another port: $out" || return
	start 'fast_path: require' || return
	transfer write-bw --verify -n 5 && fail "a group with a member at p3 is registered" && return 1
	grep -q "10.77.0.3 .*the member's port does not run XDP natively" <<<"$result" || fail "the rejection does not name the member at p3: $result" || return
	! grep 'takes no redirected frames' $W/log || fail "the log has another reason for p3 beside generic mode"
}
fast_path_between_the_others() {
	start 'fast_path: auto' || return
	local i
	for i in 1 2 4; do
		[ $i -gt "$N" ] || is $i fast_path.used true || fail "p$i is not used: $(port $i fast_path.reason)" || return
	done
	is 3 fast_path.used false || fail "p3 is used" || return
	g port list | grep -q '^p3 .*not used: it runs XDP in generic mode' || fail "port list does not say why p3 is not used" || return
	transfer write-bw --verify -n 5
}

# Hosts that are in VLAN 5 alone. A NIC that takes tags off before XDP hides it.
tagged() { # on|off: rxvlan and txvlan of the ports
	local i
	for i in $(seq "$N"); do sw ethtool -K "p$i" rxvlan "$1" txvlan "$1" >/dev/null 2>&1; done
	true
}
vlan() {
	local i
	sw ip address flush dev br0
	sw ip link add link br0 name br0.5 type vlan id 5
	sw ip link set br0.5 up
	sw ip address add 10.77.255.254/16 dev br0.5
	for i in $(seq "$N"); do
		h "$i" ip address flush dev eth0
		h "$i" ip link add link eth0 name eth0.5 type vlan id 5
		h "$i" ip link set eth0.5 up
		h "$i" ip address add "10.77.0.$i/16" dev eth0.5
	done
}
no_vlan() {
	local i
	stop
	sw ip link del br0.5
	sw ip address add 10.77.255.254/16 dev br0
	for i in $(seq "$N"); do
		h "$i" ip link del eth0.5
		h "$i" ip address add "10.77.0.$i/16" dev eth0
	done
}
VLAN_5_with_rxvlan_on_is_found_beforehand() {
	local i out takes="the interface takes VLAN tags off before XDP sees the packets"
	stop
	tagged on
	vlan
	PORT="vlan: 5" conf
	out=$(check)
	sw gleam doctor -c $W/g.yaml --no-packets >$W/doctor 2>&1
	no_vlan
	grep -q "p1: $takes" <<<"$out" && fail "--check names p1, whose NIC does not: $out" && return 1
	for i in $(seq 2 "$N"); do grep -q "p$i: $takes" <<<"$out" || fail "--check does not name p$i: $out" || return; done
	for i in $(seq 2 "$N"); do grep -q "ERROR  *port p$i: the interface takes VLAN tags off" $W/doctor || fail "doctor has no error of p$i: $(cat $W/doctor)" || return; done
}
VLAN_5_with_rxvlan_off() {
	stop
	tagged off
	vlan
	local code
	PORT="vlan: 5" start && ! check | grep 'takes VLAN tags off' && transfer write-bw --verify -n 20 -s 64K && transfer send-bw --verify -n 20 -s 5000
	code=$?
	no_vlan
	tagged on
	return $code
}

all() {
	run path_MTU_1024_over_mixed_ports gleam_version_has_the_kernel_flags fast_path_require_is_found_beforehand fast_path_between_the_others \
		VLAN_5_with_rxvlan_on_is_found_beforehand VLAN_5_with_rxvlan_off
}
