/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A generalized request is done when MPI_Grequest_complete is called, which a thread of the library may call
 * with MPI_THREAD_MULTIPLE only. So it is called by the program's thread, from within MPI's functions that
 * wait and test: Open MPI's, all of which call opal_progress, and MPICH's MPIX_Grequest_start.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include "clock.h"
#include "requests.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of finished */
static struct request *finished;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER; /* finished is not empty any more */
static atomic_int any; /* finished is not empty */

void request_done(struct request *r)
{
	pthread_mutex_lock(&lock);
	r->next = finished;
	finished = r;
	atomic_store(&any, 1);
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

/* Returns how many there were. A request may be gone when MPI knows that it is done. */
static int tell_mpi(void)
{
	struct request *r, *next;
	int n = 0;

	if (!atomic_load(&any))
		return 0;
	pthread_mutex_lock(&lock);
	r = finished;
	finished = NULL;
	atomic_store(&any, 0);
	pthread_mutex_unlock(&lock);
	for (; r; r = next, n++) {
		next = r->next;
		PMPI_Grequest_complete(r->handle);
	}
	return n;
}

/* Of a collective none can be cancelled. */
static int cancel(void *state, int complete)
{
	(void)state, (void)complete;
	return MPI_ERR_REQUEST;
}

#ifdef MPICH_VERSION
#define API __attribute__((visibility("default")))

/* MPICH calls this in a loop, and nothing else where it waits for such requests alone. */
static int poll_once(void *state, MPI_Status *status)
{
	int flag;

	(void)state, (void)status;
	if (!tell_mpi()) {
		PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		sched_yield();
	}
	return MPI_SUCCESS;
}

static void sleep_until_done(void)
{
	struct timespec until = time_after(NAP);

	pthread_mutex_lock(&lock);
	while (!finished && !pthread_cond_clockwait(&more, &lock, CLOCK_MONOTONIC, &until))
		;
	pthread_mutex_unlock(&lock);
}

/* MPICH calls this in a loop until the request is done. Under MPI_THREAD_MULTIPLE it holds its lock meanwhile, so that
 * other threads would wait for a sleep. */
static int wait_once(int count, void **states, double timeout, MPI_Status *status)
{
	int level;

	(void)count, (void)states, (void)timeout;
	PMPI_Query_thread(&level);
	if (level != MPI_THREAD_MULTIPLE)
		sleep_until_done();
	return poll_once(NULL, status);
}

int requests_possible(void)
{
	return 1;
}

int request_make(struct request *r, MPI_Grequest_query_function *query, MPI_Grequest_free_function *release)
{
	return PMPIX_Grequest_start(query, release, cancel, poll_once, wait_once, r, &r->handle);
}

/* It alone does not call poll_once. */
API int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	tell_mpi();
	return PMPI_Request_get_status(request, flag, status);
}
#else
typedef int change_callbacks(int (*callback)(void));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static change_callbacks *add;

/* Of libopen-pal, which libmpi is linked to, in all versions of Open MPI. */
static void look(void)
{
	add = (change_callbacks *)dlsym(RTLD_DEFAULT, "opal_progress_register");
}

int requests_possible(void)
{
	pthread_once(&once, look);
	return add != NULL;
}

static pthread_once_t added = PTHREAD_ONCE_INIT;

static void add_once(void)
{
	add(tell_mpi);
}

int request_make(struct request *r, MPI_Grequest_query_function *query, MPI_Grequest_free_function *release)
{
	if (!requests_possible())
		return MPI_ERR_OTHER;
	pthread_once(&added, add_once);
	return PMPI_Grequest_start(query, release, cancel, r, &r->handle);
}
#endif
