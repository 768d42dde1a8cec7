/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "events.h"
#include "registry.h"

/* A registration, of whole pages. It is free without an mr. */
struct entry {
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	uintptr_t from, to;
	int access;
	int users;
	int stale;     /* the memory was returned: nobody takes it any more */
	uint64_t last; /* use */
};

/* Held for a few instructions, within which nothing is called: registry_returned comes at any call of malloc. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct entry entries[REGISTRATIONS];
static struct registry_counts counts;
static uint64_t clock_of_uses, room;
static int told; /* somebody tells when memory is returned */

static void acquire(void)
{
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		;
}

static void release(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

void registry_returned(const void *at, size_t bytes)
{
	uintptr_t from = (uintptr_t)at, to = from + bytes;

	acquire();
	for (int i = 0; i < REGISTRATIONS; i++)
		if (entries[i].mr && !entries[i].stale && from < entries[i].to && to > entries[i].from) {
			entries[i].stale = 1;
			counts.returned++;
		}
	release();
}

int registry_open(uint64_t bytes)
{
	if (bytes && !told)
		told = memory_events(registry_returned);
	room = told ? bytes : 0;
	return room > 0;
}

/* Takes an entry out that nobody uses: of the stale ones any, else the one that was used longest ago, if more than
 * bytes are registered without users or if any is wanted. NULL: there is none. */
static struct ibv_mr *evict(uint64_t bytes, int any)
{
	struct entry *oldest = NULL, *stale = NULL;
	struct ibv_mr *mr = NULL;
	uint64_t idle = 0;

	acquire();
	for (struct entry *e = entries; e < entries + REGISTRATIONS; e++) {
		if (!e->mr || e->users)
			continue;
		idle += e->to - e->from;
		if (e->stale)
			stale = e;
		if (!oldest || e->last < oldest->last)
			oldest = e;
	}
	if (!stale && oldest && (any || idle > bytes))
		stale = oldest;
	if (stale) {
		mr = stale->mr;
		stale->mr = NULL;
	}
	release();
	return mr;
}

static void shrink(uint64_t bytes)
{
	for (struct ibv_mr *mr; (mr = evict(bytes, 0));)
		ibv_dereg_mr(mr);
}

static struct ibv_mr *find(struct ibv_pd *pd, uintptr_t from, uintptr_t to, int access)
{
	struct ibv_mr *mr = NULL;

	acquire();
	for (struct entry *e = entries; e < entries + REGISTRATIONS && !mr; e++)
		if (e->mr && !e->stale && e->pd == pd && e->from <= from && e->to >= to && (e->access & access) == access) {
			mr = e->mr;
			e->users++;
			e->last = ++clock_of_uses;
			counts.found++;
		}
	release();
	return mr;
}

/* 0 if there is no free entry. */
static int insert(const struct entry *made)
{
	int done = 0;

	acquire();
	for (struct entry *e = entries; e < entries + REGISTRATIONS && !done; e++)
		if (!e->mr) {
			*e = *made;
			e->last = ++clock_of_uses;
			done = 1;
		}
	counts.made += done;
	release();
	return done;
}

struct ibv_mr *registry_take(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
	uintptr_t page = sysconf(_SC_PAGESIZE);
	struct entry made = {.pd = pd, .access = access, .users = 1};
	struct ibv_mr *other;

	if (!room)
		return ibv_reg_mr(pd, at, bytes, access);
	made.from = (uintptr_t)at & ~(page - 1);
	made.to = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);
	made.mr = find(pd, made.from, made.to, access);
	if (made.mr)
		return made.mr;
	while (!(made.mr = ibv_reg_mr(pd, (void *)made.from, made.to - made.from, access))) {
		other = errno == ENOMEM ? evict(0, 1) : NULL; /* ulimit -l, or what the device has */
		if (!other)
			return NULL;
		ibv_dereg_mr(other);
	}
	while (!insert(&made) && (other = evict(0, 1)))
		ibv_dereg_mr(other);
	return made.mr; /* without an entry if all are in use: registry_give ends it */
}

void registry_give(struct ibv_mr *mr)
{
	int mine = 0;

	acquire();
	for (struct entry *e = entries; e < entries + REGISTRATIONS && !mine; e++)
		if (e->mr == mr) {
			e->users--;
			mine = 1;
		}
	release();
	if (!mine)
		ibv_dereg_mr(mr);
	shrink(room);
}

void registry_drop(struct ibv_mr *mr)
{
	acquire();
	for (struct entry *e = entries; e < entries + REGISTRATIONS; e++)
		if (e->mr == mr)
			e->stale = 1;
	release();
	registry_give(mr);
}

void registry_count(struct registry_counts *c)
{
	acquire();
	*c = counts;
	release();
}

void registry_close(void)
{
	for (struct ibv_mr *mr; (mr = evict(0, 1));)
		ibv_dereg_mr(mr);
}
