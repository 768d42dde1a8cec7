/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef GLEAM_MPI_EVENTS_H
#define GLEAM_MPI_EVENTS_H

#include <stddef.h>

/* Has returned called before memory goes back to the kernel. 0 if that is not possible. */
int memory_events(void (*returned)(const void *at, size_t bytes));

#endif
