/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast by a group, where there is one and it is worth it.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bcast.h"
#include "datatype.h"
#include "state.h"

#define API __attribute__((visibility("default")))

/* Reports a group's failure as MPI reports errors: to the communicator's error handler. */
static int failure(MPI_Comm comm, const char *why)
{
	char text[MPI_MAX_ERROR_STRING];
	int class, code;

	if (PMPI_Add_error_class(&class) || PMPI_Add_error_code(class, &code))
		return MPI_ERR_OTHER;
	snprintf(text, sizeof text, "MPI_Bcast by a group: %s", why);
	PMPI_Add_error_string(code, text);
	if (settings()->verbose)
		fprintf(stderr, "gleam-mpi: %s\n", text);
	PMPI_Comm_call_errhandler(comm, code);
	return code;
}

/* By way of a buffer that MPI_Pack fills. */
static int packed(struct group *g, void *buffer, int count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm)
{
	int room, rc, at = 0;
	unsigned char *pack;

	rc = PMPI_Pack_size(count, type, comm, &room);
	if (rc)
		return rc;
	pack = malloc(room > bytes ? room : bytes);
	if (!pack)
		return failure(comm, "no memory");
	if (g->rank == root)
		rc = PMPI_Pack(buffer, count, type, pack, room, &at, comm);
	if (!rc && g->rank == root && at != bytes)
		rc = failure(comm, "this MPI packs data in a format of its own");
	if (!rc && group_broadcast(g, pack, bytes, root))
		rc = failure(comm, g->why);
	at = 0;
	if (!rc && g->rank != root)
		rc = PMPI_Unpack(pack, bytes, &at, buffer, count, type, comm);
	free(pack);
	return rc;
}

/* Likewise from MPI_BOTTOM, which MPICH's MPI_Pack refuses: with another base, and its distance in the type. */
static int packed_from_bottom(struct group *g, int count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm)
{
	char base;
	MPI_Aint at = -(MPI_Aint)&base;
	MPI_Datatype moved;
	int rc = PMPI_Type_create_hindexed(1, &count, &at, type, &moved);

	if (rc)
		return rc;
	rc = PMPI_Type_commit(&moved);
	if (!rc)
		rc = packed(g, &base, 1, moved, bytes, root, comm);
	PMPI_Type_free(&moved);
	return rc;
}

int64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
	MPI_Count each;

	if (type == MPI_DATATYPE_NULL || count <= 0 || PMPI_Type_size_x(type, &each) || each <= 0 || each > INT_MAX / count)
		return 0;
	return count * each;
}

struct group *group_for(enum collective what, int64_t bytes, int root, MPI_Comm comm)
{
	int inter, size;
	struct state *s;

	if (comm == MPI_COMM_NULL || !bytes || PMPI_Comm_test_inter(comm, &inter) || inter)
		return NULL;
	PMPI_Comm_size(comm, &size);
	if (size < 2 || root < 0 || root >= size)
		return NULL;
	s = state_of(comm);
	if (!s || s->plain || bytes < s->least[what] || bytes > s->most[what])
		return NULL;
	return state_group(s, comm);
}

int broadcast_by(struct group *g, void *buffer, MPI_Count count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm)
{
	if (!is_contiguous(type) && buffer == MPI_BOTTOM)
		return packed_from_bottom(g, count, type, bytes, root, comm);
	if (!is_contiguous(type))
		return packed(g, buffer, count, type, bytes, root, comm);
	return group_broadcast(g, buffer, bytes, root) ? failure(comm, g->why) : MPI_SUCCESS;
}

/* 0 if PMPI has the broadcast; 1 and its result in rc. */
static int by_group(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int *rc)
{
	int64_t bytes = bytes_of(count, type);
	struct group *g = group_for(BCAST, bytes, root, comm);

	if (g)
		*rc = broadcast_by(g, buffer, count, type, bytes, root, comm);
	return g != NULL;
}

int broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	int rc;

	return by_group(buffer, count, type, root, comm, &rc) ? rc : PMPI_Bcast(buffer, count, type, root, comm);
}

#if MPI_VERSION >= 4
API int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
	int rc;

	return by_group(buffer, count, type, root, comm, &rc) ? rc : PMPI_Bcast_c(buffer, count, type, root, comm);
}
#endif

/* A group's broadcast goes on only while a rank waits in it, and its order among others is that of
 * their data. */
API int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int rank;

	if (settings()->verbose && !settings()->off && !PMPI_Comm_rank(MPI_COMM_WORLD, &rank) && !rank && !atomic_flag_test_and_set(&said))
		fprintf(stderr, "gleam-mpi: MPI_Ibcast is the MPI's own: groups carry broadcasts that are waited for\n");
	return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

API int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	return broadcast(buffer, count, type, root, comm);
}
