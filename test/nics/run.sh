#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [--quick] [--run EXPRESSION] [MACHINE...] has gleamd serve emulated NICs in place of veths: it boots the
# guest of test/rxe in QEMU once for each machine, in which a host's NIC and a port of the switch are joined in pairs,
# and runs the machine's cases there (test/nics/cases). A line for each says PASS, FAIL or SKIP; the exit code is 1 if
# one failed. Logs are left in .cache/rxe/nics. With GLEAM_START=1 all is built, and the guest started, without a case.
#
#   A  virtio-net, four pairs              C  igb, three pairs (QEMU 8 or later)
#   B  virtio-net, vmxnet3, e1000e, igb    D  virtio-net with two queues, three pairs of taps (root)
#
#   --quick  the main cases of machine A alone
#   --run    only the cases whose names match
#
# Where the guest cannot be had, it says so and succeeds; with CI=true or GLEAM_REQUIRE_ROOT=1 it fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=$top/.cache/rxe
go=${GO:-go}

quick="" only=. machines=()
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=quick ;;
	--run)
		only=${2:?--run wants an expression}
		shift
		;;
	[A-D]) machines+=("$1") ;;
	*)
		sed -n '5,17s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
	shift
done
if [ ${#machines[@]} = 0 ]; then
	machines=(A B C D)
	[ -z "$quick" ] || machines=(A)
fi

missing() {
	if [ "${CI:-}" = true ] || [ "${GLEAM_REQUIRE_ROOT:-}" = 1 ]; then
		echo "FAILED: emulated NICs: $*" >&2
		exit 1
	fi
	echo "SKIPPED: emulated NICs: $*" >&2
	exit 0
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock -n 9 || {
	echo "another run is using $cache; waiting" >&2
	flock 9
}
"$top/scripts/need" rxe-machine || missing "qemu, cpio, busybox or xz is missing and cannot be installed"
"$top/test/rxe/packages.sh" "$cache" || missing "the guest's packages cannot be had"
"$top/test/rxe/initramfs.sh" "$cache"
export QEMU=""
case " ${machines[*]} " in
*' B '* | *' C '*) QEMU=$("$here/qemu.sh" "$cache") || QEMU="" ;;
esac
with_igb=$QEMU

out=$cache/nics
rm -rf "$out"
mkdir -p "$out/bin"
cd "$top"
CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags '-s -w' -o "$out/bin/" ./cmd/gleamd ./cmd/gleam
if [ "${GLEAM_START:-}" = 1 ]; then
	exec "$top/test/rxe/boot.sh" "$cache" "$out" 60
fi
cp "$here"/cases/*.sh "$out/bin/"
sockets=$(mktemp -d) # the names of sockets are short
trap 'rm -rf "$sockets"' EXIT

# pair I DEVICE joins two NICs of the guest: host I's, and the switch's port.
nics=()
pair() {
	local i=$1
	if [ "$machine" = D ]; then
		nics+=(-netdev "tap,id=h$i,ifname=h$i,queues=2,script=no,downscript=no,vhost=off" -device "virtio-net-pci,netdev=h$i,mac=02:00:00:00:01:0$i,mq=on,vectors=6,romfile="
			-netdev "tap,id=p$i,ifname=p$i,queues=2,script=no,downscript=no,vhost=off" -device "virtio-net-pci,netdev=p$i,mac=02:00:00:00:02:0$i,mq=on,vectors=6,romfile=")
	else
		nics+=(-netdev "hubport,id=h$i,hubid=$i" -device "virtio-net-pci,netdev=h$i,mac=02:00:00:00:01:0$i,romfile="
			-netdev "hubport,id=p$i,hubid=$i" -device "$2,netdev=p$i,id=dp$i,mac=02:00:00:00:02:0$i,romfile=")
	fi
}

# boot MACHINE DEVICE... boots the machine with a port of each device, and runs its cases.
boot() {
	local machine=$1 i=0 code=0 share=$out/$1 ports=$(($# - 1))
	shift
	nics=(-chardev "socket,id=monitor,path=$sockets/$machine,server=on,wait=off" -mon chardev=monitor
		-chardev "socket,id=guest,path=$sockets/$machine" -serial chardev:guest)
	local device
	for device in "$@"; do
		i=$((i + 1))
		pair $i "$device"
	done
	[ "$QEMU" = "" ] || nics+=(-machine q35)
	mkdir -p "$share"
	ln -s ../bin "$share/bin" 2>/dev/null || true
	rm "$share/bin" && cp -r "$out/bin" "$share/bin"
	printf 'exec bash /tmp/bin/guest.sh %q %q %q %q\n' "$machine" "$ports" "${quick:-all}" "$only" >"$share/guest.sh"
	if [ "$machine" = D ]; then
		unshare -n bash -euc '
			n=$1; shift
			for i in $(seq "$n"); do
				ip link add "br$i" mtu 9000 type bridge mcast_snooping 0
				ip link set "br$i" up
				for x in h p; do
					ip tuntap add dev "$x$i" mode tap multi_queue
					ip link set "$x$i" mtu 9000 master "br$i" up
				done
			done
			exec "$@"' -- $# "$top/test/rxe/boot.sh" "$cache" "$share" "$seconds" "${nics[@]}" || code=$?
	else
		"$top/test/rxe/boot.sh" "$cache" "$share" "$seconds" "${nics[@]}" || code=$?
	fi 2>&1 | tee -a "$out/report"
	[ -e "$share/rc" ] || echo "FAIL  $machine: the guest: it ended without an exit code" | tee -a "$out/report"
}
skip() { echo "SKIP  $1: $2: $3" | tee -a "$out/report"; }

seconds=900
: >"$out/report"
for machine in "${machines[@]}"; do
	QEMU=""
	case $machine in
	A) boot A virtio-net-pci virtio-net-pci virtio-net-pci virtio-net-pci ;;
	B)
		QEMU=$with_igb
		boot B virtio-net-pci vmxnet3 e1000e ${with_igb:+igb}
		[ -n "$with_igb" ] || skip B "the port of igb" "it needs QEMU 8 or later, and that of Debian's backports cannot be had"
		;;
	C)
		QEMU=$with_igb
		if [ -n "$with_igb" ]; then boot C igb igb igb; else skip C "all cases" "igb needs QEMU 8 or later, and that of Debian's backports cannot be had"; fi
		;;
	D)
		if ! [ -c /dev/net/tun ]; then skip D "all cases" "there is no /dev/net/tun"
		elif [ "$(id -u)" != 0 ]; then skip D "all cases" "taps need root"
		elif ! "$top/scripts/need" nics; then skip D "all cases" "ip is missing, and cannot be installed"
		else boot D virtio-net-pci virtio-net-pci virtio-net-pci; fi
		;;
	esac
done
count() { grep -c "^$1  " "$out/report" || true; }
failed=$(count FAIL)
echo "$(count PASS) passed, $failed failed, $(count SKIP) skipped"
[ "$failed" = 0 ]
