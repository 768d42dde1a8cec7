/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The group of a communicator. Its making and its end are collective.
 */
#ifndef GLEAM_MPI_GROUP_H
#define GLEAM_MPI_GROUP_H

#include "agree.h"
#include "settings.h"
#include "stream.h"

struct queue;

struct group {
	MPI_Comm private;  /* of the same ranks: for progress, and for the end */
	int rank, size;
	struct place *places;  /* of each rank */
	MPI_Comm local;        /* the ranks of this host; MPI_COMM_NULL: each rank has a host of its own */
	struct gleam_group *gleam; /* this and what follows at a leader only */
	struct gleam_peer peer;
	struct stream stream;
	struct queue *queue; /* NULL: nothing was begun without waiting */
	uint32_t waits;    /* polls that found nothing */
	uint64_t begun;    /* broadcasts of the queue */
	int64_t address;   /* its number in GLEAM_MPI_GROUPS, at the master; -1: none */
	int failed;
	char why[WHY];     /* it failed */
	struct group **owner; /* its place in what is known of the communicator: NULL after the end */
	struct group *next;
};

/* Makes the group of a communicator: *owner is NULL if that is not possible, for the same
 * reason everywhere. */
void group_make(struct group **owner, MPI_Comm comm, char why[WHY]);

/* Waits for all that the queue has before. */
int group_broadcast(struct group *g, void *buffer, uint64_t bytes, int root);

/* For the queue's thread, where each rank has a host of its own. -1 with the reason in g->why. */
int group_carry(struct group *g, void *buffer, uint64_t bytes, int root);
/* 0, or -1 with the reason in why: the switch has ended the group. */
int group_over(struct group *g, char *why, size_t room);

/* Leave, when all ranks have come and have all that was sent. */
void group_end(struct group *g);
void group_end_all(void);

#endif
