/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Ibcast by the group of a communicator that has one. The group's queue carries it.
 */
#include <stdlib.h>
#include <string.h>

#include "bcast.h"
#include "datatype.h"
#include "queue.h"
#include "requests.h"

#define API __attribute__((visibility("default")))

struct begun {
	struct request request; /* first */
	struct job job;
	struct packed packed;   /* bytes is NULL: the type is contiguous */
	int receives;
	int asked, result;      /* query has been called, and its result */
};

static void finished(struct job *job)
{
	request_done(&((struct begun *)((char *)job - offsetof(struct begun, job)))->request);
}

/* In a function of MPI that waits or tests. */
static int query(void *state, MPI_Status *status)
{
	struct begun *b = state;

	if (!b->asked && b->job.failed)
		b->result = error_of("MPI_Ibcast", b->job.why);
	else if (!b->asked && b->packed.bytes && b->receives)
		b->result = unpack_elements(&b->packed, b->job.bytes);
	b->asked = 1;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
	status->MPI_ERROR = b->result;
	return b->result;
}

static int release(void *state)
{
	struct begun *b = state;

	packed_close(&b->packed);
	free(b);
	return MPI_SUCCESS;
}

/* MPI_SUCCESS, and b is the request's. */
static int begin(struct begun *b, struct group *g, void *buffer, MPI_Count count, MPI_Datatype type, int root)
{
	int rc = MPI_SUCCESS;

	b->receives = g->rank != root;
	b->job.at = buffer;
	b->job.root = root;
	b->job.finished = finished;
	if (!is_contiguous(type)) {
		rc = packed_open(&b->packed, buffer, count, type, b->job.bytes);
		if (!rc && !b->receives)
			rc = pack_elements(&b->packed, b->job.bytes);
		b->job.at = b->packed.bytes;
	}
	if (rc)
		strcpy(b->job.why, "MPI_Pack has no memory, fails, or has a format of its own");
	else if ((rc = request_make(&b->request, query, release)))
		strcpy(b->job.why, "MPI_Grequest_start fails");
	return rc;
}

/* 0 if PMPI has the broadcast; 1 and its result in rc. */
static int by_group(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request, int *rc)
{
	int64_t bytes = bytes_of(count, type);
	struct group *g = request ? group_begun(bytes, root, comm) : NULL;
	struct begun *b;

	if (!g)
		return 0;
	b = calloc(1, sizeof *b);
	if (!b)
		abort(); /* the other ranks wait */
	b->packed.type = MPI_DATATYPE_NULL;
	b->job.bytes = bytes;
	*rc = begin(b, g, buffer, count, type, root);
	if (*rc) {
		*rc = error_of("MPI_Ibcast", b->job.why);
		PMPI_Comm_call_errhandler(comm, *rc);
		release(b);
		return 1;
	}
	g->begun++;
	*request = b->request.handle;
	if (queue_add(g, &b->job)) {
		b->job.failed = 1;
		finished(&b->job);
	}
	return 1;
}

int broadcast_begin(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
	int rc;

	return by_group(buffer, count, type, root, comm, request, &rc) ? rc : PMPI_Ibcast(buffer, count, type, root, comm, request);
}

#if MPI_VERSION >= 4
API int MPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
	int rc;

	return by_group(buffer, count, type, root, comm, request, &rc) ? rc : PMPI_Ibcast_c(buffer, count, type, root, comm, request);
}
#endif

API int MPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
	return broadcast_begin(buffer, count, type, root, comm, request);
}
