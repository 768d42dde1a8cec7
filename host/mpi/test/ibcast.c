/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Ibcast as any program calls it: every byte is compared.
 *
 *     mpi-ibcast all         orders, ways to wait, mixtures, datatypes, communicators
 *     mpi-ibcast errors      ranks that disagree, under MPI_ERRORS_RETURN
 *     mpi-ibcast threads     MPI_THREAD_MULTIPLE: a communicator for each thread
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ways.h"

/* Each rank waits in another way, of which the orders differ. */
static void orders(MPI_Comm comm, int first, int n)
{
	struct begun b[MANY];
	MPI_Request requests[MANY];

	for (int way = first; way < first + n; way++) {
		begin_many(b, requests, comm);
		ways[(way + 3 * rank) % WAYS](b, requests);
	}
}

/* Messages and broadcasts in one array; a broadcast that is waited for in the midst. */
static void mixed(MPI_Comm comm)
{
	enum { N = 50000 };
	struct begun b[3];
	MPI_Request r[5];
	MPI_Status s[5];
	int *out = malloc(N * sizeof(int)), *in = malloc(N * sizeof(int)), at, done[5], n;

	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < N; i++)
			out[i] = rank + i + round;
		begin(&b[0], comm, round % size, LONGEST, round);
		MPI_Irecv(in, N, MPI_INT, (rank + size - 1) % size, 3, comm, &r[1]);
		begin(&b[1], comm, (round + 1) % size, 5000, round + 9);
		if (rank % 2) { /* a blocking one behind two that nobody waits for yet */
			MPI_Isend(out, N, MPI_INT, (rank + 1) % size, 3, comm, &r[3]);
			MPI_Bcast(&at, 1, MPI_INT, 0, comm);
		} else {
			MPI_Bcast(&at, 1, MPI_INT, 0, comm);
			MPI_Isend(out, N, MPI_INT, (rank + 1) % size, 3, comm, &r[3]);
		}
		begin(&b[2], comm, (round + 2) % size, 65536, round + 5);
		r[0] = b[0].request;
		r[2] = b[1].request;
		r[4] = b[2].request;
		if (round % 4 == 0) {
			MPI_Waitall(5, r, s);
		} else if (round % 4 == 1) {
			for (int i = 0; i < 5; i++)
				MPI_Waitany(5, r, &at, s);
		} else if (round % 4 == 2) {
			for (int sum = 0; sum < 5; sum += n)
				MPI_Waitsome(5, r, &n, done, s);
		} else {
			for (done[0] = 0; !done[0];)
				MPI_Testall(5, r, &done[0], MPI_STATUSES_IGNORE);
		}
		for (int i = 0; i < N; i++)
			if (in[i] != (rank + size - 1) % size + i + round)
				fail("an element of a message", i, in[i]);
		for (int i = 0; i < 3; i++)
			taken(b, (MPI_Request[]){r[0], r[2], r[4]}, i);
	}
	free(out), free(in);
}

static void bcast(MPI_Comm comm, int root, size_t n, int seed)
{
	int me;
	unsigned char *p = malloc(n);

	MPI_Comm_rank(comm, &me);
	for (size_t i = 0; i < n; i++)
		p[i] = me == root ? pattern(i, seed) : 0;
	MPI_Bcast(p, n, MPI_BYTE, root, comm);
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(i, seed))
			fail("byte, of MPI_Bcast", i, n);
	free(p);
	checked++;
}

/* Long MPI_Bcast and other collectives while broadcasts are under way; ranks come late in turn. */
static void beside(MPI_Comm comm)
{
	struct begun b[4];
	int sum;

	for (int late = 0; late < size; late++) {
		if (rank == late)
			usleep(30000);
		begin(&b[0], comm, late, LONGEST, 1);
		begin(&b[1], comm, 0, 5000, 2);
		bcast(comm, (late + 1) % size, 100000, 3);
		begin(&b[2], comm, 1, 30000, 4);
		MPI_Allreduce(&late, &sum, 1, MPI_INT, MPI_SUM, comm);
		bcast(comm, 0, 8000, 5);
		begin(&b[3], comm, late, 16369, 6);
		MPI_Barrier(comm);
		if (sum != late * size)
			fail("MPI_Allreduce", sum, late);
		for (int i = 3; i >= 0; i--)
			wait_one(&b[i]);
	}
}

/* The root waits for a message that another rank sends when it has the broadcast, and a rank waits for
 * the broadcast before a message that it has sent is taken. */
static void depend(MPI_Comm comm)
{
	enum { N = 200000 };
	struct begun b;
	int *p = calloc(N, sizeof(int)), token = 0;
	MPI_Request r = MPI_REQUEST_NULL;

	for (int root = 0; root < size; root++) {
		int next = (root + 1) % size, before = (root + size - 1) % size;

		if (rank == next)
			MPI_Isend(p, N, MPI_INT, before, 8, comm, &r);
		if (rank == before)
			MPI_Recv(p, N, MPI_INT, next, 8, comm, MPI_STATUS_IGNORE);
		begin(&b, comm, root, 65536, root);
		if (rank == root)
			MPI_Recv(&token, 1, MPI_INT, next, 7, comm, MPI_STATUS_IGNORE);
		wait_one(&b);
		if (rank == next)
			MPI_Send(&token, 1, MPI_INT, root, 7, comm);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	free(p);
}

/* Types that end before the broadcast does: with holes, and with addresses from MPI_BOTTOM. */
static void datatypes(MPI_Comm comm)
{
	enum { N = 6000 };
	static int from[N], holes[3 * N];
	MPI_Datatype vector, address;
	MPI_Request r[2];
	MPI_Aint at;
	int n = N, me;

	MPI_Comm_rank(comm, &me);
	for (int root = 0; root < size; root++) {
		for (int i = 0; i < 3 * N; i++)
			holes[i] = me == root ? i + root : -1;
		for (int i = 0; i < N; i++)
			from[i] = me == root ? 5 * i + root : -1;
		MPI_Type_vector(N, 1, 3, MPI_INT, &vector);
		MPI_Get_address(from, &at);
		MPI_Type_create_hindexed(1, &n, &at, MPI_INT, &address);
		MPI_Type_commit(&vector);
		MPI_Type_commit(&address);
		MPI_Ibcast(holes, 1, vector, root, comm, &r[0]);
		MPI_Ibcast(MPI_BOTTOM, 1, address, root, comm, &r[1]);
		MPI_Type_free(&vector);
		MPI_Type_free(&address);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < 3 * N; i++)
			if (holes[i] != (me == root || i % 3 == 0 ? i + root : -1))
				fail("element of a vector, or beside it", i, holes[i]);
		for (int i = 0; i < N; i++)
			if (from[i] != 5 * i + root)
				fail("element, from MPI_BOTTOM", i, from[i]);
		checked += 2;
	}
}

/* Two communicators in another order at each second rank; both are freed before their broadcasts are waited for. */
static void communicators(void)
{
	struct begun b[2][3];
	MPI_Comm comm[2];

	for (int c = 0; c < 2; c++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[c]);
		bcast(comm[c], c, 20000, c);
	}
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 3; k++)
			begin(&b[(i + rank) % 2][k], comm[(i + rank) % 2], k % size, length(k), 10 * ((i + rank) % 2) + k);
	MPI_Comm_free(&comm[0]);
	MPI_Comm_free(&comm[1]);
	for (int k = 2; k >= 0; k--)
		for (int i = 0; i < 2; i++)
			wait_one(&b[(i + k + rank) % 2][k]);
}

/* Without MPI_Bcast: the first goes by the MPI, the first MPI_Barrier makes the group, and the others go by it. */
static void alone(void)
{
	struct begun b[3];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 3; i++) {
		begin(&b[i], comm, i % size, 30000 + i, i);
		MPI_Barrier(comm);
	}
	for (int i = 0; i < 3; i++)
		wait_one(&b[i]);
	MPI_Comm_free(&comm);
}

/* Rank 0 sends other bytes than the rest expects: those get an error when they wait, and so does who calls MPI_Bcast
 * afterwards. */
static void errors(void)
{
	enum { N = 65536 };
	struct begun b;
	char *p = calloc(N + 4, 1);
	MPI_Request r;
	int code, next;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	bcast(MPI_COMM_WORLD, 0, N, 0);
	begin(&b, MPI_COMM_WORLD, 1, N, 1);
	wait_one(&b);
	if (!MPI_Ibcast(p, N, MPI_BYTE, size, MPI_COMM_WORLD, &r))
		fail("a wrong root is no error", size, 0);
	if (MPI_Ibcast(p, rank ? N + 4 : N, MPI_BYTE, 0, MPI_COMM_WORLD, &r))
		fail("MPI_Ibcast", N, 0);
	code = MPI_Wait(&r, MPI_STATUS_IGNORE);
	next = MPI_Bcast(p, N, MPI_BYTE, 0, MPI_COMM_WORLD);
	if ((rank && !code) || !next)
		fail("ranks disagree, and that is no error", code, next);
	printf("error at rank %d: %d\n", rank, code != 0);
	free(p);
}

enum { THREADS = 3 };

static void *of_thread(void *arg)
{
	MPI_Comm *comm = arg;

	orders(*comm, 0, WAYS);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	MPI_Comm comms[THREADS];

	for (int t = 0; t < THREADS; t++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
		bcast(comms[t], 0, 5000, t);
	}
	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&thread[t], NULL, of_thread, &comms[t]))
			fail("pthread_create", t, 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&comms[t]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	int provided;

	MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(what, "all")) {
		bcast(MPI_COMM_WORLD, 0, 20000, 0);
		orders(MPI_COMM_WORLD, 0, WAYS);
		mixed(MPI_COMM_WORLD);
		beside(MPI_COMM_WORLD);
		depend(MPI_COMM_WORLD);
		datatypes(MPI_COMM_WORLD);
		communicators();
		alone();
	} else if (!strcmp(what, "errors")) {
		errors();
	} else if (!strcmp(what, "threads") && provided == MPI_THREAD_MULTIPLE) {
		threads();
	} else {
		fail("no such argument", argc, 0);
	}
	if (!rank)
		printf("ok: %d broadcasts\n", (int)checked);
	return MPI_Finalize();
}
