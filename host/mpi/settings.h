/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The environment variables of docs/MPI.md, as this rank has them.
 */
#ifndef GLEAM_MPI_SETTINGS_H
#define GLEAM_MPI_SETTINGS_H

#include "plan.h"

enum collective { BCAST, IBCAST, ALLGATHER, ALLREDUCE, COLLECTIVES };

#define NEVER (1LL << 40) /* bytes that no collective has */

/* The bytes of which a collective goes by a group; of each rank, for ALLGATHER. */
struct band {
	int64_t least, most;
};

struct settings {
	int off;              /* groups are not wanted, or not possible: why */
	char why[300];
	struct range groups;
	unsigned char key[256];
	uint32_t key_len;     /* 0: no key */
	uint16_t key_id;
	const char *device;   /* NULL: the first */
	int gid_index;        /* -1: the first */
	uint32_t mtu;         /* bytes; 0: the device's */
	uint32_t segment;     /* bytes of a message at most */
	uint32_t spin;        /* us that a rank polls before it sleeps */
	int timeout;          /* of queue pairs, 4.096 us * 2^n */
	struct band bands[COLLECTIVES];
	uint64_t cache;       /* bytes that stay registered without a broadcast */
	int verbose;
};

/* Read once. */
const struct settings *settings(void);

#endif
