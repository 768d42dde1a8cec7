/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The private data by which a member of a group by RDMA-CM is known, byte by byte:
 * docs/CM.md.
 */
#include "private.h"

#include "sha256.h"
#include "wire.h"

#define MAGIC 0x474c434d /* "GLCM" */
#define VERSION 2
#define LABEL "gleam: member by RDMA-CM"
#define MAC_AT 40

enum { WINDOW = 1, RECEIVE_ONLY = 2, CREATE = 4 };

/* What the MAC covers beside the bytes before it: what a program knows before it connects. */
static void add_mac(const struct gleam_cm_member *m, uint8_t *b)
{
	uint8_t numbers[6], mac[GL_SHA256_LEN];
	struct gl_hmac h;

	gl_put(numbers, m->port, 2);
	gl_put(numbers + 2, m->qp_num, 4);
	gl_hmac_begin(&h, m->key, m->key_len);
	gl_hmac_add(&h, LABEL, sizeof LABEL);
	gl_hmac_add(&h, m->group_gid, 16);
	gl_hmac_add(&h, m->gid, 16);
	gl_hmac_add(&h, numbers, sizeof numbers);
	gl_hmac_add(&h, b, MAC_AT);
	gl_hmac_end(&h, mac);
	memcpy(b + MAC_AT, mac, GLEAM_CM_PRIVATE - MAC_AT);
}

void gl_private_write(const struct gleam_cm_member *m, uint8_t b[GLEAM_CM_PRIVATE])
{
	struct gl_writer w = {.p = b, .room = GLEAM_CM_PRIVATE};
	struct gl_mem window = {0};

	memset(b, 0, GLEAM_CM_PRIVATE);
	if (m->mr)
		window = (struct gl_mem){.base = m->mr->addr, .len = m->mr->length, .rkey = m->mr->rkey};
	gl_write(&w, MAGIC, 4);
	gl_write(&w, VERSION, 1);
	gl_write(&w, (m->mr ? WINDOW : 0) | (m->flags & GLEAM_RECEIVE_ONLY ? RECEIVE_ONLY : 0) | (m->expect ? CREATE : 0), 1);
	gl_write(&w, m->key_id, 2);
	gl_write(&w, m->nonce, 8);
	gl_write_window(&w, &window);
	gl_write(&w, m->expect, 2);
	if (m->key)
		add_mac(m, b);
}
