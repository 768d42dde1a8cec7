/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast of memory that is returned to the kernel and comes again at the same address: a registration
 * that is still there would be of the pages before. Each root has ROUNDS buffers, of which each is broadcast
 * twice, and one whose contents are dropped by madvise in between.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 1 << 18, ROUNDS = 4 };

static int rank, size, checked;

static void fail(const char *what, long a, long b)
{
	fprintf(stderr, "mpi-buffers: rank %d: %s: %ld, %ld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void broadcast(unsigned char *p, int root, int seed)
{
	for (int i = 0; i < BYTES; i++)
		p[i] = rank == root ? i * 13 + i / 4096 + seed : 0;
	if (MPI_Bcast(p, BYTES, MPI_BYTE, root, MPI_COMM_WORLD))
		fail("MPI_Bcast", root, seed);
	for (int i = 0; i < BYTES; i++)
		if (p[i] != (unsigned char)(i * 13 + i / 4096 + seed))
			fail("a byte", i, seed);
	checked++;
}

static unsigned char *map(unsigned char *at)
{
	unsigned char *p = mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (p == MAP_FAILED || (at && p != at))
		fail("the address is taken", (long)at, 0);
	return p;
}

int main(int argc, char **argv)
{
	unsigned char *p = NULL;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int root = 0; root < size; root++)
		for (int round = 0; round < ROUNDS; round++) {
			p = map(p);
			broadcast(p, root, 2 * round);
			broadcast(p, root, 2 * round + 1);
			munmap(p, BYTES);
		}
	p = map(p);
	for (int i = 0; i < 2; i++) {
		broadcast(p, 1, 100 + i);
		madvise(p, BYTES, MADV_DONTNEED);
	}
	munmap(p, BYTES);
	for (int i = 0; i < 20; i++) { /* by malloc, which takes the same memory again or returns it */
		p = malloc(BYTES + i * 4096);
		broadcast(p, i % size, i);
		free(p);
	}
	if (!rank)
		printf("ok: %d broadcasts\n", checked);
	return MPI_Finalize();
}
