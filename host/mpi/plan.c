/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

static void put(unsigned char *to, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = v >> 8 * (bytes - 1 - i);
}

static uint64_t get(const unsigned char *from, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v = v << 8 | from[i];
	return v;
}

void header_write(unsigned char *to, const struct header *h)
{
	put(to, h->sequence, 4);
	put(to + 4, h->root, 4);
	put(to + 8, h->bytes, 8);
}

void header_read(struct header *h, const unsigned char *from)
{
	h->sequence = get(from, 4);
	h->root = get(from + 4, 4);
	h->bytes = get(from + 8, 8);
}

uint64_t segments(uint64_t bytes, uint64_t max)
{
	return bytes / max + (bytes % max != 0);
}

uint64_t segment_length(uint64_t bytes, uint64_t max, uint64_t i)
{
	uint64_t rest = bytes - i * max;

	return rest < max ? rest : max;
}

static int address_parse(unsigned char gid[16], const char *text)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid, mapped, 12);
	return inet_pton(AF_INET, text, gid + 12) == 1 || inet_pton(AF_INET6, text, gid) == 1;
}

int range_parse(struct range *r, const char *text, char *why, size_t room)
{
	char first[64];
	const char *dash = strchr(text, '-'), *last = dash ? dash + 1 : text;
	size_t n = dash ? (size_t)(dash - text) : strlen(text);
	unsigned char end[16];
	int ok = n < sizeof first;

	if (ok) {
		memcpy(first, text, n);
		first[n] = 0;
		ok = address_parse(r->first, first) && address_parse(end, last);
	}
	if (!ok || memcmp(r->first, end, 12) || get(end + 12, 4) < get(r->first + 12, 4) ||
	    get(end + 12, 4) - get(r->first + 12, 4) == UINT32_MAX) {
		snprintf(why, room, "\"%s\" is not FIRST-LAST, two addresses that differ in their last four bytes at most", text);
		return -1;
	}
	r->count = get(end + 12, 4) - get(r->first + 12, 4) + 1;
	return 0;
}

int range_is_ipv4(const struct range *r)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(r->first, mapped, 12);
}

void range_address(const struct range *r, uint32_t i, char *text, size_t room)
{
	unsigned char gid[16];
	int v4 = range_is_ipv4(r);

	memcpy(gid, r->first, 16);
	put(gid + 12, get(gid + 12, 4) + i, 4);
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, text, room);
}

int64_t range_pick(const struct range *r, uint32_t rank, uint32_t size, uint32_t k)
{
	uint64_t i = (uint64_t)k * size + rank;

	return i < r->count ? (int64_t)i : -1;
}

int place_ranks(struct place *places, const void *gids, size_t stride, int n)
{
	const unsigned char *gid = gids;
	int hosts = 0;

	for (int i = 0; i < n; i++) {
		places[i] = (struct place){i, 0};
		for (int j = i - 1; j >= 0 && places[i].leader == i; j--)
			if (!memcmp(gid + i * stride, gid + j * stride, 16))
				places[i] = (struct place){places[j].leader, places[j].local + 1};
		hosts += places[i].leader == i;
	}
	return hosts;
}
