/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts that have begun, and all the ways in which MPI has a program wait for them.
 */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 24, LONGEST = 120000 };

static int rank, size;
static atomic_int checked;

static void fail(const char *what, long long a, long long b)
{
	fprintf(stderr, "mpi-ibcast: rank %d: %s: %lld, %lld\n", rank, what, a, b);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char pattern(size_t i, int seed)
{
	return i * 7 + i / 4099 + seed * 31 + 1;
}

/* A broadcast that has begun. */
struct begun {
	MPI_Request request;
	unsigned char *bytes;
	size_t n;
	int seed;
};

static void begin(struct begun *b, MPI_Comm comm, int root, size_t n, int seed)
{
	int me;

	MPI_Comm_rank(comm, &me);
	*b = (struct begun){.bytes = malloc(n), .n = n, .seed = seed};
	for (size_t i = 0; i < n; i++)
		b->bytes[i] = me == root ? pattern(i, seed) : 0;
	if (MPI_Ibcast(b->bytes, n, MPI_BYTE, root, comm, &b->request))
		fail("MPI_Ibcast", n, root);
}

static void check(struct begun *b)
{
	if (b->request != MPI_REQUEST_NULL)
		fail("a request that was waited for is not null", b->n, b->seed);
	for (size_t i = 0; i < b->n; i++)
		if (b->bytes[i] != pattern(i, b->seed))
			fail("byte, of MPI_Ibcast", i, b->n);
	free(b->bytes);
	checked++;
}

static void wait_one(struct begun *b)
{
	if (MPI_Wait(&b->request, MPI_STATUS_IGNORE))
		fail("MPI_Wait", b->n, b->seed);
	check(b);
}

/* Short and long ones, and below each threshold. */
static size_t length(int i)
{
	static const size_t lengths[] = {5000, LONGEST, 16368, 1, 16369, 40000, 4096, 70001};

	return lengths[i % (sizeof lengths / sizeof *lengths)];
}

static void begin_many(struct begun *b, MPI_Request *requests, MPI_Comm comm)
{
	for (int i = 0; i < MANY; i++) {
		begin(&b[i], comm, i % size, length(i), i);
		requests[i] = b[i].request;
	}
}

static void taken(struct begun *b, MPI_Request *requests, int i)
{
	b[i].request = requests[i];
	check(&b[i]);
}

/* Ways to wait. Each calls taken once for each request. */
static void forwards(struct begun *b, MPI_Request *r)
{
	for (int i = 0; i < MANY; i++) {
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		taken(b, r, i);
	}
}

static void backwards(struct begun *b, MPI_Request *r)
{
	for (int i = MANY - 1; i >= 0; i--) {
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		taken(b, r, i);
	}
}

static void any(struct begun *b, MPI_Request *r)
{
	MPI_Status s;
	int i;

	for (int n = 0; n < MANY; n++) {
		MPI_Waitany(MANY, r, &i, &s);
		if (i == MPI_UNDEFINED)
			fail("MPI_Waitany has no request left", n, MANY);
		taken(b, r, i);
	}
	MPI_Waitany(MANY, r, &i, &s);
	if (i != MPI_UNDEFINED)
		fail("MPI_Waitany has a request too many", i, MANY);
}

static void some(struct begun *b, MPI_Request *r)
{
	MPI_Status s[MANY];
	int at[MANY], n;

	for (int done = 0; done < MANY; done += n) {
		MPI_Waitsome(MANY, r, &n, at, s);
		for (int i = 0; i < n; i++)
			taken(b, r, at[i]);
	}
}

static void all(struct begun *b, MPI_Request *r)
{
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		taken(b, r, i);
}

static void test_each(struct begun *b, MPI_Request *r)
{
	MPI_Status s;

	for (int i = MANY - 1, done; i >= 0; i -= done) {
		MPI_Test(&r[i], &done, &s);
		if (done)
			taken(b, r, i);
	}
}

static void test_all(struct begun *b, MPI_Request *r)
{
	MPI_Status s[MANY];
	int done = 0;

	while (!done)
		MPI_Testall(MANY, r, &done, s);
	for (int i = 0; i < MANY; i++)
		taken(b, r, i);
}

static void test_any(struct begun *b, MPI_Request *r)
{
	int i, done;

	for (int n = 0; n < MANY; n += done) {
		MPI_Testany(MANY, r, &i, &done, MPI_STATUS_IGNORE);
		if (done)
			taken(b, r, i);
	}
}

static void test_some(struct begun *b, MPI_Request *r)
{
	int at[MANY], n;

	for (int done = 0; done < MANY; done += n) {
		MPI_Testsome(MANY, r, &n, at, MPI_STATUSES_IGNORE);
		for (int i = 0; i < n; i++)
			taken(b, r, at[i]);
	}
}

static void get_status(struct begun *b, MPI_Request *r)
{
	for (int i = 0; i < MANY; i++) {
		MPI_Status s;
		int done = 0;

		while (!done)
			MPI_Request_get_status(r[i], &done, &s);
		MPI_Request_get_status(r[i], &done, &s);
		MPI_Wait(&r[i], &s);
		if (!done)
			fail("a request is not done any more", i, MANY);
		taken(b, r, i);
	}
}

static void (*const ways[])(struct begun *, MPI_Request *) = {forwards, backwards, any, some, all, test_each, test_all, test_any, test_some, get_status};
enum { WAYS = sizeof ways / sizeof *ways };
