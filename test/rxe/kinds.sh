#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# kinds.sh [KIND...] has interfaces of the kinds of docs/PORTS.md as ports that need Debian's kernel, each
# in network namespaces of its own: gleamd --check says whether the kind is served, and if it is,
# three hosts transfer messages by a group, of whom the first is behind that port. A line for each
# kind says what came of it; the exit code is 1 if one is not as it should be. gleam and gleamd
# are taken from PATH.
set -u
W=$(mktemp -d) P=kinds- bad=0 running=""
chmod 755 "$W"
(umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$W/key")

sw() { ip netns exec "${P}sw" "$@"; }
h() { n=$1; shift; ip netns exec "${P}h$n" "$@"; }
quiet() { "$@" >>"$W/setup" 2>&1 || { echo "failed: $*" >>"$W/setup"; return 1; }; }

# star makes a switch with bridge br0, and hosts h1 to h3 at its interfaces eth1 to eth3; h1 is not configured.
star() {
	: >"$W/setup"
	for n in sw h1 h2 h3; do quiet ip netns add "$P$n"; quiet ip -n "$P$n" link set lo up; done
	quiet sw ip link add br0 type bridge; quiet sw ip link set br0 up; quiet sw ip address add 10.77.255.254/16 dev br0
	for i in 1 2 3; do
		quiet sw ip link add "eth$i" type veth peer name eth0 netns "${P}h$i"; quiet sw ip link set "eth$i" up; quiet h $i ip link set eth0 up
		[ $i = 1 ] || { quiet sw ip link set "eth$i" master br0; quiet h $i ip address add 10.77.0.$i/16 dev eth0; }
	done
}
clear_up() {
	for p in $running; do kill "$p" 2>/dev/null; wait "$p" 2>/dev/null; done
	running=""
	for n in sw h1 h2 h3; do ip netns del "$P$n" 2>/dev/null; done
}
trap 'clear_up; rm -rf "$W"' EXIT

conf() { # PORTS [PREFIX]
	printf 'ports: [%s]\ngroup_prefixes: [%s]\nenvelope: {keys: [{id: 1, secret_file: key}]}\napi: {socket: %s/s.sock}\n' "$1" "${2:-10.77.254.0/24}" "$W" >"$W/g.yaml"
}
check() { sw gleamd --check -c "$W/g.yaml" 2>&1; }
say() { printf '%-6s %-24s %s\n' "$1" "$kind" "$2"; [ "$1" = ok ] || { bad=1; sed 's/^/       /' "$W/setup" | tail -5; }; }
refused() { # TEXT
	out=$(check)
	if [ $? -ne 0 ] && [[ $out == *"$1"* ]]; then say ok "refused: $1"; else say FAILED "want a refusal with: $1; got: $out"; fi
}
# served starts gleamd and transfers from h1, or the host that is named, to the others.
served() { # PORT MODE [SENDER GROUP IP...]
	port=$1 mode=$2 from=${3:-1} group=${4:-10.77.254.1}
	shift $(($# < 4 ? $# : 4))
	[ $# -gt 0 ] || set -- 10.77.0.2 10.77.0.3
	out=$(check) || { say FAILED "--check: $out"; return; }
	ip netns exec "${P}sw" gleamd -c "$W/g.yaml" >"$W/log" 2>&1 &
	running=$!
	for _ in $(seq 300); do grep -q 'gleamd is ready' "$W/log" && break; sleep 0.1; done
	for _ in 1 2 3; do # a guest that is emulated is slow: connecting may take longer than perf, or its kernel's ARP, waits
		receivers=""
		for i in 2 3; do
			ip netns exec "${P}h$i" gleam perf write-bw --listen --key-file "$W/key" >/dev/null 2>&1 &
			receivers="$receivers $!"
		done
		running="$running $receivers"
		result=$(h "$from" timeout 100 gleam perf write-bw --group "$group" --key-file "$W/key" --verify -n 20 -s 4096 "$@" 2>&1)
		grep -qE 'took longer than|nobody answers ARP' <<<"$result" || break
		for p in $receivers; do kill "$p" 2>/dev/null; wait "$p" 2>/dev/null; done
	done
	if grep -q ' all$' <<<"$result" && gleam --socket "$W/s.sock" port list | grep -q "^$port .*$mode"; then say ok "served, $mode"
	else say FAILED "want $mode and a transfer: $(tail -2 <<<"$result") $(gleam --socket "$W/s.sock" port list | grep -m1 "^$port ") $(grep -E 'WARN|ERROR|gleamd:' "$W/log" | tail -3)"; fi
}
three='{name: PORT}, {name: eth2}, {name: eth3}'

bond() { # MODE
	star; quiet sw ip link del eth1
	quiet sw ip link add bond0 type bond mode "$1" miimon 100; quiet h 1 ip link add bond0 type bond mode "$1" miimon 100
	for x in a b; do
		quiet sw ip link add eth1$x type veth peer name eth$x netns "${P}h1"
		quiet sw ip link set eth1$x master bond0; quiet h 1 ip link set eth$x master bond0
	done
	quiet sw ip link set bond0 master br0 up; quiet h 1 ip link set bond0 up; quiet h 1 ip address add 10.77.0.1/16 dev bond0
	for _ in $(seq 100); do sw ip -br link show bond0 | grep -q LOWER_UP && break; sleep 0.1; done
	conf "${three/PORT/bond0}"; served bond0 generic
	conf '{name: bond0, xdp: {mode: native}}, {name: eth2}'; refused 'xdp.mode native does not work at a bond'
	conf '{name: eth1a}, {name: eth2}'; refused 'its frames are those of the bond bond0: name in its place: bond0'
}
kind_bond_backup() { bond active-backup; }
kind_bond_lacp() { bond 802.3ad; }
kind_vlan() {
	star
	quiet sw ip link add link eth1 name eth1.7 type vlan id 7; quiet sw ip link set eth1.7 master br0 up
	quiet h 1 ip link add link eth0 name eth0.7 type vlan id 7; quiet h 1 ip link set eth0.7 up; quiet h 1 ip address add 10.77.0.1/16 dev eth0.7
	conf "${three/PORT/eth1.7}"; served eth1.7 generic
	conf '{name: eth1.7}, {name: eth1}'; refused 'leave eth1.7 out: eth1 has its frames too, and sends them with the tag by vlan: 7'
}
kind_macsec() {
	star
	a=$(sw cat /sys/class/net/eth1/address) b=$(h 1 cat /sys/class/net/eth0/address)
	k1=$(head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n') k2=$(head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
	quiet sw ip link add link eth1 macsec0 type macsec encrypt on; quiet h 1 ip link add link eth0 macsec0 type macsec encrypt on
	quiet sw ip macsec add macsec0 tx sa 0 pn 1 on key 00 "$k1"; quiet sw ip macsec add macsec0 rx port 1 address "$b"; quiet sw ip macsec add macsec0 rx port 1 address "$b" sa 0 pn 1 on key 00 "$k2"
	quiet h 1 ip macsec add macsec0 tx sa 0 pn 1 on key 00 "$k2"; quiet h 1 ip macsec add macsec0 rx port 1 address "$a"; quiet h 1 ip macsec add macsec0 rx port 1 address "$a" sa 0 pn 1 on key 00 "$k1"
	quiet sw ip link set macsec0 master br0 up; quiet h 1 ip link set macsec0 up; quiet h 1 ip address add 10.77.0.1/16 dev macsec0
	conf "${three/PORT/macsec0}"; refused 'group packets do not pass it unharmed'
	conf "${three/PORT/eth1}"; refused 'group packets do not pass it unharmed'
}
kind_vxlan() {
	star
	quiet sw ip address add 192.0.2.1/24 dev eth1; quiet h 1 ip address add 192.0.2.2/24 dev eth0
	quiet sw ip link add vx0 type vxlan id 5 remote 192.0.2.2 dstport 4789 dev eth1; quiet h 1 ip link add vx0 type vxlan id 5 remote 192.0.2.1 dstport 4789 dev eth0
	quiet sw ip link set vx0 master br0 up; quiet h 1 ip link set vx0 up; quiet h 1 ip address add 10.77.0.1/16 dev vx0
	conf "${three/PORT/vx0}"; served vx0 generic
}
kind_macvlan() {
	star
	quiet sw ip link add link eth1 name mv1 type macvlan mode bridge; quiet sw ip link set mv1 up; quiet sw ip address add 10.78.0.254/24 dev mv1; quiet sw sysctl -w net.ipv4.ip_forward=1
	quiet h 1 ip address add 10.78.0.1/24 dev eth0; quiet h 1 ip route add default via 10.78.0.254
	for i in 2 3; do quiet h $i ip route add default via 10.77.255.254; done
	conf "${three/PORT/mv1}"; served mv1 generic
}
kind_bridge() {
	star; quiet sw ip link set eth1 master br0; quiet h 1 ip address add 10.77.0.1/16 dev eth0
	conf '{name: br0}'; served br0 generic
	conf '{name: br0}, {name: eth1}, {name: eth2}'; refused 'port br0: it is the bridge of port eth1'
}
kind_vrf() {
	star; quiet sw sysctl -w net.ipv4.ip_forward=1; quiet sw ip link del br0
	quiet sw ip link add red type vrf table 10; quiet sw ip link set red up
	for i in 1 2 3; do
		quiet h $i ip address flush dev eth0
		quiet sw ip link set eth$i master red; quiet sw ip address add 10.1.$i.0/31 dev eth$i; quiet h $i ip address add 10.1.$i.1/31 dev eth0; quiet h $i ip route add default via 10.1.$i.0
	done
	conf "${three/PORT/eth1}" 10.99.0.0/24; served eth1 native 1 10.99.0.1 10.1.2.1 10.1.3.1
	conf '{name: red}'; refused 'it is a routing table, and no link: name in its place: eth1, eth2, eth3'
}
kind_nothing() {
	star
	quiet sw ip link add dummy0 type dummy; quiet sw ip link add link eth1 name ipvl0 type ipvlan mode l2; quiet sw ip link property add dev eth2 altname enp2s0
	conf '{name: dummy0}, {name: eth2}'; refused 'nothing is behind it'
	conf '{name: ipvl0}, {name: eth2}'; refused 'and none to groups: name in its place: eth1'
	conf '{name: enp2s0}, {name: eth2}'; refused 'which is port enp2s0 already'
	conf '{name: lo}'; refused 'not an Ethernet interface (loopback)'
}
kind_trunk() {
	star; quiet sw ip address flush dev br0; quiet sw ip link set br0 type bridge vlan_filtering 1 vlan_default_pvid 0
	quiet sw ip link set eth1 master br0
	for i in 1 2; do quiet sw bridge vlan add dev eth$i vid 100 pvid untagged; done
	quiet sw bridge vlan add dev eth3 vid 100; quiet sw bridge vlan add dev br0 vid 100 self
	quiet sw ip link add link br0 name br0.100 type vlan id 100; quiet sw ip link set br0.100 up; quiet sw ip address add 10.77.255.254/16 dev br0.100
	conf "${three/PORT/eth1}"; out=$(check)
	if [[ $out == *"eth3: the interface takes VLAN tags off before XDP sees the packets, and bridge br0 filters VLANs: ethtool -K eth3 rxvlan off"* ]]; then say ok "--check names RX VLAN offload"; else say FAILED "$out"; fi
}

[ $# -gt 0 ] || set -- bond_backup bond_lacp vlan macsec vxlan macvlan bridge vrf nothing trunk
for kind in "$@"; do "kind_$kind"; clear_up; done
exit $bad
