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

/* The group that a broadcast can begin in without waiting, which is there already; NULL: PMPI has it. The
 * answer is the same at all ranks, which call collectives of a communicator in one order. */
struct group *group_begun(int64_t bytes, int root, MPI_Comm comm);

/* An error with this text, "NAME by a group: WHY". */
int error_of(const char *name, const char *why);

int broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int broadcast_begin(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request);
int barrier(MPI_Comm comm);

#endif
