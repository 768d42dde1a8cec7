/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "queue.h"

enum { THREAD_SPIN = 20 /* us */, THREAD_NAP = 100 /* ms: then it looks for the group's end */ };

struct queue {
	struct group *group;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, to over */
	pthread_cond_t more, done; /* a job has been added; none is pending */
	struct job *first, **last;
	int over;
	atomic_int pending; /* jobs that are not finished */
};

static int idle(void *arg, int slept, char *why, size_t room)
{
	struct queue *q = arg;

	if (slept)
		return group_over(q->group, why, room);
	sched_yield();
	return 0;
}

static void carry(struct queue *q, struct job *job)
{
	struct group *g = q->group;
	struct wait_policy callers = g->stream.wait_policy;

	g->stream.wait_policy = (struct wait_policy){.spin = THREAD_SPIN, .nap = THREAD_NAP, .idle = idle, .arg = q};
	job->failed = group_carry(g, job->at, job->bytes, job->root) < 0;
	g->stream.wait_policy = callers;
	if (job->failed)
		memcpy(job->why, g->why, WHY);
}

static void *run(void *arg)
{
	struct queue *q = arg;
	struct job *job;

	for (;;) {
		pthread_mutex_lock(&q->lock);
		while (!q->first && !q->over)
			pthread_cond_wait(&q->more, &q->lock);
		job = q->first;
		if (job && !(q->first = job->next))
			q->last = &q->first;
		pthread_mutex_unlock(&q->lock);
		if (!job)
			return NULL;
		carry(q, job);
		job->finished(job);
		if (atomic_fetch_sub_explicit(&q->pending, 1, memory_order_release) == 1) {
			pthread_mutex_lock(&q->lock);
			pthread_cond_broadcast(&q->done);
			pthread_mutex_unlock(&q->lock);
		}
	}
}

/* The program's signal handlers are for its own threads. */
static int start(struct queue *q)
{
	sigset_t all, was;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	rc = pthread_create(&q->thread, NULL, run, q);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return rc;
}

static struct queue *open_queue(struct group *g, char *why)
{
	struct queue *q = calloc(1, sizeof *q);
	int rc = ENOMEM;

	if (q) {
		q->group = g;
		q->last = &q->first;
		pthread_mutex_init(&q->lock, NULL);
		pthread_cond_init(&q->more, NULL);
		pthread_cond_init(&q->done, NULL);
		rc = start(q);
	}
	if (!rc)
		return q;
	snprintf(why, WHY, "no thread for MPI_Ibcast: %s", strerror(rc));
	free(q);
	return NULL;
}

int queue_add(struct group *g, struct job *job)
{
	struct queue *q = g->queue;

	if (!q)
		q = g->queue = open_queue(g, job->why);
	if (!q)
		return -1;
	job->next = NULL;
	pthread_mutex_lock(&q->lock);
	atomic_fetch_add(&q->pending, 1);
	*q->last = job;
	q->last = &job->next;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

static int is_busy(struct queue *q)
{
	return atomic_load_explicit(&q->pending, memory_order_acquire);
}

int queue_busy(struct queue *q, int ms)
{
	struct timespec until = time_after(ms);

	if (!q || !is_busy(q))
		return 0;
	pthread_mutex_lock(&q->lock);
	while (is_busy(q) && !pthread_cond_clockwait(&q->done, &q->lock, CLOCK_MONOTONIC, &until))
		;
	pthread_mutex_unlock(&q->lock);
	return is_busy(q);
}

void queue_close(struct queue *q)
{
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->over = 1;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->done);
	free(q);
}
