/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256, HMAC and HKDF.
 */
#include "sha256.h"

#include <string.h>

#include "bytes.h"

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void compress(uint32_t h[8], const uint8_t *block)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)gl_get(block + 4 * i, 4);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = v[7] + (ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		uint32_t t2 = (ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

static void begin(struct gl_sha256 *s)
{
	static const uint32_t h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(s->h, h, sizeof h);
	s->length = 0;
}

static void add(struct gl_sha256 *s, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		size_t at = s->length % 64, room = 64 - at, take = n < room ? n : room;

		memcpy(s->block + at, p, take);
		s->length += take;
		p += take;
		n -= take;
		if (take == room)
			compress(s->h, s->block);
	}
}

static void end(struct gl_sha256 *s, uint8_t out[GL_SHA256_LEN])
{
	static const uint8_t pad[64] = {0x80};
	uint64_t bits = s->length * 8;
	uint8_t length[8];

	add(s, pad, 1 + (64 + 55 - s->length % 64) % 64);
	gl_put(length, bits, 8);
	add(s, length, 8);
	for (int i = 0; i < 8; i++)
		gl_put(out + 4 * i, s->h[i], 4);
}

void gl_hmac_begin(struct gl_hmac *m, const void *key, size_t n)
{
	uint8_t block[64] = {0};

	if (n > sizeof block) {
		begin(&m->inner);
		add(&m->inner, key, n);
		end(&m->inner, block);
	} else
		memcpy(block, key, n);
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36;
	begin(&m->inner);
	add(&m->inner, block, 64);
	for (int i = 0; i < 64; i++)
		block[i] ^= 0x36 ^ 0x5c;
	begin(&m->outer);
	add(&m->outer, block, 64);
	explicit_bzero(block, sizeof block);
}

void gl_hmac_add(struct gl_hmac *m, const void *data, size_t n)
{
	add(&m->inner, data, n);
}

void gl_hmac_end(struct gl_hmac *m, uint8_t out[GL_SHA256_LEN])
{
	uint8_t inner[GL_SHA256_LEN];

	end(&m->inner, inner);
	add(&m->outer, inner, sizeof inner);
	end(&m->outer, out);
	explicit_bzero(m, sizeof *m);
}

void gl_hkdf(const void *key, size_t n, const char *info, uint8_t out[GL_SHA256_LEN])
{
	static const uint8_t no_salt[GL_SHA256_LEN], first = 1;
	uint8_t prk[GL_SHA256_LEN];
	struct gl_hmac m;

	gl_hmac_begin(&m, no_salt, sizeof no_salt);
	gl_hmac_add(&m, key, n);
	gl_hmac_end(&m, prk);
	gl_hmac_begin(&m, prk, sizeof prk);
	gl_hmac_add(&m, info, strlen(info));
	gl_hmac_add(&m, &first, 1);
	gl_hmac_end(&m, out);
	explicit_bzero(prk, sizeof prk);
}

bool gl_equal(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}
