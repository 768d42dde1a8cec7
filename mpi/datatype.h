/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GLEAM_MPI_DATATYPE_H
#define GLEAM_MPI_DATATYPE_H

#include <mpi.h>

/* Whether elements of the type are in memory as MPI_Pack makes them. 0 in doubt. */
int is_contiguous(MPI_Datatype type);

#endif
