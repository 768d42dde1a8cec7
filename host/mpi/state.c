/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"
#include "state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ready;
static int of_comm = MPI_KEYVAL_INVALID, of_self = MPI_KEYVAL_INVALID;

/* A communicator is freed, which is collective. */
static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct state *s = value;

	(void)comm, (void)keyval, (void)extra;
	if (s->group)
		group_end(s->group);
	free(s);
	return MPI_SUCCESS;
}

/* MPI_Finalize begins: it deletes the attributes of MPI_COMM_SELF while MPI still works. */
static int finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm, (void)keyval, (void)value, (void)extra;
	group_end_all();
	return MPI_SUCCESS;
}

static int prepare(void)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!ready) {
		rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &of_comm, NULL) ||
		     PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize, &of_self, NULL) ||
		     PMPI_Comm_set_attr(MPI_COMM_SELF, of_self, NULL);
		ready = !rc;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void refused(const struct state *s, const char *why)
{
	if (settings()->verbose && !s->rank)
		fprintf(stderr, "gleam-mpi: no group: %s; the MPI's own MPI_Bcast serves the communicator\n", why);
}

static void own_requests(const struct state *s, const char *why)
{
	if (settings()->verbose && !s->rank)
		fprintf(stderr, "gleam-mpi: MPI_Ibcast is the MPI's own: %s\n", why);
}

/* Agrees on the settings: one rank without groups leaves the communicator to PMPI, and of each collective
 * the largest least and the smallest most count. */
static int consult(struct state *s, MPI_Comm comm)
{
	char why[WHY];
	int rc;

	snprintf(why, sizeof why, "%s", settings()->off ? settings()->why : "");
	rc = agree(comm, why);
	s->plain = rc != 1;
	if (s->plain)
		refused(s, why);
	for (int i = 0; i < COLLECTIVES; i++) {
		s->least[i] = settings()->bands[i].least;
		s->most[i] = settings()->bands[i].most;
	}
	if (!requests_possible())
		s->least[IBCAST] = NEVER;
	return rc < 0 || PMPI_Allreduce(MPI_IN_PLACE, s->least, COLLECTIVES, MPI_INT64_T, MPI_MAX, comm) ||
	       PMPI_Allreduce(MPI_IN_PLACE, s->most, COLLECTIVES, MPI_INT64_T, MPI_MIN, comm);
}

struct state *state_found(MPI_Comm comm, int make)
{
	struct state *s;
	int found;

	if ((!make && !ready) || prepare() || PMPI_Comm_get_attr(comm, of_comm, &s, &found))
		return NULL;
	if (found || !make)
		return found ? s : NULL;
	s = calloc(1, sizeof *s);
	if (!s)
		abort(); /* the other ranks wait */
	PMPI_Comm_rank(comm, &s->rank);
	if (PMPI_Comm_set_attr(comm, of_comm, s)) {
		free(s);
		return NULL;
	}
	return s;
}

struct state *state_of(MPI_Comm comm)
{
	struct state *s = state_found(comm, 1);

	if (s && !s->asked) {
		if (consult(s, comm))
			return NULL;
		s->asked = 1;
	}
	return s;
}

struct group *state_group(struct state *s, MPI_Comm comm)
{
	char why[WHY] = "";

	if (s->group || s->plain)
		return s->group;
	group_make(&s->group, comm, why);
	s->plain = !s->group;
	if (s->plain)
		refused(s, why);
	else if (s->group->local != MPI_COMM_NULL)
		own_requests(s, "several ranks have one host");
	else if (!requests_possible())
		own_requests(s, "opal_progress_register is missing");
	if (s->group && settings()->verbose && !s->rank)
		fprintf(stderr, "gleam-mpi: group %s of %d ranks serves a communicator, path MTU %u\n", s->group->peer.ip, s->group->size,
		        s->group->peer.path_mtu_bytes);
	return s->group;
}
