#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# qemu.sh CACHE prints the path of a QEMU 8 or later, which has igb: the installed one, or that of Debian's
# backports, which it downloads from the mirror that apt knows and unpacks below CACHE/qemu. Nothing is installed,
# and apt's own lists stay as they are. Its exit code is 3 where there is none.
set -euo pipefail
cache=$1

# has_igb PROGRAM tells by what QEMU prints: its exit code is 0 for a device that it does not have, too.
has_igb() { [ -n "$("$1" -device igb,help 2>/dev/null)" ]; }

if has_igb qemu-system-x86_64; then
	command -v qemu-system-x86_64
	exit 0
fi
if [ ! -e "$cache/qemu/start" ]; then
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt fills in the variables
	read -r mirror < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename") || exit 3
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$keys" ] || keys=""
	rm -rf "$cache/qemu"
	mkdir -p "$cache/qemu"/{lists/partial,archives,debs,root}
	echo "deb ${keys:+[signed-by=$keys] }$mirror $codename-backports main" >"$cache/qemu/sources.list"
	apt=(-qq -o Dir::Etc::SourceList="$cache/qemu/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$cache/qemu/lists" -o Dir::Cache="$cache/qemu/archives" -o APT::Sandbox::User=root)
	echo "downloading QEMU from $codename-backports" >&2
	apt-get "${apt[@]}" update >&2 || exit 3
	(cd "$cache/qemu/debs" && apt-get "${apt[@]}" download {qemu-system-{x86,common,data},seabios}/"$codename-backports") >&2 || exit 3
	for deb in "$cache"/qemu/debs/*.deb; do
		dpkg-deb -x "$deb" "$cache/qemu/root"
	done
	rm -rf "$cache"/qemu/{lists,archives,debs}
	# Its own modules have to be found first: it ends at those of another version.
	cat >"$cache/qemu/start" <<-"END"
		#!/bin/sh
		Q=$(dirname "$0")/root
		export QEMU_MODULE_DIR="$Q/usr/lib/x86_64-linux-gnu/qemu"
		exec "$Q/usr/bin/qemu-system-x86_64" -L "$Q/usr/share/qemu" -L "$Q/usr/share/seabios" "$@"
	END
	chmod 755 "$cache/qemu/start"
fi
has_igb "$cache/qemu/start" || exit 3
echo "$cache/qemu/start"
