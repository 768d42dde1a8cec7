/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is decided without MPI and verbs: which messages carry a broadcast, and
 * which address a group gets.
 */
#ifndef GLEAM_MPI_PLAN_H
#define GLEAM_MPI_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum {
	SLOT = 16384,  /* bytes of a receive that is posted ahead */
	HEADER = 16,   /* bytes before the payload in the first message of a broadcast */
	EAGER = SLOT - HEADER, /* the longest broadcast that is one message */
	AHEAD = 8,     /* receives posted ahead */
	DEPTH = 16,    /* receives posted for segments */
	IN_FLIGHT = 8, /* segments sent and not acknowledged: fewer, so that a receive is there for each */
};

/* The first message of a broadcast begins with this. */
struct header {
	uint32_t sequence; /* of the communicator's broadcasts through the group */
	uint32_t root;     /* its rank there */
	uint64_t bytes;
};

void header_write(unsigned char *to, const struct header *h);
void header_read(struct header *h, const unsigned char *from);

/* A long broadcast as messages of at most max bytes each, which is not 0. */
uint64_t segments(uint64_t bytes, uint64_t max);
uint64_t segment_length(uint64_t bytes, uint64_t max, uint64_t i);

/* Addresses from first to last, which differ in the last four bytes at most. */
struct range {
	unsigned char first[16]; /* a raw GID; ::ffff:a.b.c.d for IPv4 */
	uint32_t count;
};

/* Reads "FIRST-LAST" or "ADDRESS": 0, or -1 with the reason in why. */
int range_parse(struct range *r, const char *text, char *why, size_t room);
int range_is_ipv4(const struct range *r);
/* Writes address number i as text. */
void range_address(const struct range *r, uint32_t i, char *text, size_t room);

/* The number of the address of a master's k-th group: masters are told apart by their
 * ranks in MPI_COMM_WORLD, of which there are size. -1 if the range has none. */
int64_t range_pick(const struct range *r, uint32_t rank, uint32_t size, uint32_t k);

/* Where a rank is: ranks with one address are on one host. */
struct place {
	int leader; /* the host's lowest rank, which is the group's member */
	int local;  /* its number among the ranks of the host, 0 for the leader */
};

/* Places n ranks by their raw GIDs, which are stride bytes apart: the number of hosts. */
int place_ranks(struct place *places, const void *gids, size_t stride, int n);

#endif
