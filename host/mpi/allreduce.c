/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Allreduce as the MPI's reduction to rank 0 and a broadcast, of the sizes that settings.c has for it.
 */
#include "bcast.h"

#define API __attribute__((visibility("default")))

/* The result at rank 0. MPI_IN_PLACE is for the root of MPI_Reduce alone. */
static int reduce(const void *sent, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rank;

	PMPI_Comm_rank(comm, &rank);
	if (rank && sent == MPI_IN_PLACE)
		return PMPI_Reduce(result, NULL, count, type, op, 0, comm);
	return PMPI_Reduce(sent, result, count, type, op, 0, comm);
}

API int MPI_Allreduce(const void *sent, void *result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int64_t bytes = bytes_of(count, type);
	struct group *g = op == MPI_OP_NULL ? NULL : group_for(ALLREDUCE, bytes, 0, comm);
	int rc;

	if (!g)
		return PMPI_Allreduce(sent, result, count, type, op, comm);
	rc = reduce(sent, result, count, type, op, comm);
	return rc ? rc : broadcast_by(g, result, count, type, bytes, 0, comm);
}
