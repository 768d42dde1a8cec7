/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Header, MAC and bodies of messages.
 */
#include "wire.h"

#include <stdlib.h>

#include "sha256.h"

#define MAGIC 0x474c454dull /* "GLEM" */
#define VERSION 1
#define FIXED_LEN 36
#define FLAG_IPV6 1
#define FLAG_RELAY 2

static const char *const labels[] = {
	[GL_NO_DIRECTION] = "",
	[GL_TO_SWITCH] = "gleam: host to switch",
	[GL_FROM_SWITCH] = "gleam: switch to host",
	[GL_TO_MASTER] = "gleam: member to master",
};

enum gl_direction gl_direction(uint8_t type)
{
	switch (type) {
	case GL_REGISTER: case GL_LEAVE: case GL_DELETE: case GL_RENEW: case GL_ACK: case GL_HERE:
		return GL_TO_SWITCH;
	case GL_ACCEPT: case GL_REJECT: case GL_CHALLENGE: case GL_NOTIFY: case GL_GONE: case GL_WHERE: case GL_NOTICE:
		return GL_FROM_SWITCH;
	case GL_CONFIRM:
		return GL_TO_MASTER;
	}
	return GL_NO_DIRECTION;
}

static void mac_of(const struct gl_secret *key, uint8_t type, const uint8_t *b, size_t n, uint8_t out[GL_MAC_LEN])
{
	const char *label = labels[gl_direction(type)];
	struct gl_hmac m;

	gl_hmac_begin(&m, key->bytes, key->length);
	gl_hmac_add(&m, label, *label ? strlen(label) + 1 : 0);
	gl_hmac_add(&m, b, n);
	gl_hmac_end(&m, out);
}

static size_t header_len(bool v6)
{
	return FIXED_LEN + (v6 ? 32 : 8) + 2;
}

size_t gl_payload_room(size_t mtu, bool v6)
{
	size_t taken = (v6 ? 40 : 20) + 8, room = mtu > taken ? mtu - taken : 0;

	if (room > GL_MAX_LEN)
		room = GL_MAX_LEN;
	taken = header_len(v6) + GL_MAC_LEN;
	return room > taken ? room - taken : 0;
}

static void write_addr(struct gl_writer *w, const struct gl_addr *a, bool v6)
{
	if (a->len != (v6 ? 16 : 4))
		w->bad = true;
	gl_write_bytes(w, a->b, v6 ? 16 : 4);
}

static struct gl_addr read_addr(struct gl_reader *r, bool v6)
{
	struct gl_addr a = {.len = v6 ? 16 : 4};
	const uint8_t *b = gl_take(r, a.len);

	if (b)
		memcpy(a.b, b, a.len);
	return a;
}

static void write_key(struct gl_writer *w, const struct gl_member_key *k, bool v6)
{
	static const uint8_t zeros[16];

	if (k->ip.len || k->qpn)
		write_addr(w, &k->ip, v6);
	else
		gl_write_bytes(w, zeros, v6 ? 16 : 4);
	gl_write(w, k->qpn, 3);
}

static struct gl_member_key read_key(struct gl_reader *r, bool v6, bool optional)
{
	struct gl_member_key k = {.ip = read_addr(r, v6)};

	k.qpn = (uint32_t)gl_read(r, 3);
	if (optional && gl_is_zero(&k.ip) && !k.qpn)
		k.ip.len = 0;
	return k;
}

static uint64_t read_duration(struct gl_reader *r)
{
	uint64_t v = gl_read(r, 8);

	if (v >> 63) {
		r->malformed = true;
		return 0;
	}
	return v;
}

static bool in_port_name(uint8_t c)
{
	return c > ' ' && c < 0x7f;
}

static void write_lost(struct gl_writer *w, const struct gl_lost_link *l)
{
	size_t n = strnlen(l->port, sizeof l->port - 1);

	gl_write(w, l->at, 8);
	gl_write(w, l->to, 8);
	gl_write(w, n, 1);
	for (size_t i = 0; i < n; i++)
		gl_write(w, in_port_name((uint8_t)l->port[i]) ? (uint8_t)l->port[i] : '?', 1);
}

static void read_lost(struct gl_reader *r, struct gl_lost_link *l)
{
	size_t n;
	const uint8_t *name;

	l->at = gl_read(r, 8);
	l->to = gl_read(r, 8);
	n = gl_read(r, 1);
	if (n >= sizeof l->port) {
		r->malformed = true;
		return;
	}
	name = gl_take(r, n);
	for (size_t i = 0; name && i < n; i++) {
		if (!in_port_name(name[i]))
			r->malformed = true;
		l->port[i] = (char)name[i];
	}
}

static void write_body(struct gl_writer *w, const struct gl_message *m, bool v6)
{
	switch (m->type) {
	case GL_REGISTER: case GL_NOTIFY:
		gl_write_params(w, &m->params);
		gl_write_records(w, m->records, m->num_records, v6);
		break;
	case GL_LEAVE:
		write_key(w, &m->member, v6);
		break;
	case GL_RENEW:
		gl_write(w, m->lease, 8);
		gl_write_records(w, m->records, m->num_records, v6);
		break;
	case GL_ACCEPT:
		gl_write(w, m->request, 1);
		gl_write(w, m->members, 2);
		gl_write(w, m->lease, 8);
		break;
	case GL_REJECT:
		gl_write(w, m->request, 1);
		gl_write(w, m->reason, 1);
		write_key(w, &m->member, v6);
		gl_write(w, m->value, 8);
		break;
	case GL_CHALLENGE:
		gl_write(w, m->request, 1);
		gl_write(w, m->value, 8);
		break;
	case GL_CONFIRM:
		write_key(w, &m->member, v6);
		gl_write(w, m->status, 1);
		gl_write(w, m->qpn, 3);
		gl_write(w, m->sq_psn, 3);
		gl_write(w, m->rq_psn, 3);
		break;
	case GL_GONE:
		write_key(w, &m->member, v6);
		gl_write(w, m->reason, 1);
		gl_write(w, m->code, 1);
		gl_write(w, m->psn, 3);
		if (m->reason == 8)
			write_lost(w, &m->lost);
		break;
	case GL_NOTICE:
		gl_write(w, m->reason, 1);
		write_key(w, &m->member, v6);
		gl_write(w, m->code, 1);
		gl_write(w, m->psn, 3);
		gl_write(w, m->value, 8);
		break;
	case GL_WHERE: case GL_HERE:
		write_addr(w, &m->member.ip, v6);
		gl_write_bytes(w, m->nonce, 16);
		break;
	}
}

size_t gl_encode(uint8_t *b, size_t room, const struct gl_message *m, const struct gl_secret *key)
{
	bool v6 = m->group.len == 16;
	struct gl_writer w = {.p = b, .room = room};

	gl_write(&w, MAGIC, 4);
	gl_write(&w, VERSION, 1);
	gl_write(&w, m->type, 1);
	gl_write(&w, key->length ? key->id : 0, 2);
	gl_write(&w, (v6 ? FLAG_IPV6 : 0) | (m->relay ? FLAG_RELAY : 0), 1);
	gl_write(&w, m->hops, 1);
	gl_write(&w, 0, 2); /* the length, below */
	gl_write(&w, m->epoch, 8);
	gl_write(&w, m->instance, 8);
	gl_write(&w, m->transaction, 4);
	gl_write(&w, m->seq, 2);
	gl_write(&w, m->total, 2);
	write_addr(&w, &m->group, v6);
	write_addr(&w, &m->reply_to.ip, v6);
	gl_write(&w, m->reply_to.port, 2);
	write_body(&w, m, v6);
	if (w.bad || w.n + (key->length ? GL_MAC_LEN : 0) > room || w.n + GL_MAC_LEN > 0xffff)
		return 0;
	gl_put(b + 10, w.n + (key->length ? GL_MAC_LEN : 0), 2);
	if (key->length) {
		mac_of(key, m->type, b, w.n, b + w.n);
		w.n += GL_MAC_LEN;
	}
	return w.n;
}

static enum gl_drop parse_header(const uint8_t *b, size_t n, struct gl_message *m, struct gl_reader *body)
{
	struct gl_reader r = {.p = b, .n = n};
	uint8_t flags;
	size_t end = n;
	bool v6;

	memset(m, 0, sizeof *m);
	if (n < FIXED_LEN)
		return GL_TRUNCATED;
	if (gl_read(&r, 4) != MAGIC)
		return GL_BAD_MAGIC;
	if (gl_read(&r, 1) != VERSION)
		return GL_BAD_VERSION;
	m->type = (uint8_t)gl_read(&r, 1);
	m->key_id = (uint16_t)gl_read(&r, 2);
	flags = (uint8_t)gl_read(&r, 1);
	m->hops = (uint8_t)gl_read(&r, 1);
	if (flags & ~(FLAG_IPV6 | FLAG_RELAY) || (m->hops && !(flags & FLAG_RELAY)))
		return GL_BAD_FORMAT;
	v6 = flags & FLAG_IPV6;
	m->relay = flags & FLAG_RELAY;
	if (m->key_id)
		end -= GL_MAC_LEN < n ? GL_MAC_LEN : n;
	if (end < header_len(v6) || gl_read(&r, 2) != n)
		return GL_TRUNCATED;
	m->epoch = gl_read(&r, 8);
	m->instance = gl_read(&r, 8);
	m->transaction = (uint32_t)gl_read(&r, 4);
	m->seq = (uint16_t)gl_read(&r, 2);
	m->total = (uint16_t)gl_read(&r, 2);
	if (m->type == 0 || m->type >= GL_TYPES || m->seq >= m->total || (m->total > 1 && m->type != GL_REGISTER))
		return GL_BAD_FORMAT;
	m->group = read_addr(&r, v6);
	m->reply_to.ip = read_addr(&r, v6);
	m->reply_to.port = (uint16_t)gl_read(&r, 2);
	if (gl_is_mapped(&m->group))
		return GL_BAD_FORMAT;
	body->p = b + header_len(v6);
	body->n = end - header_len(v6);
	return GL_NO_DROP;
}

static enum gl_drop parse_body(struct gl_reader *r, struct gl_message *m)
{
	bool v6 = m->group.len == 16;
	const uint8_t *nonce;

	switch (m->type) {
	case GL_REGISTER: case GL_NOTIFY:
		m->params = gl_read_params(r);
		m->records = gl_read_records(r, v6, &m->num_records);
		break;
	case GL_LEAVE:
		m->member = read_key(r, v6, false);
		break;
	case GL_RENEW:
		m->lease = read_duration(r);
		m->records = gl_read_records(r, v6, &m->num_records);
		break;
	case GL_ACCEPT:
		m->request = (uint8_t)gl_read(r, 1);
		m->members = (uint16_t)gl_read(r, 2);
		m->lease = read_duration(r);
		break;
	case GL_REJECT:
		m->request = (uint8_t)gl_read(r, 1);
		m->reason = (uint8_t)gl_read(r, 1);
		m->member = read_key(r, v6, true);
		m->value = gl_read(r, 8);
		break;
	case GL_CHALLENGE:
		m->request = (uint8_t)gl_read(r, 1);
		m->value = gl_read(r, 8);
		break;
	case GL_CONFIRM:
		m->member = read_key(r, v6, false);
		m->status = (uint8_t)gl_read(r, 1);
		m->qpn = (uint32_t)gl_read(r, 3);
		m->sq_psn = (uint32_t)gl_read(r, 3);
		m->rq_psn = (uint32_t)gl_read(r, 3);
		break;
	case GL_GONE:
		m->member = read_key(r, v6, true);
		m->reason = (uint8_t)gl_read(r, 1);
		m->code = (uint8_t)gl_read(r, 1);
		m->psn = (uint32_t)gl_read(r, 3);
		if (m->reason == 8)
			read_lost(r, &m->lost);
		break;
	case GL_NOTICE:
		m->reason = (uint8_t)gl_read(r, 1);
		m->member = read_key(r, v6, false);
		m->code = (uint8_t)gl_read(r, 1);
		m->psn = (uint32_t)gl_read(r, 3);
		m->value = gl_read(r, 8);
		r->malformed |= !m->reason || m->reason >= GL_NOTICES;
		break;
	case GL_WHERE: case GL_HERE:
		m->member.ip = read_addr(r, v6);
		nonce = gl_take(r, 16);
		if (nonce)
			memcpy(m->nonce, nonce, 16);
		break;
	}
	if (r->truncated)
		return GL_TRUNCATED;
	return r->malformed || r->n ? GL_BAD_FORMAT : GL_NO_DROP;
}

/* Decodes the body, and lets go of the records of one that is faulty. */
static enum gl_drop decode_body(struct gl_reader *body, struct gl_message *m)
{
	enum gl_drop d = parse_body(body, m);

	if (d)
		gl_free_records(m);
	return d;
}

void gl_free_records(struct gl_message *m)
{
	free(m->records);
	m->records = NULL;
	m->num_records = 0;
}

enum gl_drop gl_parse(const uint8_t *b, size_t n, struct gl_message *m)
{
	struct gl_reader body = {0};
	enum gl_drop d = parse_header(b, n, m, &body);

	return d ? d : decode_body(&body, m);
}

enum gl_drop gl_decode(const uint8_t *b, size_t n, const struct gl_secret *key, struct gl_message *m)
{
	struct gl_reader body = {0};
	enum gl_drop d = parse_header(b, n, m, &body);
	uint8_t mac[GL_MAC_LEN];

	if (d)
		return d;
	if (!m->key_id) {
		if (key->length)
			return GL_UNAUTHENTICATED;
	} else {
		if (!key->length || m->key_id != key->id)
			return GL_UNKNOWN_KEY;
		mac_of(key, m->type, b, n - GL_MAC_LEN, mac);
		if (!gl_equal(mac, b + n - GL_MAC_LEN, GL_MAC_LEN))
			return GL_BAD_MAC;
	}
	return decode_body(&body, m);
}
