/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * hpl-openmpi FOLDER runs HPL with FOLDER/hpccinf.txt and appends to FOLDER/hpccoutf.txt. Of
 * each solution, rank 0 prints what its communication took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hpl_run.h"

int HPL_main(int argc, char **argv, HPL_RuntimeData *best, int *failure); /* no header has it */

struct phase panels, swaps;

static int is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v == '1';
}

int run_own(void)
{
	static int own = -1;

	if (own < 0)
		own = is_set("GLEAM_HPL_OWN");
	return own;
}

void run_align(MPI_Comm comm)
{
	static int align = -1;

	if (align < 0)
		align = is_set("GLEAM_HPL_BARRIER");
	if (align)
		MPI_Barrier(comm);
}

void phase_begin(struct phase *p)
{
	p->begun = MPI_Wtime();
}

void phase_end(struct phase *p, double bytes)
{
	double now = MPI_Wtime();

	if (p->n == p->room) {
		p->room = 2 * p->room + 64;
		p->times = realloc(p->times, p->room * sizeof *p->times);
		if (!p->times)
			HPL_pabort(__LINE__, "phase_end", "no memory");
	}
	p->times[p->n++] = now - p->begun;
	p->bytes += bytes;
}

void run_broadcast(struct phase *p, void *buffer, int count, MPI_Datatype type, double bytes, int root, MPI_Comm comm)
{
	int rank;

	if (bytes <= 0)
		return;
	if (MPI_Bcast(buffer, count, type, root, comm))
		HPL_pabort(__LINE__, "run_broadcast", "MPI_Bcast failed");
	MPI_Comm_rank(comm, &rank);
	if (!rank)
		p->broadcast += bytes;
}

/* The sum of the times that each one took until the last rank of comm had it, at the slowest of
 * all communicators. All ranks of comm take part in each. */
static double slowest(struct phase *p, MPI_Comm comm, MPI_Comm all)
{
	double sum = 0, max;

	MPI_Allreduce(MPI_IN_PLACE, p->times, p->n, MPI_DOUBLE, MPI_MAX, comm);
	for (int i = 0; i < p->n; i++)
		sum += p->times[i];
	MPI_Allreduce(&sum, &max, 1, MPI_DOUBLE, MPI_MAX, all);
	return max;
}

static double total(double bytes, MPI_Comm all)
{
	double sum;

	MPI_Allreduce(&bytes, &sum, 1, MPI_DOUBLE, MPI_SUM, all);
	return sum;
}

void __real_HPL_pdgesv(HPL_T_grid *grid, HPL_T_palg *algo, HPL_T_pmat *a);

void __wrap_HPL_pdgesv(HPL_T_grid *grid, HPL_T_palg *algo, HPL_T_pmat *a)
{
	double begin, took, panel, swap, broadcast;

	panels.n = swaps.n = 0;
	panels.bytes = swaps.bytes = panels.broadcast = swaps.broadcast = 0;
	begin = MPI_Wtime();
	__real_HPL_pdgesv(grid, algo, a);
	took = MPI_Wtime() - begin;
	panel = slowest(&panels, grid->row_comm, grid->all_comm);
	swap = slowest(&swaps, grid->col_comm, grid->all_comm);
	broadcast = total(panels.broadcast + swaps.broadcast, grid->all_comm);
	if (!grid->iam)
		printf("hpl: %dx%d N %d NB %d depth %d: %.3f s; %d panels of %.0f bytes %.3f s; %d row swaps of %.0f bytes %.3f s; MPI_Bcast %.0f bytes\n",
		       grid->nprow, grid->npcol, a->n, a->nb, algo->depth, took, panels.n, panels.bytes, panel, swaps.n, swaps.bytes, swap, broadcast);
}

/* HPL calls it where hpccinf.txt is missing or wrong. That of hpcc sets values of its own. */
int HPCC_Defaults(void)
{
	fprintf(stderr, "hpl: hpccinf.txt is missing or wrong\n");
	return MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	HPL_RuntimeData best = {0};
	int failure = 0;

	if (argc != 2 || chdir(argv[1])) {
		fprintf(stderr, "usage: hpl-openmpi FOLDER, which has hpccinf.txt\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	HPL_main(argc, argv, &best, &failure);
	MPI_Finalize();
	return failure;
}
