/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One decision of all ranks of a communicator.
 */
#ifndef GLEAM_MPI_AGREE_H
#define GLEAM_MPI_AGREE_H

#include <mpi.h>

enum { WHY = 400 };

/* 1 if no rank has a reason against it; 0, and the reason of the lowest rank that has one
 * in why everywhere; negative if MPI failed. why is "" at a rank that has none. */
int agree(MPI_Comm comm, char why[WHY]);

#endif
