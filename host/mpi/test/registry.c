/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tests of registry.c, over a device that registers what it is asked to: exits with 1 after the first line about
 * what is wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../events.h"
#include "../registry.h"

#define WANT(ok) do { if (!(ok)) { printf("registry.c:%d: not so: %s\n", __LINE__, #ok); exit(1); } } while (0)
#undef ibv_reg_mr

enum { PAGE = 4096, MIB = 1 << 20 };

static int registered, most = 1000; /* registrations that the device has, and that it can have */
static int failure;                 /* errno of the next registration */
static int has_events = 1;

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
	struct ibv_mr *mr;

	(void)access;
	if (failure || registered == most) {
		errno = failure ? failure : ENOMEM;
		failure = 0;
		return NULL;
	}
	mr = calloc(1, sizeof *mr);
	mr->pd = pd;
	mr->addr = at;
	mr->length = bytes;
	registered++;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova, unsigned access)
{
	WANT(iova == (uintptr_t)at);
	return ibv_reg_mr(pd, at, bytes, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	registered--;
	free(mr);
	return 0;
}

int memory_events(void (*returned)(const void *at, size_t bytes))
{
	WANT(returned == registry_returned);
	return has_events;
}

static struct ibv_pd pd, other;

static void *page(uintptr_t n)
{
	return (void *)((1000 + n) * PAGE);
}

/* One use of n bytes from a page on. */
static struct ibv_mr *use(uintptr_t n, size_t bytes, int access)
{
	struct ibv_mr *mr = registry_take(&pd, page(n), bytes, access);

	WANT(mr && (char *)mr->addr <= (char *)page(n) && (char *)mr->addr + mr->length >= (char *)page(n) + bytes);
	registry_give(mr);
	return mr;
}

static void test_without_events(void)
{
	has_events = 0;
	WANT(!registry_open(MIB));
	use(0, 100, 0);
	WANT(registered == 0);
	has_events = 1;
	WANT(!registry_open(0));
	use(0, 100, 0);
	WANT(registered == 0);
}

static void test_found(void)
{
	struct ibv_mr *one = use(0, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	struct registry_counts c;

	WANT(use(0, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE) == one && use(1, PAGE + 1, 0) == one && registered == 1);
	WANT(use(2, 2 * PAGE, 0) != one && registered == 2); /* its end is not in it */
	use(10, 100, 0);
	WANT(registered == 3);
	use(10, 100, IBV_ACCESS_LOCAL_WRITE); /* it was registered to be read */
	WANT(registered == 4);
	registry_give(registry_take(&other, page(0), 100, 0));
	WANT(registered == 5);
	registry_count(&c);
	WANT(c.made == 5 && c.found == 2 && c.returned == 0);
	registry_close();
	WANT(registered == 0);
}

/* Memory is returned, and other memory comes to its address. */
static void test_returned(void)
{
	struct ibv_mr *mr = registry_take(&pd, page(0), 4 * PAGE, 0), *next;

	registry_returned(page(4), 100 * PAGE);
	WANT(registry_take(&pd, page(0), 10, 0) == mr);
	registry_give(mr);
	registry_returned(page(3), 1);
	next = registry_take(&pd, page(0), 10, 0);
	WANT(next != mr && registered == 2);
	registry_give(next);
	WANT(registered == 2); /* the first one is in use */
	registry_give(mr);
	WANT(registered == 1);
	registry_close();
	WANT(registered == 0);
}

/* A use that failed ends the registration, after those that others have. */
static void test_dropped(void)
{
	struct ibv_mr *mr = registry_take(&pd, page(0), 10, 0);

	WANT(registry_take(&pd, page(0), 10, 0) == mr);
	registry_drop(mr);
	WANT(registered == 1);
	WANT(registry_take(&pd, page(0), 10, 0) != mr && registered == 2);
	registry_give(mr);
	WANT(registered == 1);
	registry_drop(registry_take(&pd, page(50), 10, 0));
	WANT(registered == 1);
	registry_give(use(0, 10, 0)); /* the second one's own use */
	registry_close();
	WANT(registered == 0);
}

static void test_room(void)
{
	registry_open(4 * PAGE);
	for (int i = 0; i < 10; i++)
		use(10 * i, 2 * PAGE, 0);
	WANT(registered == 2);
	use(80, 2 * PAGE, 0); /* the last but one */
	WANT(registered == 2);
	use(0, 5 * PAGE, 0); /* more than stays */
	WANT(registered == 0);
	registry_open(MIB);
	for (int i = 0; i < 2 * REGISTRATIONS; i++)
		use(10 * i, 1, 0);
	WANT(registered == REGISTRATIONS);
	registry_close();
}

/* More are in use than there are entries: each ends with its use. */
static void test_full(void)
{
	struct ibv_mr *all[REGISTRATIONS + 3];

	for (int i = 0; i < REGISTRATIONS + 3; i++)
		WANT((all[i] = registry_take(&pd, page(10 * i), 1, 0)));
	for (int i = 0; i < REGISTRATIONS + 3; i++)
		registry_give(all[i]);
	WANT(registered == REGISTRATIONS);
	registry_close();
	WANT(registered == 0);
}

static void test_limits(void)
{
	most = 3;
	for (int i = 0; i < 10; i++)
		use(10 * i, 1, 0);
	WANT(registered == 3);
	failure = EFAULT; /* memory that is not to be written: no reason to end others */
	WANT(!registry_take(&pd, page(500), 1, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT && registered == 3);
	registry_close();
	most = 0;
	WANT(!registry_take(&pd, page(0), 1, 0) && errno == ENOMEM);
	most = 1000;
}

int main(void)
{
	test_without_events();
	WANT(registry_open(MIB));
	test_found();
	test_returned();
	test_dropped();
	test_room();
	test_full();
	test_limits();
	WANT(registered == 0);
	puts("ok");
	return 0;
}
