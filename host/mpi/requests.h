/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Requests that another thread finishes, and that the program waits for by any function of MPI.
 */
#ifndef GLEAM_MPI_REQUESTS_H
#define GLEAM_MPI_REQUESTS_H

#include <mpi.h>

/* The beginning of what a generalized request stands for. */
struct request {
	MPI_Request handle;
	struct request *next;
};

/* Whether this MPI calls the library while a program waits for such a request. */
int requests_possible(void);

/* A generalized request, by its functions query and release, which get r. */
int request_make(struct request *r, MPI_Grequest_query_function *query, MPI_Grequest_free_function *release);

/* The request is done: called by any thread, also where MPI has no support of threads. The program's
 * thread tells MPI when it waits or tests. */
void request_done(struct request *r);

#endif
