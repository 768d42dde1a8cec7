/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The RDMA device of this rank.
 */
#ifndef GLEAM_MPI_DEVICE_H
#define GLEAM_MPI_DEVICE_H

#include <stddef.h>

#include "gleam_verbs.h"

struct device {
	struct gleam_verbs verbs; /* port 1 */
	struct ibv_pd *pd;
	uint32_t mtu;     /* bytes, of the port's active path MTU */
	uint32_t max_msg; /* bytes of a message */
};

/* Opens the device that name and gid_index say, or the first one that has a GID of the
 * family if they are NULL and -1: 0, or -1 with the reason in why. */
int device_open(struct device *d, const char *name, int gid_index, int ipv4, char *why, size_t room);
void device_close(struct device *d);

#endif
