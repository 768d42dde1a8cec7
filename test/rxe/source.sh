#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# source.sh FOLDER PACKAGE ARCHIVE SUM MEMBER downloads ARCHIVE, the sources of Debian's PACKAGE, from the
# mirror that apt knows, unpacks MEMBER of it in FOLDER, and changes nothing in it. What is there already
# is kept.
set -euo pipefail
folder=$1 package=$2 archive=$3 sum=$4 member=$5

[ "$(cat "$folder/.complete" 2>/dev/null)" = "$sum" ] && exit 0
uri=$(apt-get download --print-uris "$package" | cut -d"'" -f2)
if [ -z "$uri" ]; then
	echo "apt knows no package $package (apt-get update? Debian?)" >&2
	exit 3
fi
echo "downloading $archive" >&2
rm -rf "$folder"
mkdir -p "$folder"
# apt's own program: it uses apt's proxy, and compares the sum.
/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "$(dirname "$uri")/$archive" "$folder/$archive" "SHA256:$sum" >&2
tar -xf "$folder/$archive" -C "$folder" "$member"
rm "$folder/$archive"
echo "$sum" >"$folder/.complete"
