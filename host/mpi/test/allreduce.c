/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Allreduce: sizes, in place, pairs with MPI_MAXLOC, an operation whose order matters, a type of the
 * program's own, and a communicator of some ranks.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, checked;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "mpi-allreduce: rank %d: %s: %ld, %ld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void sums(MPI_Comm comm, int n, int in_place)
{
	int me, ranks, *mine = malloc((n + 1) * sizeof *mine), *all = malloc((n + 1) * sizeof *all);

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &ranks);
	all[n] = -1;
	for (int i = 0; i < n; i++)
		(in_place ? all : mine)[i] = (me + 1) * (i % 1000 + 1);
	if (MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, all, n, MPI_INT, MPI_SUM, comm))
		fail("MPI_Allreduce", n, in_place);
	for (int i = 0; i < n; i++)
		if (all[i] != ranks * (ranks + 1) / 2 * (i % 1000 + 1))
			fail("a sum", i, all[i]);
	if (all[n] != -1)
		fail("MPI_Allreduce writes behind its buffer", n, in_place);
	free(mine), free(all);
	checked++;
}

static void places(int n)
{
	struct pair {
		double value;
		int at;
	} *mine = malloc(n * sizeof *mine), *all = malloc(n * sizeof *all);

	for (int i = 0; i < n; i++)
		mine[i] = (struct pair){i % size == rank ? 5 : -rank, rank};
	MPI_Allreduce(mine, all, n, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		if (all[i].value != 5 || all[i].at != i % size)
			fail("a pair of MPI_MAXLOC", i, all[i].at);
	free(mine), free(all);
	checked++;
}

/* Two numbers are a function a x + b, which the operation composes: the order of ranks matters. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	unsigned *f = in, *g = inout;

	(void)type;
	for (int i = 0; i < *n; i++, f += 2, g += 2) {
		g[1] += g[0] * f[1];
		g[0] *= f[0];
	}
}

static void functions(int n)
{
	unsigned *mine = malloc(2 * n * sizeof *mine), *all = malloc(2 * n * sizeof *all);
	MPI_Datatype function;
	MPI_Op op;

	MPI_Type_contiguous(2, MPI_UNSIGNED, &function);
	MPI_Type_commit(&function);
	MPI_Op_create(compose, 0, &op);
	for (int i = 0; i < n; i++) {
		mine[2 * i] = rank + 2;
		mine[2 * i + 1] = i + rank;
	}
	MPI_Allreduce(mine, all, n, function, op, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		unsigned a = 1, b = 0;

		for (int r = 0; r < size; r++) {
			b = b * (r + 2) + i + r;
			a *= r + 2;
		}
		if (all[2 * i] != a || all[2 * i + 1] != b)
			fail("a function composed", i, all[2 * i + 1]);
	}
	MPI_Op_free(&op);
	MPI_Type_free(&function);
	free(mine), free(all);
	checked++;
}

int main(int argc, char **argv)
{
	const int sizes[] = {0, 1, 1000, 4096, 50000, 100003};
	MPI_Comm some;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int in_place = 0; in_place < 2; in_place++)
			sums(MPI_COMM_WORLD, sizes[s], in_place);
	places(5000);
	functions(5000);
	MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &some);
	sums(some, 5000, 0);
	MPI_Comm_free(&some);
	if (!rank)
		printf("ok: %d reductions\n", checked);
	return MPI_Finalize();
}
