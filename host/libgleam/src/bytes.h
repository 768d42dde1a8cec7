/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in network byte order, and addresses.
 */
#ifndef GLEAM_BYTES_H
#define GLEAM_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void gl_put(uint8_t *p, uint64_t v, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static inline uint64_t gl_get(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* An IP address; len is 4 or 16, and 0 for none. Bytes beyond len are 0. */
struct gl_addr {
	uint8_t len;
	uint8_t b[16];
};

struct gl_endpoint {
	struct gl_addr ip;
	uint16_t port;
};

#define GL_ADDR_TEXT 48

static inline bool gl_same(const struct gl_addr *a, const struct gl_addr *b)
{
	return a->len == b->len && !memcmp(a->b, b->b, sizeof a->b);
}

static inline bool gl_is_zero(const struct gl_addr *a)
{
	static const uint8_t zeros[16];

	return !memcmp(a->b, zeros, 16);
}

/* Whether a is an IPv4 address written as IPv6. */
bool gl_is_mapped(const struct gl_addr *a);

/* Whether a can be the address of a host, or of a group. */
bool gl_unicast(const struct gl_addr *a);

/* The address in a GID: of IPv4 if it is mapped. */
struct gl_addr gl_from_gid(const uint8_t gid[16]);
void gl_to_gid(const struct gl_addr *a, uint8_t gid[16]);

/* Reads an address from text; false if it is none. */
bool gl_parse_addr(const char *text, struct gl_addr *a);

/* Writes a as text to one of eight buffers of the calling thread, and returns it. */
const char *gl_addr_text(const struct gl_addr *a);
const char *gl_endpoint_text(const struct gl_endpoint *e);

#endif
