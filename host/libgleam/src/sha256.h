/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (FIPS 180-4), HMAC (RFC 2104) and HKDF (RFC 5869) with it.
 *
 * The library has its own, so that a process that joins groups loads no other: a
 * libcrypto would be a second one beside that of the program, with its own exit
 * handlers, and 4 MB. There is nothing secret-dependent in the control flow.
 */
#ifndef GLEAM_SHA256_H
#define GLEAM_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GL_SHA256_LEN 32

struct gl_sha256 {
	uint32_t h[8];
	uint64_t length;
	uint8_t block[64];
};

struct gl_hmac {
	struct gl_sha256 inner, outer;
};

void gl_hmac_begin(struct gl_hmac *m, const void *key, size_t n);
void gl_hmac_add(struct gl_hmac *m, const void *data, size_t n);
void gl_hmac_end(struct gl_hmac *m, uint8_t out[GL_SHA256_LEN]);

/* The first 32 bytes of HKDF-SHA-256 of a key, without salt. */
void gl_hkdf(const void *key, size_t n, const char *info, uint8_t out[GL_SHA256_LEN]);

/* Compares in constant time. */
bool gl_equal(const void *a, const void *b, size_t n);

#endif
