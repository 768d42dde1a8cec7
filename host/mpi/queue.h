/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts of a group that were begun and that nobody waits for yet. A thread of the group carries them
 * in their order. It calls verbs, and never MPI, so that it needs no level of MPI's thread support.
 */
#ifndef GLEAM_MPI_QUEUE_H
#define GLEAM_MPI_QUEUE_H

#include "group.h"

struct job {
	void *at;
	uint64_t bytes;
	int root;
	int failed;
	char why[WHY];
	void (*finished)(struct job *job); /* called by the thread, which does not touch the job afterwards */
	struct job *next;
};

/* Appends a job: 0, or -1 with the reason in job->why if there can be no thread. */
int queue_add(struct group *g, struct job *job);

/* Whether the thread still has the group after ms milliseconds; q may be NULL. It returns earlier where the thread
 * has not, and the caller sees what the thread has done. */
int queue_busy(struct queue *q, int ms);

/* Ends the thread, which has nothing to do any more; q may be NULL. */
void queue_close(struct queue *q);

#endif
