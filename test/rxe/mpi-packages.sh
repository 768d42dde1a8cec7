# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# To be sourced: what Open MPI and MPICH need in the guest beside the programs of
# packages.sh, and to compile for them. Without their plugins for other networks.
# shellcheck shell=bash disable=SC2034
mpi_packages=(
	openmpi-bin openmpi-common libopenmpi3 libopenmpi-dev libpmix2 libucx0 libhwloc15
	libevent-core-2.1-7 libevent-pthreads-2.1-7 libnuma1 libmunge2 libunwind8 liblzma5 libgcc-s1 libstdc++6
	mpich libmpich12 libmpich-dev libslurm38
)
