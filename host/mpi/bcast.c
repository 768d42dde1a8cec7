/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast by a group, where there is one and it is worth it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "bcast.h"
#include "datatype.h"
#include "state.h"

#define API __attribute__((visibility("default")))

int error_of(const char *name, const char *why)
{
	char text[MPI_MAX_ERROR_STRING];
	int class, code;

	snprintf(text, sizeof text, "%s by a group: %s", name, why);
	if (settings()->verbose)
		fprintf(stderr, "gleam-mpi: %s\n", text);
	if (PMPI_Add_error_class(&class) || PMPI_Add_error_code(class, &code))
		return MPI_ERR_OTHER;
	PMPI_Add_error_string(code, text);
	return code;
}

/* Reports a group's failure as MPI reports errors: to the communicator's error handler. */
static int failure(MPI_Comm comm, const char *why)
{
	int code = error_of("MPI_Bcast", why);

	PMPI_Comm_call_errhandler(comm, code);
	return code;
}

/* By way of memory that MPI_Pack fills. */
static int packed(struct group *g, void *buffer, int count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm)
{
	struct packed p;
	int rc = packed_open(&p, buffer, count, type, bytes);

	if (rc)
		return failure(comm, "MPI_Pack has no memory or no such type");
	if (g->rank == root && pack_elements(&p, bytes))
		rc = failure(comm, "MPI_Pack fails, or has a format of its own");
	if (!rc && group_broadcast(g, p.bytes, bytes, root))
		rc = failure(comm, g->why);
	if (!rc && g->rank != root)
		rc = unpack_elements(&p, bytes);
	packed_close(&p);
	return rc;
}

int64_t bytes_of(MPI_Count count, MPI_Datatype type)
{
	MPI_Count each;

	if (type == MPI_DATATYPE_NULL || count <= 0 || PMPI_Type_size_x(type, &each) || each <= 0 || each > INT_MAX / count)
		return 0;
	return count * each;
}

/* Whether there may be a group for a collective with these arguments. */
static int is_served(int64_t bytes, int root, MPI_Comm comm)
{
	int inter, size;

	if (comm == MPI_COMM_NULL || !bytes || PMPI_Comm_test_inter(comm, &inter) || inter)
		return 0;
	PMPI_Comm_size(comm, &size);
	return size >= 2 && root >= 0 && root < size;
}

static int is_within(const struct state *s, enum collective what, int64_t bytes)
{
	return bytes >= s->least[what] && bytes <= s->most[what];
}

/* The group is made where a broadcast wants it, or where one has been begun before that would have. */
struct group *group_for(enum collective what, int64_t bytes, int root, MPI_Comm comm)
{
	struct state *s = is_served(bytes, root, comm) ? state_of(comm) : NULL;
	int wanted;

	if (!s || s->plain)
		return NULL;
	wanted = is_within(s, what, bytes);
	if (wanted || is_within(s, IBCAST, s->begun))
		state_group(s, comm);
	return wanted ? s->group : NULL;
}

struct group *group_begun(int64_t bytes, int root, MPI_Comm comm)
{
	struct state *s = is_served(bytes, root, comm) ? state_found(comm, 1) : NULL;

	if (!s)
		return NULL;
	if (bytes > s->begun)
		s->begun = bytes;
	return s->group && s->group->local == MPI_COMM_NULL && is_within(s, IBCAST, bytes) ? s->group : NULL;
}

/* The first one after an MPI_Ibcast makes the group for those that follow. */
int barrier(MPI_Comm comm)
{
	struct state *s = comm == MPI_COMM_NULL ? NULL : state_found(comm, 0);

	if (s && s->begun && !s->plain && !s->group)
		group_for(IBCAST, s->begun, 0, comm);
	return PMPI_Barrier(comm);
}

int broadcast_by(struct group *g, void *buffer, MPI_Count count, MPI_Datatype type, int64_t bytes, int root, MPI_Comm comm)
{
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

API int MPI_Barrier(MPI_Comm comm)
{
	return barrier(comm);
}

API int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	return broadcast(buffer, count, type, root, comm);
}
