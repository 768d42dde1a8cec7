/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GLEAM_MPI_BCAST_H
#define GLEAM_MPI_BCAST_H

#include <mpi.h>

#include "state.h"

/* 0 if there are none, more than INT_MAX, or no such type. */
int64_t bytes_of(MPI_Count count, MPI_Datatype type);

/* The group for a collective, NULL if PMPI has it. The answer is the same at all ranks: it depends
 * on what they have agreed on, and on bytes, in which they agree. */
struct group *group_for(enum collective what, int64_t bytes, int root, MPI_Comm comm);
int broadcast_by(struct group *g, void *buffer, MPI_Count count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm);

int broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);

#endif
