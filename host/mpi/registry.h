/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The cache of registrations: a buffer that was registered for a broadcast stays registered for the next
 * one from or to the same memory, until the memory is returned to the kernel or room is needed.
 */
#ifndef GLEAM_MPI_REGISTRY_H
#define GLEAM_MPI_REGISTRY_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

enum { REGISTRATIONS = 64 };

struct registry_counts {
	uint64_t made, found; /* registrations, and those that were there already */
	uint64_t returned;    /* of which the memory was returned */
};

/* The bytes that stay registered while nobody uses them. Without events of memory, or with bytes 0, nothing
 * stays. Returns 1 if registrations stay. */
int registry_open(uint64_t bytes);

/* Registered memory that has these bytes, with this access at least: 0 or IBV_ACCESS_LOCAL_WRITE. NULL: errno. */
struct ibv_mr *registry_take(struct ibv_pd *pd, void *at, size_t bytes, int access);
/* Ends a use of what registry_take returned. */
void registry_give(struct ibv_mr *mr);

/* Likewise, and nobody takes the registration any more: it ends with its last use. */
void registry_drop(struct ibv_mr *mr);

/* The kernel has the memory back, or it has other contents: called while other code holds locks, so that it
 * calls nothing. */
void registry_returned(const void *at, size_t bytes);

void registry_count(struct registry_counts *counts);

/* Ends all registrations that nobody uses. */
void registry_close(void);

#endif
