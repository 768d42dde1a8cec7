#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# boot.sh CACHE SHARE SECONDS [ARGUMENT...] boots the guest, which mounts SHARE, runs guest.sh
# there and powers off. Its output appears as it comes; its exit code is ours. QEMU, or the program that
# the variable QEMU names, has the arguments for more devices; INITRAMFS names another file than CACHE/initramfs, and
# MEMORY another size than 2G. With GLEAM_START=1 the guest powers off once it has started.
set -euo pipefail
cache=$1 share=$2 seconds=$3
shift 3
devices=("$@")
kernel=$(echo "$cache"/root/boot/vmlinuz-*)

qemu() { # ACCEL WORDS-OF-THE-COMMAND-LINE CONSOLE ARGUMENTS...
	local accel=$1 words=$2 console=$3
	shift 3
	exec "${QEMU:-qemu-system-x86_64}" -accel "$accel" -cpu max -smp 2 -m "${MEMORY:-2G}" \
		-display none -no-reboot -nodefaults -monitor none -serial "file:$console" \
		-kernel "$kernel" -initrd "${INITRAMFS:-$cache/initramfs}" \
		-append "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable $words" "$@" </dev/null
}

if [ "${GLEAM_START:-}" = 1 ]; then
	(qemu tcg,thread=multi gleam.probe "$cache/probe.log") &
	guest=$!
	for _ in $(seq 600); do
		kill -0 $guest 2>/dev/null || break
		sleep 0.5
	done
	kill $guest 2>/dev/null || true
	if ! grep gleam-probe-works "$cache/probe.log"; then
		echo "the guest does not start; its console:" >&2
		cat "$cache/probe.log" >&2
		exit 125
	fi
	exit 0
fi

# /dev/kvm may be there and yet no guest get anywhere: only a boot tells. The
# answer holds for this machine's running kernel.
accel=tcg,thread=multi
if [ -w /dev/kvm ]; then
	about="$(cat /proc/sys/kernel/random/boot_id) $(basename "$kernel")"
	if [ "$(head -n1 "$cache/accel" 2>/dev/null)" != "$about" ]; then
		(qemu kvm gleam.probe "$cache/probe.log") >/dev/null 2>&1 &
		probe=$!
		disown $probe # bash would say how it ended
		for _ in $(seq 100); do
			kill -0 $probe 2>/dev/null || break
			sleep 0.1
		done
		kill $probe 2>/dev/null || true
		works=tcg,thread=multi
		if grep -q gleam-probe-works "$cache/probe.log" 2>/dev/null; then works=kvm; fi
		printf '%s\n%s\n' "$about" "$works" >"$cache/accel"
	fi
	accel=$(sed -n 2p "$cache/accel")
fi

# An emulated guest may crash while its kernel patches its own text, before anything of Gleam runs in it: QEMU
# translates code on one CPU while another CPU changes it. Such a guest is booted again, once.
for attempt in 1 2; do
	: >"$share/output"
	rm -f "$share/rc" "$share/up"
	echo "booting $(basename "$kernel") ($accel)"
	(qemu "$accel" "" "$share/console" \
		-virtfs "local,path=$share,mount_tag=host,security_model=none,multidevs=remap" "${devices[@]}") &
	guest=$!
	trap 'kill $guest 2>/dev/null || true' EXIT
	tail -n +1 -f --pid=$guest -s 0.2 "$share/output" 2>/dev/null &
	printer=$!
	begin=$(date +%s%N)
	up=""
	deadline=$((SECONDS + seconds))
	while kill -0 $guest 2>/dev/null; do
		if [ -z "$up" ] && [ -e "$share/up" ]; then
			up=$((($(date +%s%N) - begin) / 100000000))
		fi
		if [ $SECONDS -ge $deadline ]; then
			kill $guest
			echo "the guest was still running after $seconds s; its console is in $share/console" >&2
			wait $printer || true
			exit 124
		fi
		sleep 0.2
	done
	wait $printer || true
	if [ -e "$share/up" ] || [ $attempt = 2 ]; then
		break
	fi
	echo "the guest's kernel crashed before it was up: $(grep -m 1 'Kernel panic' "$share/console" || echo 'its console does not say why')" >&2
done
echo "the guest was up after ${up%?}.${up#"${up%?}"} s, and gone after $((($(date +%s%N) - begin) / 1000000000)) s"
if grep -E 'BUG:|WARNING:|Oops|Call Trace' "$share/dmesg" >&2 2>/dev/null; then
	echo "the guest's kernel complains: see $share/dmesg" >&2
fi
if ! [ -s "$share/rc" ]; then
	echo "the guest ended without an exit code; the end of its console:" >&2
	tail -n 30 "$share/console" >&2
	exit 125
fi
exit "$(cat "$share/rc")"
