/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

#ifdef MPICH_VERSION
#define BY_MPI(openmpi, mpich) mpich
#else
#define BY_MPI(openmpi, mpich) openmpi
#endif

/* Where a group was measured to be faster than the MPI's own collective, docs/PERFORMANCE.md, and the
 * variables that say otherwise. */
static const struct {
	const char *least, *most;
	struct band otherwise;
} table[COLLECTIVES] = {
	[BCAST] = {"GLEAM_MPI_MIN", "GLEAM_MPI_MAX", {BY_MPI(4096, 16384), NEVER}},
	[IBCAST] = {"GLEAM_MPI_IBCAST_MIN", "GLEAM_MPI_IBCAST_MAX", {BY_MPI(4096, 65536), NEVER}},
	[ALLGATHER] = {"GLEAM_MPI_ALLGATHER_MIN", "GLEAM_MPI_ALLGATHER_MAX", {BY_MPI(262144, NEVER), NEVER}},
	[ALLREDUCE] = {"GLEAM_MPI_ALLREDUCE_MIN", "GLEAM_MPI_ALLREDUCE_MAX", {NEVER, NEVER}},
};

static struct settings it;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static long long number(const char *name, long long least, long long most, long long otherwise)
{
	const char *text = getenv(name);
	char *end;
	long long v;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (!errno && !*end && v >= least && v <= most)
		return v;
	it.off = 1;
	snprintf(it.why, sizeof it.why, "%s=%s is not a number from %lld to %lld", name, text, least, most);
	return otherwise;
}

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Hexadecimal digits, an even number of them; white space at the end. */
static void read_key(const char *file)
{
	FILE *f = fopen(file, "re");
	int high, low = 0;

	while (f && it.key_len < sizeof it.key && (high = digit(fgetc(f))) >= 0 && (low = digit(fgetc(f))) >= 0)
		it.key[it.key_len++] = high << 4 | low;
	if (!f || low < 0 || it.key_len < 32) {
		it.off = 1;
		if (!f)
			snprintf(it.why, sizeof it.why, "GLEAM_MPI_KEY_FILE=%s: %s", file, strerror(errno));
		else
			snprintf(it.why, sizeof it.why, "GLEAM_MPI_KEY_FILE=%s does not hold 64 to 512 hexadecimal digits", file);
	}
	if (f)
		fclose(f);
}

static void read_all(void)
{
	const char *groups = getenv("GLEAM_MPI_GROUPS"), *key = getenv("GLEAM_MPI_KEY_FILE");

	it.verbose = number("GLEAM_MPI_VERBOSE", 0, 1, 0);
	it.key_id = number("GLEAM_MPI_KEY_ID", 1, 65535, 1);
	it.gid_index = number("GLEAM_MPI_GID_INDEX", 0, 255, -1);
	it.mtu = number("GLEAM_MPI_MTU", 256, 4096, 0);
	it.segment = number("GLEAM_MPI_SEGMENT", 4096, 1 << 30, 1 << 30);
	it.cache = number("GLEAM_MPI_CACHE", 0, NEVER, 256 << 20);
	it.spin = number("GLEAM_MPI_SPIN", 0, 1000000, 1000);
	it.timeout = number("GLEAM_MPI_TIMEOUT", 1, 31, 14);
	for (int i = 0; i < COLLECTIVES; i++) {
		it.bands[i].least = number(table[i].least, 1, NEVER, table[i].otherwise.least);
		it.bands[i].most = number(table[i].most, 1, NEVER, table[i].otherwise.most);
	}
	it.device = getenv("GLEAM_MPI_DEVICE");
	if (it.mtu & (it.mtu - 1)) {
		it.off = 1;
		snprintf(it.why, sizeof it.why, "GLEAM_MPI_MTU=%u is none of 256, 512, 1024, 2048, 4096", it.mtu);
	}
	if (it.off)
		return;
	if (!groups || !*groups) {
		it.off = 1;
		snprintf(it.why, sizeof it.why, "GLEAM_MPI_GROUPS is not set");
	} else if (range_parse(&it.groups, groups, it.why, sizeof it.why)) {
		it.off = 1;
	} else if (key && *key) {
		read_key(key);
	}
}

const struct settings *settings(void)
{
	pthread_once(&once, read_all);
	return &it;
}
