/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the replacements of HPL's functions have in common: which ones are in use, and what
 * they take.
 */
#ifndef HPL_RUN_H
#define HPL_RUN_H

#include <hpl.h>

/* A kind of communication. */
struct phase {
	double *times; /* seconds, of each one at this rank */
	int n, room;
	double begun;
	double bytes;     /* of the panels, or of U */
	double broadcast; /* bytes given to MPI_Bcast, counted at rank 0 of each communicator */
};

extern struct phase panels, swaps;

int run_own(void); /* HPL's own functions are in use: GLEAM_HPL_OWN=1 */

/* Waits for all ranks of comm if GLEAM_HPL_BARRIER=1, so that the time of those that come
 * late is not counted. */
void run_align(MPI_Comm comm);

void phase_begin(struct phase *p);
void phase_end(struct phase *p, double bytes);

/* Calls MPI_Bcast for count elements of a type. bytes is their total size. */
void run_broadcast(struct phase *p, void *buffer, int count, MPI_Datatype type, double bytes, int root, MPI_Comm comm);

#endif
