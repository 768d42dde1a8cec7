#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# torch.sh CACHE makes CACHE/initramfs-torch: the guest's files, and behind them torch with its libraries as this
# machine has them. They are in the guest's memory: by 9p an import would take very long.
set -euo pipefail
cache=$1
packages=usr/lib/python3/dist-packages

tmp=$(mktemp -d "$cache/torch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
mkdir -p "$tmp/$packages" "$tmp/usr/lib/x86_64-linux-gnu"
for module in torch tqdm certifi astunparse six.py typing_extensions.py; do
	cp -a "/$packages/$module" "$tmp/$packages/"
done
find "$tmp/$packages/torch/bin" -type f ! -name torch_shm_manager -delete
libraries=()
for so in "/$packages"/torch/*.so "/$packages"/torch/lib/*.so; do
	[ -e "$so" ] || continue # a link to a library of torch's own tests
	libraries+=("$so")
	[ ! -L "$so" ] || cp -L "$so" "$tmp/usr/lib/x86_64-linux-gnu/$(basename "$(readlink "$so")")"
done
ldd "${libraries[@]}" | sed -nE 's/^\t(.*) => (\/[^ ]*) \(0x.*/\1 \2/p' | sort -u |
	while read -r name path; do cp -Lu "$path" "$tmp/usr/lib/x86_64-linux-gnu/$name"; done
(cd "$cache" && {
	cat initramfs
	cd "$tmp"
	find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0
}) >"$cache/initramfs-torch.new"
mv "$cache/initramfs-torch.new" "$cache/initramfs-torch"
