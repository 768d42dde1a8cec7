/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plan.c: exits with 1 after the first line about what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../plan.h"

#define WANT(ok) do { if (!(ok)) { printf("plan.c:%d: not so: %s\n", __LINE__, #ok); exit(1); } } while (0)

static void test_segments(void)
{
	const uint64_t sizes[] = {1, 7, 8, 9, 16, 17, 1ull << 33};

	for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
		uint64_t max = sizes[s] > 100 ? 1 << 23 : 8, n = segments(sizes[s], max), sum = 0;

		for (uint64_t i = 0; i < n; i++) {
			uint64_t length = segment_length(sizes[s], max, i);

			WANT(length > 0 && length <= max);
			WANT(i == n - 1 || length == max);
			sum += length;
		}
		WANT(sum == sizes[s]);
	}
}

static void test_header(void)
{
	struct header got, h = {0x01020304, 77, 0x1122334455667788};
	unsigned char raw[HEADER];

	header_write(raw, &h);
	WANT(raw[0] == 1 && raw[3] == 4 && raw[7] == 77 && raw[8] == 0x11 && raw[15] == 0x88);
	header_read(&got, raw);
	WANT(got.sequence == h.sequence && got.root == h.root && got.bytes == h.bytes);
}

static void test_range(void)
{
	static const char *const bad[] = {"", "10.0.0.9-10.0.0.8", "10.0.0.1/24", "10.0.0.1-fd00::1", "fd00::1-fd01::1", "::1:0:0-::2:ffff:ffff", "x"};
	struct range r;
	char why[200], text[64];

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		*why = 0;
		WANT(range_parse(&r, bad[i], why, sizeof why) == -1 && *why);
	}
	WANT(range_parse(&r, "10.0.0.250-10.0.1.4", why, sizeof why) == 0);
	WANT(r.count == 11 && range_is_ipv4(&r));
	range_address(&r, 10, text, sizeof text);
	WANT(!strcmp(text, "10.0.1.4"));
	WANT(range_parse(&r, "fd00::ff", why, sizeof why) == 0);
	WANT(r.count == 1 && !range_is_ipv4(&r));
	range_address(&r, 0, text, sizeof text);
	WANT(!strcmp(text, "fd00::ff"));
}

/* No two groups of a job have one address. */
static void test_pick(void)
{
	struct range r;
	char why[200];
	int used[11] = {0}, none = 0;

	WANT(range_parse(&r, "10.0.0.0-10.0.0.10", why, sizeof why) == 0);
	for (uint32_t rank = 0; rank < 4; rank++)
		for (uint32_t k = 0; k < 4; k++) {
			int64_t i = range_pick(&r, rank, 4, k);

			none += i < 0;
			WANT(i < 11 && (i < 0 || !used[i]++));
		}
	WANT(none == 16 - 11);
}

static void test_places(void)
{
	const char hosts[] = "ABACBAD";
	const struct place want[] = {{0, 0}, {1, 0}, {0, 1}, {3, 0}, {1, 1}, {0, 2}, {6, 0}};
	struct {
		unsigned char gid[16];
		int other;
	} all[7] = {{{0}, 0}};
	struct place got[7];

	for (int i = 0; i < 7; i++) {
		all[i].gid[15] = hosts[i];
		all[i].other = i;
	}
	WANT(place_ranks(got, all, sizeof *all, 7) == 4);
	for (int i = 0; i < 7; i++)
		WANT(got[i].leader == want[i].leader && got[i].local == want[i].local);
}

int main(void)
{
	test_places();
	test_segments();
	test_header();
	test_range();
	test_pick();
	puts("ok");
	return 0;
}
