#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh has an older kernel load the XDP programs: it boots Debian's cloud kernel 6.1 in QEMU, and runs the tests of
# dataplane there in which the programs replicate packets and count ACKs, as the workers do. Verifiers differ: what
# 6.12 takes may be refused by 6.1. Exit code 1: a test failed. The console is left in .cache/kernels.
#
# Where the kernel cannot be had, it says so and succeeds; with CI=true or GLEAM_REQUIRE_ROOT=1 it fails.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
cache=$top/.cache/kernels
go=${GO:-go}
modules=(llc stp bridge veth dummy garp mrp 8021q)

missing() {
	if [ "${CI:-}" = true ] || [ "${GLEAM_REQUIRE_ROOT:-}" = 1 ]; then
		echo "FAILED: older kernels: $*" >&2
		exit 1
	fi
	echo "SKIPPED: older kernels: $*" >&2
	exit 0
}

"$top/scripts/need" rxe-machine || missing "qemu, cpio, busybox or xz is missing and cannot be installed"
mkdir -p "$cache"
if [ ! -e "$cache/root/.complete" ]; then
	kernel=$(apt-cache search --names-only '^linux-image-6\.1\.[0-9.]+-[0-9]+-cloud-amd64$' | cut -d' ' -f1 | sort -V | tail -n1)
	[ -n "$kernel" ] || missing "no linux-image-6.1*-cloud-amd64 among the packages that apt knows (apt-get update? Debian 12?)"
	echo "downloading $kernel" >&2
	rm -rf "$cache"/{root,debs}
	mkdir -p "$cache"/{root,debs}
	(cd "$cache/debs" && apt-get -qq -o APT::Sandbox::User=root download "$kernel") >&2 || missing "$kernel cannot be downloaded"
	dpkg-deb -x "$cache"/debs/*.deb "$cache/root"
	rm -rf "$cache/debs"
	touch "$cache/root/.complete"
fi
kernel=$(echo "$cache"/root/boot/vmlinuz-*)

guest=$cache/guest
rm -rf "$guest"
mkdir -p "$guest"/{bin,mod,proc,sys,tmp,run,dev}
cp "$(command -v busybox)" "$guest/bin/"
for m in "${modules[@]}"; do
	file=$(find "$cache/root/lib/modules" -name "$m.ko*")
	case $file in
	*.xz) xz -dc "$file" >"$guest/mod/$m.ko" ;;
	*) cp "$file" "$guest/mod/" ;;
	esac
done
cd "$top"
CGO_ENABLED=0 "$go" test -trimpath -c -o "$guest/dataplane.test" ./dataplane
cat >"$guest/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp GLEAM_REQUIRE_ROOT=1
mount -t proc p /proc; mount -t sysfs s /sys; mount -t tmpfs t /tmp; mount -t tmpfs r /run; mount -t devtmpfs d /dev; mount -t bpf b /sys/fs/bpf
mount -t tracefs t /sys/kernel/tracing
for m in ${modules[*]}; do insmod /mod/\$m.ko; done
ip link set lo up
uname -rv
/dataplane.test -test.v -test.run 'TestFastACKsAreTheWorkers|TestFastCopiesAreTheWorkers' -test.timeout 120s 2>&1
echo "exit code \$?"
poweroff -f
END
chmod 755 "$guest/init"
(cd "$guest" && find . | cpio -o -H newc --quiet | gzip -1) >"$cache/initramfs"
timeout 300 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2G -display none -no-reboot -nodefaults -monitor none \
	-serial "file:$cache/console" -kernel "$kernel" -initrd "$cache/initramfs" -append "console=ttyS0 quiet panic=-1" </dev/null || true
tr -d '\r' <"$cache/console" | grep -E '^(#|[0-9]+\.[0-9]+\.|--- |    .*_test.go|exit code)|refuse|BUG:|Oops' || true
grep -q '^exit code 0' <(tr -d '\r' <"$cache/console") || {
	echo "FAILED: Linux 6.1: see .cache/kernels/console" >&2
	exit 1
}
[ "$(grep -c -- '^--- PASS' "$cache/console")" = 2 ] || {
	echo "FAILED: Linux 6.1: not both tests have run" >&2
	exit 1
}
