#!/bin/sh
# Copyright 2026 The Gleam Authors
# SPDX-License-Identifier: Apache-2.0
#
# mpi-rank.sh PROGRAM... runs one rank, under mpirun: rank r has the RDMA device
# gleam(r % HOSTS + 1). LIBRARY, if it is set, is preloaded.
set -eu
n=$((${OMPI_COMM_WORLD_LOCAL_RANK:-${PMI_RANK:-}} % HOSTS + 1))
export UCX_NET_DEVICES=gleam$n:1 GLEAM_MPI_DEVICE=gleam$n
[ -z "${LIBRARY:-}" ] || export LD_PRELOAD="$LIBRARY"
exec "$@"
