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

#include "queue.h"

enum { SPINS = 16 /* polls before the thread sleeps */, NAP = 100 /* ms: then it looks for the group's end */ };

struct queue {
	struct group *group;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows, to over */
	pthread_cond_t more;
	struct job *first, **last;
	int over;
	atomic_int pending; /* jobs that are not finished */
	int polls, armed;   /* the thread's */
};

/* Between two polls: an event of a completion queue wakes the thread, which has armed both queues and
 * polled once more before it sleeps. */
static int doze(void *arg, char *why, size_t room)
{
	struct queue *q = arg;
	struct stream *s = &q->group->stream;

	if (++q->polls < SPINS) {
		sched_yield();
		return 0;
	}
	if (!q->armed) {
		q->armed = 1;
		return stream_arm(s, why, room);
	}
	q->armed = q->polls = 0;
	stream_sleep(s, NAP);
	return group_over(q->group, why, room);
}

static void carry(struct queue *q, struct job *job)
{
	struct group *g = q->group;
	int (*idle)(void *, char *, size_t) = g->stream.idle;

	g->stream.idle = doze;
	g->stream.arg = q;
	job->failed = group_carry(g, job->at, job->bytes, job->root) < 0;
	g->stream.idle = idle;
	g->stream.arg = g;
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
		atomic_fetch_sub_explicit(&q->pending, 1, memory_order_release);
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

int queue_busy(const struct queue *q)
{
	return q && atomic_load_explicit(&q->pending, memory_order_acquire);
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
	free(q);
}
