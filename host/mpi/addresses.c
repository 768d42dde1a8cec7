/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "addresses.h"
#include "settings.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is below */
static unsigned char *taken; /* by k of range_pick */
static uint32_t taken_room;

int64_t address_take(void)
{
	const struct settings *set = settings();
	int64_t address = -1;
	int rank, size;
	uint32_t k;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	pthread_mutex_lock(&lock);
	for (k = 0; k < taken_room && taken[k]; k++)
		;
	if (range_pick(&set->groups, rank, size, k) >= 0 && k == taken_room) {
		unsigned char *more = realloc(taken, k + 1);

		if (more) {
			taken = more;
			taken_room++;
		}
	}
	if (k < taken_room) {
		address = range_pick(&set->groups, rank, size, k);
		taken[k] = address >= 0;
	}
	pthread_mutex_unlock(&lock);
	return address;
}

void address_give(int64_t address)
{
	int size;

	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	pthread_mutex_lock(&lock);
	if (address >= 0 && address / size < taken_room)
		taken[address / size] = 0;
	pthread_mutex_unlock(&lock);
}

void addresses_close(void)
{
	pthread_mutex_lock(&lock);
	free(taken);
	taken = NULL;
	taken_room = 0;
	pthread_mutex_unlock(&lock);
}
