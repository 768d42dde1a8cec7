#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh CACHE [PACKAGE...] downloads Debian's stock kernel, RDMA programs and
# the packages that are named, and unpacks them below CACHE/root. Nothing is installed. What is there already is kept:
# remove CACHE to have newer ones. Without a network a complete cache is enough.
set -euo pipefail
cache=$1

programs=(
	rdma-core ibverbs-providers ibverbs-utils libibverbs1 libibverbs-dev librdmacm1 librdmacm-dev rdmacm-utils libibumad3 perftest libpci3
	libnl-3-200 libnl-route-3-200 libudev1 zlib1g
	iproute2 libbpf1 libelf1 libmnl0 libxtables12 libcap2 libbsd0 libmd0 libtirpc3 libgssapi-krb5-2 libkrb5-3
	libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1 libselinux1 libpcre2-8-0
	e2fsprogs libext2fs2 libss2 libblkid1 libuuid1
	ethtool tcpdump libpcap0.8 libdbus-1-3 libsystemd0 libssl3 bash libtinfo6
	PYTHON-minimal libPYTHON-minimal libPYTHON-stdlib python3-numpy python3-pyverbs libblas3 liblapack3 libgfortran5 libquadmath0 libstdc++6 libexpat1 libffi8
	"${@:2}"
)

[ -e "$cache/root/.complete" ] && [ "$(cat "$cache/root/.programs" 2>/dev/null)" = "${programs[*]}" ] && exit 0
wanted=${programs[*]}

# The cloud flavour has no rxe, so the name must end like this.
kernel=$(apt-cache search --names-only '^linux-image-6\.12\.[0-9.]+(\+deb1[2-9])?(\+bpo)?-amd64$' | cut -d' ' -f1 | sort -V | tail -n1)
if [ -z "$kernel" ]; then
	echo "no linux-image-6.12*-amd64 among the packages that apt knows (apt-get update? Debian 12 or newer?)" >&2
	exit 3
fi
# python3.11 in Debian 12.
python=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: \(python3\.[0-9]*\)-minimal$/\1/p')
programs=("${programs[@]/PYTHON/$python}")
echo "downloading $kernel and $((${#programs[@]})) more packages" >&2
rm -rf "$cache/root" "$cache/debs"
mkdir -p "$cache/debs" "$cache/root"
# Debian 13 renamed some libraries.
for i in "${!programs[@]}"; do
	apt-cache show --no-all-versions "${programs[i]}" >/dev/null 2>&1 || programs[i]+=t64
done
(cd "$cache/debs" && apt-get -qq -o APT::Sandbox::User=root download "$kernel" "${programs[@]}") >&2
for deb in "$cache"/debs/*.deb; do
	dpkg-deb -x "$deb" "$cache/root"
done
rm -rf "$cache/debs"
echo "$wanted" >"$cache/root/.programs"
ls "$cache/root/lib/modules" >"$cache/root/.complete"
