#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# hpl-source.sh CACHE downloads the sources of Debian's package hpcc from the mirror that apt
# knows, unpacks HPL's in CACHE/hpl/hpcc-1.5.0/hpl, and changes nothing in them. What is there
# already is kept.
set -euo pipefail
cache=$1/hpl
archive=hpcc_1.5.0.orig.tar.gz
sum=0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8

[ "$(cat "$cache/.complete" 2>/dev/null)" = "$sum" ] && exit 0
uri=$(apt-get download --print-uris hpcc | cut -d"'" -f2)
if [ -z "$uri" ]; then
	echo "apt knows no package hpcc (apt-get update? Debian?)" >&2
	exit 3
fi
echo "downloading $archive" >&2
rm -rf "$cache"
mkdir -p "$cache"
# apt's own program: it uses apt's proxy, and compares the sum.
/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "$(dirname "$uri")/$archive" "$cache/$archive" "SHA256:$sum" >&2
tar -xzf "$cache/$archive" -C "$cache" hpcc-1.5.0/hpl
rm "$cache/$archive"
echo "$sum" >"$cache/.complete"
