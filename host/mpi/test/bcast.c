/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Bcast as any program calls it: every byte is compared, and those beside.
 *
 *     mpi-bcast all          datatypes, roots, sizes, communicators, late ranks
 *     mpi-bcast hosts N      ranks r, r + N ... are on one host: sizes, communicators
 *     mpi-bcast large N      N MiB from each of two roots
 *     mpi-bcast errors       under MPI_ERRORS_RETURN: wrong arguments, ranks that disagree
 *     mpi-bcast threads      MPI_THREAD_MULTIPLE: a communicator for each thread
 *     mpi-bcast die          the last rank ends by a signal in the middle
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GUARD = 64, GUARDED = 0xA5 };

static int rank, size;
static atomic_int checked;

static void fail(const char *what, long long a, long long b)
{
	fprintf(stderr, "mpi-bcast: rank %d: %s: %lld, %lld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(size_t i, int seed)
{
	return i * 7 + i / 4099 + seed * 31 + 1;
}

/* One broadcast of bytes. */
static void bytes(MPI_Comm comm, int root, size_t n, int seed)
{
	int me;
	unsigned char *all = malloc(n + 2 * GUARD), *p = all + GUARD;

	MPI_Comm_rank(comm, &me);
	memset(all, GUARDED, n + 2 * GUARD);
	for (size_t i = 0; i < n && me == root; i++)
		p[i] = pattern(i, seed);
	if (MPI_Bcast(p, n, MPI_BYTE, root, comm))
		fail("MPI_Bcast", n, root);
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(i, seed))
			fail("byte, of a broadcast of bytes", i, n);
	for (int i = 0; i < GUARD; i++)
		if (all[i] != GUARDED || p[n + i] != GUARDED)
			fail("a byte beside a broadcast of bytes", i, n);
	free(all);
	checked++;
}

/* One broadcast of elements of a type: they arrive as MPI_Pack has them, and the bytes
 * between them stay as they were. */
static void typed(MPI_Comm comm, int root, MPI_Datatype type, int count, int seed)
{
	MPI_Aint lower, extent, true_lower, true_extent;
	int me, room, at = 0, got_at = 0;
	size_t n;
	unsigned char *memory, *want, *pack, *got;

	MPI_Comm_rank(comm, &me);
	MPI_Type_get_extent(type, &lower, &extent);
	MPI_Type_get_true_extent(type, &true_lower, &true_extent);
	n = count * extent + true_extent + 64;
	MPI_Pack_size(count, type, comm, &room);
	memory = malloc(n);
	want = malloc(n);
	pack = malloc(room);
	got = malloc(room);
	for (size_t i = 0; i < n; i++)
		want[i] = pattern(i, seed);
	MPI_Pack(want, count, type, pack, room, &at, comm);
	memset(memory, GUARDED, n);
	if (me == root)
		memcpy(memory, want, n);
	if (MPI_Bcast(memory, count, type, root, comm))
		fail("MPI_Bcast of a type", count, root);
	MPI_Pack(memory, count, type, got, room, &got_at, comm);
	if (at != got_at || memcmp(pack, got, at))
		fail("elements of a type differ: count, bytes", count, at);
	if (me != root) { /* what Unpack alone would have written */
		int from = 0;

		memset(want, GUARDED, n);
		MPI_Unpack(pack, at, &from, want, count, type, comm);
	}
	if (memcmp(memory, want, n))
		fail("bytes between elements of a type have changed: count", count, n);
	free(memory), free(want), free(pack), free(got);
	checked++;
}

static void datatypes(MPI_Comm comm, int root)
{
	MPI_Datatype vector, reversed, holes, run, nested;
	const int counts[] = {1, 40, 3000};
	int lengths[] = {4, 4}, back[] = {4, 0}, ones[] = {1, 1};
	MPI_Aint at[] = {0, 16};
	MPI_Datatype fields[] = {MPI_INT, MPI_DOUBLE};

	MPI_Type_vector(3, 2, 5, MPI_INT, &vector);
	MPI_Type_indexed(2, lengths, back, MPI_INT, &reversed); /* no holes, and not in the order of memory */
	MPI_Type_create_struct(2, ones, at, fields, &holes);
	MPI_Type_contiguous(7, MPI_SHORT, &run);
	MPI_Type_contiguous(2, holes, &nested);
	MPI_Datatype types[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_DOUBLE_INT, vector, reversed, holes, run, nested};

	for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
		if (t > 3)
			MPI_Type_commit(&types[t]);
		for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++)
			typed(comm, root, types[t], counts[c], t + c);
		if (t > 3)
			MPI_Type_free(&types[t]);
	}
}

/* The root sends the elements of one type, the others receive those of another one with the
 * same signature. */
static void two_types(int root)
{
	enum { N = 6000 };
	MPI_Datatype wide;
	int *all = malloc(2 * N * sizeof(int));

	MPI_Type_vector(N, 1, 2, MPI_INT, &wide);
	MPI_Type_commit(&wide);
	for (int i = 0; i < 2 * N; i++)
		all[i] = rank == root ? i : -1;
	if (rank == root)
		MPI_Bcast(all, 1, wide, root, MPI_COMM_WORLD);
	else
		MPI_Bcast(all, N, MPI_INT, root, MPI_COMM_WORLD);
	for (int i = 0; i < 2 * N && rank != root; i++)
		if (all[i] != (i < N ? 2 * i : -1))
			fail("an element received as another type", i, all[i]);
	MPI_Type_free(&wide);
	free(all);
	checked++;
}

/* A type with an address in it, from MPI_BOTTOM. */
static void from_bottom(int root)
{
	static int all[9000];
	int n = 9000;
	MPI_Aint at;
	MPI_Datatype type;

	MPI_Get_address(all, &at);
	MPI_Type_create_hindexed(1, &n, &at, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < n; i++)
		all[i] = rank == root ? i + root : -1;
	MPI_Bcast(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		if (all[i] != i + root)
			fail("element, from MPI_BOTTOM", i, all[i]);
	MPI_Type_free(&type);
	checked++;
}

#if MPI_VERSION >= 4
/* Counts of type MPI_Count, of a type made with one. */
static void large_counts(int root)
{
	enum { N = 9000 };
	MPI_Datatype pair, holes;
	int all[4 * N];

	MPI_Type_contiguous_c(2, MPI_INT, &pair);
	MPI_Type_create_resized_c(pair, 0, 4 * sizeof(int), &holes);
	MPI_Type_commit(&pair);
	MPI_Type_commit(&holes);
	for (int i = 0; i < 4 * N; i++)
		all[i] = rank == root ? i : -1;
	if (MPI_Bcast_c(all, N, pair, root, MPI_COMM_WORLD) || MPI_Bcast_c(all + 2 * N, N / 2, holes, root, MPI_COMM_WORLD))
		fail("MPI_Bcast_c", N, root);
	for (int i = 0; i < 4 * N && rank != root; i++)
		if (all[i] != (i < 2 * N || i % 4 < 2 ? i : -1))
			fail("element, of MPI_Bcast_c", i, all[i]);
	MPI_Type_free(&pair);
	MPI_Type_free(&holes);
	checked += 2;
}
#endif

static const int sizes[] = {0, 1, 4095, 4096, 4097, 16368, 16369, 65536, 300001, 1 << 20};

static void sweep(MPI_Comm comm)
{
	int n;

	MPI_Comm_size(comm, &n);
	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int root = 0; root < n; root++)
			bytes(comm, root, sizes[s], s + root);
}

/* Ranks come late in turn; the root sends many short ones without waiting. */
static void late(void)
{
	for (int who = 0; who < size; who++)
		for (int s = 3; s < 7; s++) {
			if (rank == who)
				usleep(20000);
			bytes(MPI_COMM_WORLD, 0, sizes[s], who);
		}
	for (int i = 0; i < 60; i++) {
		if (rank == size - 1 && i == 20)
			usleep(50000);
		bytes(MPI_COMM_WORLD, 1, 4096 + i, i);
	}
}

/* A rank waits in a broadcast for one that first wants a message of its own. */
static void progress(void)
{
	enum { N = 200000 };
	int *all = calloc(N, sizeof(int));
	MPI_Request request = MPI_REQUEST_NULL;

	if (rank == 0)
		MPI_Isend(all, N, MPI_INT, size - 1, 5, MPI_COMM_WORLD, &request);
	if (rank == size - 1)
		MPI_Recv(all, N, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	bytes(MPI_COMM_WORLD, 0, 65536, 9);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(all);
}

static void communicators(void)
{
	MPI_Comm halves, back;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
	MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &back);
	for (int i = 0; i < 3; i++) { /* interleaved */
		bytes(halves, i % 2, 20000, rank % 2);
		bytes(back, i, 5000, i);
		bytes(MPI_COMM_WORLD, i, 5000, i);
	}
	MPI_Comm_free(&halves);
	for (int i = 0; i < 3; i++) {
		MPI_Comm again;

		MPI_Comm_dup(back, &again);
		bytes(again, i, 5000, i);
		if (i < 2)
			MPI_Comm_free(&again); /* the last one is never freed */
	}
	MPI_Comm_free(&back);
}

/* A broadcast that is not waited for: in the meantime ranks wait for each other, and for another
 * broadcast. */
static void nonblocking(MPI_Comm comm)
{
	enum { N = 50000 };
	unsigned char *all = malloc(2 * N);
	MPI_Request requests[2];
	MPI_Status statuses[2];
	int n, me, token = 0;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	for (int root = 0; root < n; root++) {
		for (int i = 0; i < 2 * N; i++)
			all[i] = me == root ? pattern(i, root) : 0;
		MPI_Ibcast(all, N, MPI_BYTE, root, comm, &requests[0]);
		if (me != 0)
			MPI_Recv(&token, 1, MPI_INT, me - 1, 6, comm, MPI_STATUS_IGNORE);
		if (me != n - 1)
			MPI_Send(&token, 1, MPI_INT, me + 1, 6, comm);
		bytes(comm, (root + 1) % n, 30000, root);
		MPI_Ibcast(all + N, N, MPI_BYTE, root, comm, &requests[1]);
		MPI_Waitall(2, requests, statuses);
		for (int i = 0; i < 2 * N; i++)
			if (all[i] != pattern(i, root))
				fail("byte, of MPI_Ibcast", i, root);
		checked += 2;
	}
	free(all);
}

/* Ranks r, r + hosts ... are on one host. */
static void hosts(int hosts)
{
	MPI_Comm one, odd;

	sweep(MPI_COMM_WORLD);
	late();
	progress();
	MPI_Comm_split(MPI_COMM_WORLD, rank % hosts, rank, &one);
	sweep(one);
	MPI_Comm_free(&one);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &odd);
	sweep(odd);
	datatypes(odd, 1);
	MPI_Comm_free(&odd);
}

/* As Fortran calls it, by each of the names that compilers have for it; a program in C has
 * them of libgleam-mpi alone. */
static void fortran(void)
{
	static const char *const names[] = {"mpi_bcast_", "mpi_bcast", "mpi_bcast__", "MPI_BCAST", "ompi_bcast_f"};
	typedef void call(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
	MPI_Fint count = 5000, type = MPI_Type_c2f(MPI_INT), root, comm = MPI_Comm_c2f(MPI_COMM_WORLD), error;
	int all[5000];

	for (unsigned n = 0; n < sizeof names / sizeof *names; n++) {
		call *bcast = (call *)dlsym(RTLD_DEFAULT, names[n]);

		root = n % size;
		for (int i = 0; i < count; i++)
			all[i] = rank == root ? i * (int)(n + 1) : -1;
		error = -1;
		if (bcast)
			bcast(all, &count, &type, &root, &comm, &error);
		for (int i = 0; i < count && bcast; i++)
			if (all[i] != i * (int)(n + 1) || error != MPI_SUCCESS)
				fail("an element, by a name of Fortran", n, i);
		checked += bcast != NULL;
	}
}

static int class_of(int code)
{
	int class;

	MPI_Error_class(code, &class);
	return class;
}

/* Rank 0 sends other bytes than the rest expects: all get an error, now or by the next broadcast,
 * and so does each broadcast after it. Other communicators have nothing of it. */
static void errors(void)
{
	enum { N = 65536 };
	char *all = calloc(N + 4, 1), text[MPI_MAX_ERROR_STRING];
	int code, next, length;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	bytes(comm, 0, N, 0);
	if (class_of(MPI_Bcast(all, N, MPI_BYTE, size, comm)) != MPI_ERR_ROOT || class_of(MPI_Bcast(all, -1, MPI_BYTE, 0, comm)) != MPI_ERR_COUNT)
		fail("a wrong root or count is no such error", 0, 0);
	if (class_of(MPI_Bcast(all, N, MPI_DATATYPE_NULL, 0, comm)) != MPI_ERR_TYPE)
		fail("MPI_DATATYPE_NULL is no such error", 0, 0);
	bytes(comm, 1, N, 1);
	code = MPI_Bcast(all, rank ? N + 4 : N, MPI_BYTE, 0, comm);
	next = MPI_Bcast(all, N, MPI_BYTE, 0, comm);
	if ((rank && !code) || !next)
		fail("ranks disagree, and that is no error", code, next);
	MPI_Error_string(next, text, &length);
	if (!strstr(text, "MPI_Bcast by a group: "))
		fail("the error has no text of its own", next, length);
	printf("error at rank %d: %s\n", rank, text);
	MPI_Comm_free(&comm);
	bytes(MPI_COMM_WORLD, 0, N, 2);
	free(all);
}

enum { THREADS = 3 };

static void *broadcasts(void *arg)
{
	MPI_Comm *comm = arg;

	for (int i = 0; i < 12; i++)
		for (int s = 3; s < 8; s++)
			bytes(*comm, i % size, sizes[s], i + s);
	return NULL;
}

/* Each thread has its broadcasts, in a communicator of its own. */
static void threads(void)
{
	pthread_t thread[THREADS];
	MPI_Comm comms[THREADS];

	for (int t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&thread[t], NULL, broadcasts, &comms[t]))
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
		sweep(MPI_COMM_WORLD);
		for (int root = 0; root < 2; root++) {
			datatypes(MPI_COMM_WORLD, root);
			two_types(root);
			from_bottom(root);
#if MPI_VERSION >= 4
			large_counts(root);
#endif
		}
		fortran();
		late();
		progress();
		nonblocking(MPI_COMM_WORLD);
		communicators();
	} else if (!strcmp(what, "hosts") && argc > 2) {
		hosts(atoi(argv[2]));
	} else if (!strcmp(what, "large") && argc > 2) {
		for (int root = 0; root < 2; root++)
			bytes(MPI_COMM_WORLD, root, (size_t)atoi(argv[2]) << 20, root);
	} else if (!strcmp(what, "errors")) {
		errors();
	} else if (!strcmp(what, "threads") && provided == MPI_THREAD_MULTIPLE) {
		threads();
	} else if (!strcmp(what, "die")) {
		bytes(MPI_COMM_WORLD, 0, 65536, 1);
		if (rank == size - 1)
			raise(SIGKILL);
		for (int i = 0; i < 1000; i++)
			bytes(MPI_COMM_WORLD, 0, 65536, i);
	} else {
		fail("no such argument", argc, 0);
	}
	if (!rank)
		printf("ok: %d broadcasts\n", (int)checked);
	return MPI_Finalize();
}
