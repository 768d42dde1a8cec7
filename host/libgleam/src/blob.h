/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of blobs.
 */
#ifndef GLEAM_BLOB_H
#define GLEAM_BLOB_H

#include "machine.h"

enum { GL_BLOB_MEMBER = 1, GL_BLOB_GROUP = 2 };

struct gl_blob {
	uint8_t kind;
	struct gl_addr ip; /* of the member, or GroupIP */
	uint32_t qpn;      /* of the member, or virtual */
	uint32_t sq_psn, rq_psn;
	uint16_t path_mtu;
	uint32_t members, target_key;
	struct gl_mem window;
	bool receive_only;
};

/* The length; 0 if room is too little. */
size_t gl_blob_write(const struct gl_blob *x, const struct gl_secret *key, uint8_t *b, size_t room);
/* What is wrong with it; NULL: nothing. */
const char *gl_blob_read(struct gl_blob *x, const struct gl_secret *key, const uint8_t *b, size_t n);

#endif
