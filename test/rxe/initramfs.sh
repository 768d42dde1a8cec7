#!/usr/bin/env bash
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# initramfs.sh CACHE makes CACHE/initramfs of what packages.sh unpacked: the
# guest's init, a busybox, the programs with their libraries, Python and the modules; and
# Open MPI and MPICH, if they are there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$1
root=$cache/root
release=$(cat "$root/.complete")

stamp=$(cat "$root/.complete" "$here/initramfs.sh" "$here/init" | sha256sum)
[ "$(cat "$cache/initramfs.stamp" 2>/dev/null)" = "$stamp" ] && exit 0

programs=(
	bin/bash sbin/ip sbin/tc sbin/bridge sbin/mke2fs sbin/e2fsck usr/bin/rdma usr/bin/tcpdump sbin/ethtool
	usr/bin/ibv_devices usr/bin/ibv_devinfo usr/bin/ibv_rc_pingpong
	usr/bin/ib_write_bw usr/bin/ib_write_lat usr/bin/ib_send_bw usr/bin/ib_send_lat usr/bin/ib_read_bw
	usr/bin/rdma_client usr/bin/rdma_server usr/bin/ucmatose usr/bin/cmtime usr/bin/rping usr/bin/rstream usr/bin/udaddy usr/bin/mckey
)
# In the order in which they are loaded. rxe needs a crc32 hash when a link is
# added; the bridge is what the switch's ports are in; ifb and those after it are
# for losing packets on their way in, and those after them for links of some rate;
# nbd and ext4 are for the replicated block device; bonding and those after it are kinds of ports.
modules=(
	udp_tunnel ip6_udp_tunnel ib_core ib_uverbs configfs ib_cm iw_cm rdma_cm rdma_ucm crc32_generic rdma_rxe veth sch_netem
	ifb sch_ingress cls_u32 act_mirred
	sch_tbf
	nbd crc32c_generic crc16 mbcache jbd2 ext4
	llc stp bridge
	tls bonding vrf crypto_null gcm gf128mul ghash-generic macsec garp mrp 8021q ipvlan macvlan dummy vxlan
	netfs 9pnet 9p 9pnet_virtio
)
# The drivers of the NICs of test/nics, in the order in which its guest loads them.
nics=(failover net_failover virtio_net vmxnet3 e1000e dca i2c-algo-bit igb)

tmp=$(mktemp -d "$cache/initramfs.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp" # the guest's /, which gleamd reads as a user of its own
mkdir -p "$tmp"/{bin,sbin,usr/bin,usr/sbin,etc,dev,proc,sys,tmp,run,host,modules,lib64,usr/lib/x86_64-linux-gnu,lib}

cp "$(command -v busybox)" "$tmp/bin/busybox"
# Not ip and tc: the applets do less than the programs.
for applet in mount umount insmod poweroff mkdir cat cp ls dmesg sleep sync sed grep ln chmod rm head tail kill ps uname env sysctl timeout hostname mktemp od tr seq cut ping stty readlink wc basename dirname test; do
	ln -s /bin/busybox "$tmp/bin/$applet"
done

libdirs=$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/blas:$root/usr/lib/x86_64-linux-gnu/lapack
linked=() # files whose libraries the guest needs
libraries() { linked+=("$@"); }
# copy_libraries copies the libraries of all files of linked to where the guest's loader looks.
copy_libraries() {
	local name arrow path
	LD_LIBRARY_PATH=$libdirs ldd "${linked[@]}" >"$cache/linked"
	if awk '/:$/ { file = $0 } /not found/ { print file, $0; missing = 1 } END { exit !missing }' "$cache/linked" >&2; then
		echo "libraries missing; add their packages to packages.sh" >&2
		exit 1
	fi
	while read -r name arrow path; do
		case $arrow in
		'=>') cp -Lu "$path" "$tmp/usr/lib/x86_64-linux-gnu/$name" ;;
		*) case $name in /*) cp -Lu "$name" "$tmp/lib64/" ;; esac ;;
		esac
	done < <(sed -nE 's/^\t(.*) \(0x.*/\1/p' "$cache/linked" | sort -u)
}
for p in "${programs[@]}"; do
	mkdir -p "$tmp/$(dirname "$p")"
	cp -L "$root/$p" "$tmp/$p"
	libraries "$root/$p"
done
ln -s bash "$tmp/bin/sh"

# Python, with numpy and pyverbs: compiled here, because the guest is slow.
python=$(basename "$(echo "$root"/usr/bin/python3.*[0-9])")
cp "$root/usr/bin/$python" "$tmp/usr/bin/python3"
libraries "$root/usr/bin/$python"
mkdir -p "$tmp/usr/lib/python3/dist-packages"
cp -rL "$root/usr/lib/$python" "$tmp/usr/lib/"
cp -rL "$root"/usr/lib/python3/dist-packages/{numpy,pyverbs} "$tmp/usr/lib/python3/dist-packages/"
find "$tmp/usr/lib/$python" "$tmp/usr/lib/python3" -depth -type d \( -name tests -o -name test -o -name f2py -o -name lib2to3 -o -name pydoc_data -o -name __pycache__ \) -exec rm -r {} +
LD_LIBRARY_PATH=$libdirs PYTHONHOME=$tmp/usr "$root/usr/bin/$python" -m compileall -q -b --invalidation-mode unchecked-hash -s "$tmp" "$tmp/usr/lib/$python" "$tmp/usr/lib/python3"
find "$tmp/usr/lib/$python" "$tmp/usr/lib/python3" -name '*.py' -delete
while read -r so; do libraries "$so"; done < <(find "$tmp/usr/lib/$python" "$tmp/usr/lib/python3" -name '*.so')

# The provider is loaded by its absolute path.
provider=usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so
mkdir -p "$tmp/$(dirname $provider)" "$tmp/etc/libibverbs.d"
provider=$(cd "$root" && echo usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so)
cp -L "$root/$provider" "$tmp/$provider"
libraries "$root/$provider"
# libgleam-tls, which the host builds, is linked to it.
cp -L "$root/usr/lib/x86_64-linux-gnu/libssl.so.3" "$tmp/usr/lib/x86_64-linux-gnu/"
libraries "$root/usr/lib/x86_64-linux-gnu/libssl.so.3"
cp "$root/etc/libibverbs.d/rxe.driver" "$tmp/etc/libibverbs.d/"
# pthread_exit loads it, which rping calls.
cp -L /lib/x86_64-linux-gnu/libgcc_s.so.1 "$tmp/usr/lib/x86_64-linux-gnu/"

# Open MPI and UCX load their plugins by absolute paths. Plugins for networks whose
# libraries were not unpacked stay out, as their own loaders leave them out.
multiarch=usr/lib/x86_64-linux-gnu
if [ -e "$root/usr/bin/orterun" ]; then
	libdirs+=:$root/$multiarch/openmpi/lib:$root/$multiarch/pmix2/lib
	cp -L "$root/usr/bin/orterun" "$tmp/usr/bin/mpirun.openmpi"
	libraries "$root/usr/bin/orterun"
	for plugin in $multiarch/openmpi/lib/openmpi3 $multiarch/ucx $multiarch/pmix2/lib/pmix; do
		mkdir -p "$tmp/$plugin"
		for so in "$root/$plugin"/*.so "$root/$plugin"/*.so.?; do
			[ -e "$so" ] && ! LD_LIBRARY_PATH=$libdirs ldd "$so" | grep 'not found' >/dev/null || continue # -q may end ldd by a signal, which pipefail takes for no match
			cp -L "$so" "$tmp/$plugin/"
			libraries "$so"
		done
	done
	for so in libmpi libmpi_mpifh libmpi_usempi_ignore_tkr libmpi_usempif08; do
		libraries "$root/$multiarch/$so.so.40"
		cp -L "$root/$multiarch/$so.so.40" "$tmp/$multiarch/"
	done
	mkdir -p "$tmp/usr/share" "$tmp/etc"
	cp -rL "$root/usr/share/openmpi" "$tmp/usr/share/"
	cp -rL "$root/etc/openmpi" "$tmp/etc/"
fi
if [ -e "$root/usr/bin/mpirun.mpich" ]; then
	for p in mpirun.mpich hydra_pmi_proxy; do
		cp -L "$root/usr/bin/$p" "$tmp/usr/bin/"
		libraries "$root/usr/bin/$p"
	done
	for so in libmpich libmpichfort; do
		cp -L "$root/$multiarch/$so.so.12" "$tmp/$multiarch/"
		libraries "$root/$multiarch/$so.so.12"
	done
fi

copy_libraries

n=10
# put FOLDER MODULE... puts modules of the kernel into a folder, with names in their order.
put() {
	local folder=$1 file m
	shift
	mkdir -p "$folder"
	for m in "$@"; do
		file=$(find "$root/lib/modules/$release" -name "$m.ko*" | head -n1)
		if [ -z "$file" ]; then
			echo "kernel $release has no module $m" >&2
			exit 1
		fi
		case $file in
		*.xz) xz -dc "$file" >"$folder/$n-$m.ko" ;;
		*.zst) zstd -qdc "$file" >"$folder/$n-$m.ko" ;;
		*) cp "$file" "$folder/$n-$m.ko" ;;
		esac
		n=$((n + 1))
	done
}
put "$tmp/modules" "${modules[@]}"
put "$tmp/modules/nics" "${nics[@]}"
cp "$here/init" "$tmp/init"
chmod 755 "$tmp/init"
echo 'root:x:0:0:root:/:/bin/sh' >"$tmp/etc/passwd"
echo '127.0.0.1 localhost' >"$tmp/etc/hosts"
(cd "$tmp" && find . | cpio --quiet -o -H newc -R 0:0) >"$cache/initramfs.new"
mv "$cache/initramfs.new" "$cache/initramfs"
echo "$stamp" >"$cache/initramfs.stamp"
