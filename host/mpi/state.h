/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is known of a communicator, kept as an attribute of it.
 */
#ifndef GLEAM_MPI_STATE_H
#define GLEAM_MPI_STATE_H

#include "group.h"

struct state {
	int asked;         /* the ranks have agreed on what follows */
	int plain;         /* PMPI serves all its broadcasts */
	int rank;
	int64_t least[COLLECTIVES], most[COLLECTIVES]; /* bytes; shorter and longer ones are PMPI's */
	struct group *group; /* NULL: not yet */
	int64_t begun;     /* bytes of the longest MPI_Ibcast */
};

/* Of a communicator of two ranks or more; collective when it is called first. NULL: MPI
 * failed. */
struct state *state_of(MPI_Comm comm);

/* Without any communication: NULL if nothing is known and make is 0. */
struct state *state_found(MPI_Comm comm, int make);

/* The group, made if that is not done yet; NULL: PMPI serves the communicator. Collective. */
struct group *state_group(struct state *s, MPI_Comm comm);

#endif
