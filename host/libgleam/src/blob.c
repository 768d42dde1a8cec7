/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Blobs: what hosts tell each other where the program carries it. docs/EXCHANGE.md
 * draws them.
 */
#include "blob.h"

#include "sha256.h"

#define MAGIC 0x474c4d42 /* "GLMB" */
#define VERSION 1
#define LABEL "gleam: blob"

enum { V6 = 1, WINDOW = 2, RECEIVE_ONLY = 4 };

static void mac_of(const struct gl_secret *key, const uint8_t *b, size_t n, uint8_t mac[GL_MAC_LEN])
{
	struct gl_hmac m;

	gl_hmac_begin(&m, key->bytes, key->length);
	gl_hmac_add(&m, LABEL, sizeof LABEL);
	gl_hmac_add(&m, b, n);
	gl_hmac_end(&m, mac);
}

size_t gl_blob_write(const struct gl_blob *x, const struct gl_secret *key, uint8_t *b, size_t room)
{
	struct gl_writer w = {.p = b, .room = room};
	uint8_t gid[16];

	gl_write(&w, MAGIC, 4);
	gl_write(&w, VERSION, 1);
	gl_write(&w, x->kind, 1);
	gl_write(&w, key->length ? key->id : 0, 2);
	gl_write(&w, (gl_has_window(&x->window) ? WINDOW : 0) | (x->receive_only ? RECEIVE_ONLY : 0), 1);
	gl_write(&w, x->path_mtu, 2);
	gl_write(&w, 0, 1);
	gl_to_gid(&x->ip, gid);
	gl_write_bytes(&w, gid, 16);
	gl_write(&w, x->qpn, 4);
	gl_write(&w, x->sq_psn, 4);
	gl_write(&w, x->rq_psn, 4);
	gl_write(&w, x->members, 4);
	gl_write(&w, x->target_key, 4);
	gl_write_window(&w, &x->window);
	if (key->length) {
		uint8_t mac[GL_MAC_LEN];

		mac_of(key, b, w.bad ? 0 : w.n, mac);
		gl_write_bytes(&w, mac, sizeof mac);
	}
	return w.bad ? 0 : w.n;
}

const char *gl_blob_read(struct gl_blob *x, const struct gl_secret *key, const uint8_t *b, size_t n)
{
	struct gl_reader r = {.p = b, .n = n};
	uint8_t mac[GL_MAC_LEN], flags;
	const uint8_t *gid;
	uint16_t id;

	memset(x, 0, sizeof *x);
	if (gl_read(&r, 4) != MAGIC)
		return "it is no blob of gleam_export() or gleam_describe()";
	if (gl_read(&r, 1) != VERSION)
		return "it is of another release: use the same on all hosts";
	x->kind = (uint8_t)gl_read(&r, 1);
	id = (uint16_t)gl_read(&r, 2);
	if (id != (key->length ? key->id : 0))
		return "it is under another key id, or without a key: give all hosts of a group the same";
	if (key->length) {
		if (n < GL_MAC_LEN)
			return "it is cut off";
		mac_of(key, b, n - GL_MAC_LEN, mac);
		if (!gl_equal(mac, b + n - GL_MAC_LEN, GL_MAC_LEN))
			return "it is damaged, or its host has another key under this id: give all hosts of a group the same";
		r.n -= GL_MAC_LEN;
	}
	flags = (uint8_t)gl_read(&r, 1);
	x->receive_only = flags & RECEIVE_ONLY;
	x->path_mtu = (uint16_t)gl_read(&r, 2);
	gl_read(&r, 1);
	gid = gl_take(&r, 16);
	if (gid)
		x->ip = gl_from_gid(gid);
	x->qpn = (uint32_t)gl_read(&r, 4);
	x->sq_psn = (uint32_t)gl_read(&r, 4);
	x->rq_psn = (uint32_t)gl_read(&r, 4);
	x->members = (uint32_t)gl_read(&r, 4);
	x->target_key = (uint32_t)gl_read(&r, 4);
	x->window = gl_read_window(&r);
	if (r.truncated || r.n)
		return "its length is wrong";
	if ((x->kind != GL_BLOB_MEMBER && x->kind != GL_BLOB_GROUP) || flags & ~(WINDOW | RECEIVE_ONLY) || !gl_unicast(&x->ip) || !gl_valid_qpn(x->qpn) ||
	    x->sq_psn > GL_MASK24 || x->rq_psn > GL_MASK24 || (x->kind == GL_BLOB_GROUP && !gl_path_mtu_code(x->path_mtu)) ||
	    !(flags & WINDOW) != !gl_has_window(&x->window) || (flags & WINDOW && !gl_valid_window(&x->window)))
		return "a number in it is impossible";
	return NULL;
}
