# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# To be sourced in the guest: what the machines' cases are made of. NICs are told apart by their MAC addresses:
# 02:00:00:00:01:0I is host I's, eth0 in namespace hI; 02:00:00:00:02:0I is the switch's port pI, in namespace sw.
set -u
W=/tmp/nics P=nics- mtu=1500 mode=bridge daemon="" bad=0
mkdir -p $W
chmod 755 $W
(umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >$W/key)

sw() { ip netns exec ${P}sw "$@"; }
h() { local n=$1; shift; ip netns exec "${P}h$n" "$@"; }
g() { gleam --socket $W/s.sock "$@"; }
# say prints a case's line: PASS, FAIL or SKIP, its name, and why.
say() { printf '%s  %s: %s\n' "$1" "$MACHINE" "$2${3:+: $3}"; }
fail() { why=$1; return 1; }
note() { echo "$MACHINE: $(cut -d' ' -f1 /proc/uptime) s: $*" >>/host/trace; }

# run CASE... runs functions, whose names are those of the cases with _ in place of blanks. One that fails says why in
# why, and what gleamd has said is in gleamd-MACHINE.log.
run() {
	local c
	for c in "$@"; do
		[[ ${c//_/ } =~ $ONLY ]] || continue
		why="" did=""
		note "$c"
		if "$c"; then say PASS "${c//_/ }" "$did"; else
			say FAIL "${c//_/ }" "${why:-without a reason}"
			bad=1
			{ echo "--- $c: $why"; cat $W/log; g port list; } >>"/host/failed-$MACHINE.log" 2>&1
		fi
	done
}

# await SECONDS COMMAND... waits until a command succeeds.
await() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.2
	done
}
# logged TEXT [PORT] says whether gleamd has logged a text since the last mark, of a port.
logged() { tail -n +$((mark + 1)) $W/log | grep -F -- "$1" | grep -qE "port(\"?[=:] ?\"?| )${2:-.}"; }
mark() { mark=$(wc -l <$W/log); }
says() { await 120 logged "$@" || fail "gleamd has not said within 120 s: $1 (${2:-})"; }

# place names and moves all NICs that are in the init namespace, where a driver puts new ones. Those that have a
# place keep it: a change of the name takes an interface down, with its routes.
place() {
	local at x mac
	for at in /sys/class/net/*/address; do
		x=${at%/address} mac=$(cat "$at") x=${x##*/}
		case $mac in
		02:00:00:00:01:0?)
			ip link set "$x" down name eth0 netns "${P}h${mac#*:01:0}" && up_host "${mac#*:01:0}"
			;;
		02:00:00:00:02:0?)
			ip link set "$x" down name "p${mac#*:02:0}" netns ${P}sw && up_port "${mac#*:02:0}"
			;;
		esac
	done
}
up_host() {
	h "$1" ip link set eth0 mtu "$mtu" up && h "$1" ip address add "10.77.0.$1/16" dev eth0
}
up_port() {
	sw ip link set "p$1" mtu "$mtu" up && { [ "$mode" != bridge ] || sw ip link set "p$1" master br0; }
}
# placed says whether all NICs of N hosts are where they belong.
placed() {
	place
	local i
	for i in $(seq "$N"); do h "$i" test -e /sys/class/net/eth0 && sw test -e "/sys/class/net/p$i" || return 1; done
}
# set_mtu MTU sets the MTU of all NICs.
set_mtu() {
	local i
	mtu=$1
	for i in $(seq "$N"); do h "$i" ip link set eth0 mtu "$mtu" && sw ip link set "p$i" mtu "$mtu" || fail "MTU $mtu is refused at pair $i" || return; done
	sw ip link set br0 mtu "$mtu"
}
# machine N makes the namespaces of N hosts and a switch, and places the NICs.
machine() {
	N=$1
	local n m
	for n in sw $(seq "$N" | sed s/^/h/); do ip netns add "$P$n" && ip -n "$P$n" link set lo up; done
	sw ip link add br0 type bridge && sw ip link set br0 up && sw ip address add 10.77.255.254/16 dev br0
	for m in /modules/nics/*.ko; do insmod "$m" || echo "insmod $m failed"; done
	stty -F /dev/ttyS1 raw -echo && exec 8<>/dev/ttyS1 # QEMU's monitor
	(while read -r line <&8; do echo "$line"; done >$W/monitor) &
	await 60 placed || { say FAIL "the machine" "NICs are missing: $(ip -br link) $(sw ip -br link)"; exit 1; }
}
# monitor COMMAND... has QEMU's monitor do something; an empty line ends what has come before the terminal was raw.
monitor() { note "monitor: $*"; printf '\n%s\n' "$*" >&8; }

# conf [LINE...] writes a configuration of all ports, with lines beside.
conf() {
	local i ports=""
	for i in $(seq "$N"); do ports+="${ports:+, }{name: p$i${PORT:+, $PORT}}"; done
	printf '%s\n' "ports: [$ports]" 'group_prefixes: [10.77.254.0/24]' "envelope: {keys: [{id: 1, secret_file: key}], locate_timeout: 30s}" \
		"api: {socket: $W/s.sock}" "$@" >$W/g.yaml
}
check() { sw gleamd --check -c $W/g.yaml 2>&1; }
# start [LINE...] starts gleamd, and waits until it serves.
start() {
	stop
	conf "$@"
	: >$W/log
	mark=0
	ip netns exec ${P}sw gleamd -c $W/g.yaml >$W/log 2>&1 &
	daemon=$!
	await 180 grep -q 'gleamd is ready' $W/log || fail "gleamd does not start: $(tail -n 2 $W/log)"
}
stop() {
	[ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }
	daemon=""
}
# port N QUERY prints a field of what gleam port list has of a port.
port() { g port list -o "jsonpath=\$[?@.name=='p$1'].$2" | tr -d '[]" \n'; }
is() { [ "$(port "$1" "$2")" = "$3" ]; }
modes() { # MODE... of each port
	local i=0 m
	for m in "$@"; do i=$((i + 1)); is $i xdp_mode "$m" || fail "p$i runs in mode $(port $i xdp_mode), want $m" || return; done
}

listens() { grep -q 'waiting for the sender' "$W/receiver$1" 2>/dev/null; }
# transfer KIND ARGUMENT... transfers by a group from host 1 to all others; result has what perf has printed.
transfer() {
	local kind=$1 i receivers="" to=""
	shift
	note "transfer $kind $*"
	rm -f $W/receiver*
	for i in $(seq 2 "$N"); do
		h "$i" gleam perf "$kind" --listen --key-file $W/key --timeout 60s -u 18 >"$W/receiver$i" 2>&1 &
		receivers+=" $!" to+=" 10.77.0.$i"
	done
	for i in $(seq 2 "$N"); do await 60 listens "$i" || fail "no receiver at host $i: $(cat "$W/receiver$i")" || return; done
	# shellcheck disable=SC2086 # addresses
	result=$(h 1 gleam perf "$kind" --group 10.77.254.1 --key-file $W/key --timeout "${patience:-60s}" -u 18 "$@" $to 2>&1)
	local code=$?
	note "transfer ended: $code"
	if [ $code = 0 ]; then
		for i in $receivers; do wait "$i" || { fail "$kind $*: a receiver failed: $(cat $W/receiver*)"; return; }; done
		return
	fi
	# shellcheck disable=SC2086 # process ids
	kill $receivers 2>/dev/null
	# shellcheck disable=SC2086 # process ids
	wait $receivers 2>/dev/null
	fail "$kind $*: exit code $code: $(tail -n 2 <<<"$result")"
}
