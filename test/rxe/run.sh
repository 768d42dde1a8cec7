#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [--here] [--long] [--mpi] [--also-mpi] [--hpl] [--torch] [--record] [--run EXPRESSION] [--times N] proves the switch against the
# kernel's own RC transport (rdma_rxe): it boots Debian's stock kernel 6.12 in
# QEMU, runs the cases of test/rxe/cases there and prints their table. A case that fails is run again with a capture: up to
# two that pass then, and had no wrong bytes, are FLAKY and not failed, as scripts/gotest has it. The exit
# code is theirs. Logs, and captures of cases that fail, are left in
# .cache/rxe/share. With GLEAM_START=1 all is built, and the machine started, without a case.
#
#   --here  on this machine instead, which has the modules rdma_rxe, nbd
#           and sch_netem, libibverbs with the provider of rxe, and is given root
#   --long  the long sweeps too
#   --mpi   with Open MPI and MPICH in the guest, and no cases but those of MPI, with MPICH's own tests
#   --hpl   with Open MPI and HPL, and no cases but those of HPL
#   --torch  with this machine's torch in the guest, which has 5 GiB then, and no cases but those of torch.distributed
#   --also-mpi  the quick cases of both after all others
#   --record  capture the packets of every case
#   --run   only the cases whose names match
#   --times  the cases so many times, one after the other
#
# Where there is no apt-get, or no Debian 12 or newer behind it, it says so and
# succeeds without having done anything; with CI=true or GLEAM_REQUIRE_ROOT=1 it
# fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
cache=$top/.cache/rxe
go=${GO:-go}

machine=yes seconds=1500 mpi="" hpl="" suite="" torch=""
arguments=(--gleamd gleamd --broken gleamd-first-ack)
while [ $# -gt 0 ]; do
	case $1 in
	--here) machine="" ;;
	--long)
		arguments+=(--long)
		seconds=3600
		;;
	--mpi)
		mpi=yes suite=yes cache=$top/.cache/rxe-mpi
		arguments+=(--mpi --run MPI)
		;;
	--hpl)
		mpi=yes hpl=yes cache=$top/.cache/rxe-mpi
		arguments+=(--run ^HPL)
		;;
	--torch)
		torch=yes
		arguments+=(--limit 20m --run ^torch)
		;;
	--also-mpi) mpi=yes hpl=yes cache=$top/.cache/rxe-mpi ;;
	--record) arguments+=(--record) ;;
	--run)
		arguments+=(--run "${2:?--run wants an expression}")
		shift
		;;
	--times)
		arguments+=(--times "${2:?--times wants a number}")
		seconds=3600
		shift
		;;
	*)
		sed -n '5,26s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
	shift
done

skip() {
	if [ "${CI:-}" = true ] || [ "${GLEAM_REQUIRE_ROOT:-}" = 1 ]; then
		echo "FAILED: rxe machine: $*" >&2
		exit 1
	fi
	echo "SKIPPED: rxe machine: $*" >&2
	exit 0
}

if [ -n "$mpi" ] && [ -z "$machine" ]; then
	echo "--mpi and --hpl are for the machine" >&2
	exit 2
fi

mkdir -p "$cache"
exec 9>"$cache/lock"
flock -n 9 || {
	echo "another run is using $cache; waiting" >&2
	flock 9
}

if [ -n "$machine" ]; then
	"$top/scripts/need" rxe-machine ||
		skip "qemu, cpio, busybox or xz is missing and cannot be installed"
	mpi_packages=()
	# shellcheck source=test/rxe/mpi-packages.sh
	[ -z "$mpi" ] || . "$here/mpi-packages.sh"
	"$here/packages.sh" "$cache" "${mpi_packages[@]}" || skip "its packages cannot be had"
	"$here/initramfs.sh" "$cache"
	if [ -n "$torch" ]; then
		"$top/scripts/need" torch || skip "there is no torch"
		"$here/torch.sh" "$cache"
		export INITRAMFS=$cache/initramfs-torch MEMORY=5G
	fi
	[ -z "$hpl" ] || "$here/source.sh" "$cache/hpl" hpcc hpcc_1.5.0.orig.tar.gz \
		0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8 hpcc-1.5.0/hpl || skip "HPL's sources cannot be had"
	[ -z "$suite" ] || "$here/source.sh" "$cache/mpich" mpich mpich_4.0.2.orig.tar.xz \
		b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860 mpich-4.0.2/test/mpi || skip "MPICH's sources cannot be had"
fi
"$top/scripts/need" rxe || skip "there is no C compiler"

# Programs. Those linked to libibverbs take its headers from the unpacked
# packages, so that they fit the library in the guest.
share=$cache/share
rm -rf "$share"
mkdir -p "$share/bin"
cd "$top"
cc=gcc
if [ -n "$machine" ]; then
	libs=$cache/root/usr/lib/x86_64-linux-gnu
	cc="gcc -I$cache/root/usr/include -L$libs -Wl,-rpath-link,$libs"
	export CGO_CFLAGS="-O2 -g -I$cache/root/usr/include" CGO_LDFLAGS="-L$libs -Wl,-rpath-link,$libs"
else
	"$top/scripts/need" rxe-here
fi
CGO_ENABLED=0 "$go" build -trimpath -o "$share/bin/" ./cmd/gleamd
CGO_ENABLED=1 "$go" build -trimpath -tags verbs -o "$share/bin/" ./test/rxe/cases ./cmd/gleam ./cmd/gleam-lab ./lab/block/blockd
make -s -C host/libgleam CC="$cc" BUILD="$share/bin"
$cc -O2 -Wall -Wextra -o "$share/bin/member" test/rxe/member.c -lrdmacm -libverbs
for program in peer targets; do
	$cc -O2 -Wall -Wextra -Ihost/libgleam -o "$share/bin/$program" "test/rxe/$program.c" -L"$share/bin" -lgleam -lrdmacm -libverbs -Wl,-rpath,'$ORIGIN'
done
make -s -C examples CC="$cc" BUILD="$share/bin" GLEAM="-I../host/libgleam -L$share/bin -lgleam"
cp "$here"/{kinds.sh,rank.py,notorch.py} "$share/bin/"
cp -r examples/weights.py host/libgleam/python/{*.py,gleam_torch} "$share/bin/"
if [ -n "$mpi" ]; then
	for kind in openmpi mpich; do
		case $kind in
		openmpi) where=(MPI_CFLAGS="-I$libs/openmpi/include" MPI_LIBS="-L$libs/openmpi/lib -lmpi") ;;
		mpich) where=(MPI_CFLAGS="-I$cache/root/usr/include/x86_64-linux-gnu/mpich" MPI_LIBS="-L$libs -lmpich") ;;
		esac
		make -s -C host/mpi CC="$cc" BUILD="$share/bin" GLEAM="$share/bin" "${where[@]}" $kind
		[ -z "$suite" ] || make -s -C host/mpi/test/mpich CC="$cc" BUILD="$share/bin" OBJECTS="$cache/mpich/objects-$kind" SUITE="$cache/mpich/mpich-4.0.2/test/mpi" MPI=$kind "${where[@]}"
	done
	"$top/scripts/need" fortran || skip "there is no Fortran compiler"
	fortran="gfortran -O2 -w -fallow-argument-mismatch host/mpi/test/fortran.f90 -L$libs -L$libs/openmpi/lib -Wl,-rpath-link,$libs"
	$fortran -I"$libs/openmpi/include" -I"$(echo "$libs"/fortran/gfortran-mod-*/openmpi)" -o "$share/bin/mpi-fortran-openmpi" -lmpi_usempif08 -lmpi_usempi_ignore_tkr -lmpi_mpifh -lmpi
	$fortran -I"$cache/root/usr/include/x86_64-linux-gnu/mpich" -o "$share/bin/mpi-fortran-mpich" -lmpichfort -lmpich
	cp "$here/mpi-rank.sh" "$share/bin/"
fi
if [ -n "$hpl" ]; then
	make -s -C host/mpi/hpl CC="$cc" BUILD="$share/bin" OBJECTS="$cache/hpl/objects" HPL="$cache/hpl/hpcc-1.5.0/hpl" MPI_CFLAGS="-I$libs/openmpi/include" \
		MPI_LIBS="-L$libs/openmpi/lib -lmpi" BLAS="$libs/blas/libblas.so.3"
fi

# The negative control: a switch whose core forwards the first ACK instead of
# the minimum. Nothing in the product can be set to that, so a copy is patched.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - --exclude=./.git --exclude=./.cache --exclude=./bin . | tar -xf - -C "$copy"
patch -s -d "$copy" -p1 <"$here/first-ack.patch" || {
	echo "first-ack.patch does not fit mcast/feedback.go any more: write it anew" >&2
	exit 1
}
(cd "$copy" && CGO_ENABLED=0 "$go" build -buildvcs=false -trimpath -o "$share/bin/gleamd-first-ack" ./cmd/gleamd)

if [ -n "$machine" ]; then
	{
		printf 'exec cases --out /host'
		printf ' %q' "${arguments[@]}"
		echo
	} >"$share/guest.sh"
	"$here/boot.sh" "$cache" "$share" $seconds
else
	export PATH=$share/bin:$PATH
	"$top/scripts/as-root" env PATH="$PATH" cases --out "$share" "${arguments[@]}"
fi
