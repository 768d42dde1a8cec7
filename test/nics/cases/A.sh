# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# To be sourced in the guest: the cases of machine A, whose ports are virtio-net.

path_MTU_1024_in_all_operations() {
	start && modes native native native native &&
		transfer write-bw -m 1024 --verify -n 20 -s 64K && transfer send-bw -m 1024 --verify -n 20 -s 5000 &&
		transfer replicate -m 1024 --verify -n 20 -s 8192 && transfer write-lat -m 1024 --verify -n 5 -s 1 && transfer send-lat -m 1024 --verify -n 5 -s 4
}

# The port's PCI device, which is unbound from its driver and bound again, or taken out of the machine.
pci() { basename "$(dirname "$(sw readlink -f "/sys/class/net/p$1/device")")"; }

carrier_lost_and_back() {
	start && transfer write-bw --verify -n 5 || return
	mark
	monitor set_link dp2 off && says 'port is down' p2 || return
	is 2 up false || fail "p2 is not down" || return
	monitor set_link dp2 on && says 'port is up' p2 || return
	is 2 up true && is 2 downs 1 || fail "p2 is not up, after one fall" || return
	transfer write-bw --verify -n 5
}
carrier_lost_in_a_transfer() {
	start || return
	mark
	(
		await 60 began
		monitor set_link dp2 off
		says 'port is down' p2
		monitor set_link dp2 on
	) &
	local cut=$!
	transfer write-bw --verify -n 200 -s 64K || { wait $cut; return 1; }
	wait $cut
	logged 'port is up' p2 || fail "the transfer ended before the carrier was lost"
}
began() { [ "$(port 1 rx_frames)" -gt 300 ]; }

unbind_and_bind() {
	start && transfer write-bw --verify -n 5 || return
	local at
	at=$(pci 3)
	mark
	echo "$at" >/sys/bus/pci/drivers/virtio-pci/unbind
	says 'port is gone' p3 || return
	is 3 state lost || fail "p3 is not lost, but $(port 3 state)" || return
	echo "$at" >/sys/bus/pci/drivers/virtio-pci/bind
	await 60 placed || fail "the NIC does not come back" || return
	says 'port is taken up again' p3 && says 'port is up' p3 || return
	is 3 reopened 1 || fail "p3 was taken up again $(port 3 reopened) times" || return
	transfer write-bw --verify -n 5
}
unbound_in_a_transfer() {
	start || return
	local at
	at=$(pci 3)
	mark
	(
		await 60 began
		echo "$at" >/sys/bus/pci/drivers/virtio-pci/unbind
		says 'port is gone' p3
		echo "$at" >/sys/bus/pci/drivers/virtio-pci/bind
		await 60 placed
	) &
	local cut=$!
	transfer write-bw --verify -n 200 -s 64K || { wait $cut; return 1; }
	wait $cut
	logged 'port is taken up again' p3 || fail "the transfer ended before the NIC was gone"
}
device_del_and_device_add() {
	start && transfer write-bw --verify -n 5 || return
	mark
	monitor device_del dp3 && says 'port is gone' p3 || return
	is 3 state lost || fail "p3 is not lost, but $(port 3 state)" || return
	monitor device_add virtio-net-pci,netdev=p3,id=dp3,mac=02:00:00:00:02:03,romfile=
	await 120 placed || fail "the NIC does not come back" || return
	says 'port is taken up again' p3 && says 'port is up' p3 || return
	is 3 reopened 1 || fail "p3 was taken up again $(port 3 reopened) times" || return
	transfer write-bw --verify -n 5
}

fast_path() {
	start 'fast_path: require' && transfer write-bw --verify -n 20 -s 64K || return
	local i sent
	for i in 2 3 4; do
		is $i fast_path.used true || fail "p$i is not used: $(port $i fast_path.reason)" || return
		sent=$(port $i fast_path.sent)
		[ "${sent:-0}" -gt 0 ] || fail "no copies by XDP at p$i" || return
		did+="${did:+; }p$i $sent copies by XDP of 1280 packets, $(port $i fast_path.lost) lost"
	done
}

# A program for one buffer does not take what a longer MTU lets in: the port is opened again. So it is when the MTU falls.
MTU_raised_and_lowered_under_gleamd() {
	start && transfer write-bw --verify -n 5 || return
	mark
	set_mtu 9000 || return
	local i answers
	for i in $(seq "$N"); do says 'port is opened again' "p$i" && says 'port is taken up again' "p$i" || return; done
	for i in $(seq "$N"); do await 60 is "$i" mtu 9000 || fail "p$i has the MTU $(port "$i" mtu)" || return; done
	modes native native native native || return
	answers=$(h 1 ping -c 2 -W 20 -s 3600 10.77.0.2)
	grep -q ' 2 packets received' <<<"$answers" || fail "unicast of 3600 bytes by the bridge: $answers" || return
	transfer write-bw -m 4096 --verify -n 20 -s 64K || return
	mark
	set_mtu 1500 || return
	for i in $(seq "$N"); do says 'frames fit into one buffer' "p$i" && says '"multi_buffer": false' "p$i" && says 'port is taken up again' "p$i" || return; done
	for i in $(seq "$N"); do await 60 is "$i" mtu 1500 || fail "p$i has the MTU $(port "$i" mtu)" || return; done
	modes native native native native && transfer write-bw --verify -n 20 -s 64K
}
path_MTU_4096_at_MTU_4200() {
	set_mtu 4200 && start && modes native native native native && transfer write-bw -m 4096 --verify -n 20 -s 64K && transfer send-bw -m 4096 --verify -n 20 -s 64K
	local code=$?
	stop
	set_mtu 1500
	return $code
}

# Hosts that have another MAC address for a group are heard by a bridge's port alone, until it is told.
foreign_MAC_address_in_a_bridge() {
	start && sw ip -d link show p1 | grep -q 'promiscuity 1' || fail "p1 is not promiscuous: $(sw ip -d link show p1)" || return
	h 1 ip neigh replace 10.77.254.1 lladdr 02:00:00:00:09:09 nud permanent dev eth0
	transfer write-bw --verify -n 5
	local code=$?
	check | grep 'promiscuity 0' && fail "--check has a note of a bridge's port" && code=1
	h 1 ip neigh del 10.77.254.1 dev eth0
	return $code
}
foreign_MAC_address_outside_a_bridge() {
	stop
	sw ip link set p1 nomaster
	sw ip address add 10.78.0.254/24 dev p1
	sw sysctl -qw net.ipv4.ip_forward=1
	h 1 ip address flush dev eth0
	h 1 ip address add 10.78.0.1/24 dev eth0
	h 1 ip route add default via 10.78.0.254
	local i code
	for i in 2 3 4; do h $i ip route add 10.78.0.0/24 via 10.77.255.254; done
	routed
	code=$?
	stop
	for i in 2 3 4; do h $i ip route del 10.78.0.0/24; done
	h 1 ip address flush dev eth0
	sw ip link set p1 promisc off
	sw ip address flush dev p1
	up_host 1 && up_port 1
	return $code
}
routed() {
	start && transfer write-bw --verify -n 5 || return
	local note="port p1: the NIC receives frames to its own MAC address alone (promiscuity 0)"
	[[ $(check) == *"$note"* && $(sw gleam doctor -c $W/g.yaml --no-packets --socket $W/s.sock 2>&1) == *"(promiscuity 0)"* ]] || fail "neither --check nor doctor says: $note" || return
	h 1 ip route add 10.77.254.1/32 dev eth0
	h 1 ip neigh replace 10.77.254.1 lladdr 02:00:00:00:09:09 nud permanent dev eth0
	patience=10s transfer write-bw --verify -n 5 && fail "the port has heard frames to a foreign MAC address: the note is wrong" && return 1
	sw ip link set p1 promisc on && transfer write-bw --verify -n 5
}

quick() { run path_MTU_1024_in_all_operations fast_path carrier_lost_and_back unbind_and_bind MTU_raised_and_lowered_under_gleamd; }
all() {
	run path_MTU_1024_in_all_operations fast_path carrier_lost_and_back carrier_lost_in_a_transfer unbind_and_bind unbound_in_a_transfer device_del_and_device_add \
		foreign_MAC_address_in_a_bridge foreign_MAC_address_outside_a_bridge path_MTU_4096_at_MTU_4200 MTU_raised_and_lowered_under_gleamd
}
