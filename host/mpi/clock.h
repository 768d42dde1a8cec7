/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Times of CLOCK_MONOTONIC.
 */
#ifndef GLEAM_MPI_CLOCK_H
#define GLEAM_MPI_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ms, the longest sleep of a thread that calls MPI: messages of this rank have no progress meanwhile. */
enum { NAP = 1 };

static inline int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* The time in ms milliseconds, for pthread_cond_clockwait. */
static inline struct timespec time_after(int ms)
{
	int64_t at = now_us() + ms * 1000LL;

	return (struct timespec){.tv_sec = at / 1000000, .tv_nsec = at % 1000000 * 1000};
}

#endif
