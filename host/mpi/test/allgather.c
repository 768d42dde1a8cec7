/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Allgather and MPI_Allgatherv: sizes, in place, types with holes, blocks of different lengths,
 * with gaps, in another order, and empty ones, and a communicator of some ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 3, EMPTY = -1 };

static int rank, size, checked;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "mpi-allgather: rank %d: %s: %ld, %ld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int value(int from, int i)
{
	return from * 1000003 + i * 7 + 1;
}

static void check(const int *all, int from, int n, const char *what)
{
	for (int i = 0; i < n; i++)
		if (all[i] != value(from, i))
			fail(what, from, i);
}

/* n numbers of each rank. */
static void equal(MPI_Comm comm, int n, int in_place)
{
	int me, ranks;
	int *mine, *all;

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &ranks);
	mine = malloc((n + 1) * sizeof *mine);
	all = malloc((n * ranks + 1) * sizeof *all);
	memset(all, 0xff, (n * ranks + 1) * sizeof *all);
	for (int i = 0; i < n; i++)
		mine[i] = value(me, i);
	if (in_place)
		memcpy(all + (size_t)me * n, mine, n * sizeof *mine);
	if (in_place ? MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT, comm) : MPI_Allgather(mine, n, MPI_INT, all, n, MPI_INT, comm))
		fail("MPI_Allgather", n, in_place);
	for (int r = 0; r < ranks; r++)
		check(all + (size_t)r * n, r, n, "MPI_Allgather");
	if (all[n * ranks] != -1)
		fail("MPI_Allgather writes behind its buffer", n, in_place);
	free(mine), free(all);
	checked++;
}

/* Every second number of the receive buffer, n of each rank. */
static void with_holes(int n)
{
	MPI_Datatype holes, resized;
	int *mine = malloc(n * sizeof *mine), *all = malloc(2 * n * size * sizeof *all);

	MPI_Type_contiguous(1, MPI_INT, &holes);
	MPI_Type_create_resized(holes, 0, 2 * sizeof(int), &resized);
	MPI_Type_commit(&resized);
	memset(all, 0xff, 2 * n * size * sizeof *all);
	for (int i = 0; i < n; i++)
		mine[i] = value(rank, i);
	if (MPI_Allgather(mine, n, MPI_INT, all, n, resized, MPI_COMM_WORLD))
		fail("MPI_Allgather of a type with holes", n, 0);
	for (int i = 0; i < 2 * n * size; i++)
		if (all[i] != (i % 2 ? -1 : value(i / 2 / n, i / 2 % n)))
			fail("a number of a type with holes", i, all[i]);
	MPI_Type_free(&resized);
	MPI_Type_free(&holes);
	free(mine), free(all);
	checked++;
}

/* Rank r has r * n numbers, and rank 0 none; they are in the reverse order, with gaps. */
static void different(int n, int in_place)
{
	int counts[size], places[size], end = 0, rc;
	int *mine = malloc((rank * n + 1) * sizeof *mine), *all;

	for (int r = size - 1; r >= 0; r--) {
		counts[r] = r * n;
		places[r] = end;
		end += counts[r] + GAP;
	}
	all = malloc(end * sizeof *all);
	memset(all, 0xff, end * sizeof *all);
	for (int i = 0; i < rank * n; i++)
		mine[i] = value(rank, i);
	if (in_place)
		memcpy(all + places[rank], mine, rank * n * sizeof *mine);
	rc = in_place ? MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD)
	              : MPI_Allgatherv(mine, rank * n, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
	if (rc)
		fail("MPI_Allgatherv", n, rc);
	for (int r = 0; r < size; r++) {
		check(all + places[r], r, counts[r], "MPI_Allgatherv");
		for (int i = 0; i < GAP; i++)
			if (all[places[r] + counts[r] + i] != EMPTY)
				fail("MPI_Allgatherv writes between the blocks", r, i);
	}
	free(mine), free(all);
	checked++;
}

int main(int argc, char **argv)
{
	const int sizes[] = {0, 1, 1000, 4096, 100003};
	MPI_Comm some;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int in_place = 0; in_place < 2; in_place++) {
			equal(MPI_COMM_WORLD, sizes[s], in_place);
			different(sizes[s], in_place);
		}
	with_holes(5000);
	MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &some);
	equal(some, 5000, 0);
	MPI_Comm_free(&some);
	if (!rank)
		printf("ok: %d gathers\n", checked);
	return MPI_Finalize();
}
