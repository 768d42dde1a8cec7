/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as text and as GIDs.
 */
#include "bytes.h"

#include <arpa/inet.h>
#include <stdio.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool gl_is_mapped(const struct gl_addr *a)
{
	return a->len == 16 && !memcmp(a->b, mapped, sizeof mapped);
}

bool gl_unicast(const struct gl_addr *a)
{
	static const uint8_t loopback[16] = {[15] = 1}, broadcast[4] = {255, 255, 255, 255};

	if (a->len == 4)
		return !gl_is_zero(a) && a->b[0] >> 4 != 14 && a->b[0] != 127 && memcmp(a->b, broadcast, 4);
	return a->len == 16 && !gl_is_zero(a) && a->b[0] != 0xff && memcmp(a->b, loopback, 16);
}

struct gl_addr gl_from_gid(const uint8_t gid[16])
{
	struct gl_addr a = {.len = 16};

	memcpy(a.b, gid, 16);
	if (gl_is_mapped(&a)) {
		memset(&a, 0, sizeof a);
		a.len = 4;
		memcpy(a.b, gid + 12, 4);
	}
	return a;
}

void gl_to_gid(const struct gl_addr *a, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (a->len == 4) {
		memcpy(gid, mapped, 12);
		memcpy(gid + 12, a->b, 4);
	} else
		memcpy(gid, a->b, 16);
}

bool gl_parse_addr(const char *text, struct gl_addr *a)
{
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, text, a->b) == 1) {
		a->len = 4;
		return true;
	}
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET6, text, a->b) == 1) {
		a->len = 16;
		return true;
	}
	return false;
}

#define TEXT_SLOTS 8

static char *slot(void)
{
	static _Thread_local char buf[TEXT_SLOTS][GL_ADDR_TEXT + 10];
	static _Thread_local unsigned next;

	return buf[next++ % TEXT_SLOTS];
}

const char *gl_addr_text(const struct gl_addr *a)
{
	char *s = slot();

	if (!a->len || !inet_ntop(a->len == 4 ? AF_INET : AF_INET6, a->b, s, GL_ADDR_TEXT))
		strcpy(s, "no address");
	return s;
}

const char *gl_endpoint_text(const struct gl_endpoint *e)
{
	char *s = slot();

	snprintf(s, GL_ADDR_TEXT + 10, e->ip.len == 16 ? "[%s]:%u" : "%s:%u", gl_addr_text(&e->ip), e->port);
	return s;
}
