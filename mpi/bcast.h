/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GLEAM_MPI_BCAST_H
#define GLEAM_MPI_BCAST_H

#include <mpi.h>

int broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);

#endif
