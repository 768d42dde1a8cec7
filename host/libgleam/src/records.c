/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Record sections and the parameters of a group: docs/PROTOCOL.md, 4 and 5.
 */
#include "wire.h"

#include <stdlib.h>

enum { SQ_EACH = 1, RQ_EACH = 2, HAS_WINDOWS = 4, RECEIVERS = 8 };
enum { WINDOW = 1, UPDATE = 2, DETAILS = 4, TARGET = 8, NO_REPAIR = 16, EXCLUSIVE = 32 };

void gl_write_bytes(struct gl_writer *w, const void *b, size_t n)
{
	if (w->bad || n > w->room - w->n) {
		w->bad = true;
		return;
	}
	memcpy(w->p + w->n, b, n);
	w->n += n;
}

void gl_write(struct gl_writer *w, uint64_t v, int bytes)
{
	uint8_t b[8];

	if (bytes < 8 && v >> (8 * bytes))
		w->bad = true;
	gl_put(b, v, bytes);
	gl_write_bytes(w, b, (size_t)bytes);
}

void gl_write_window(struct gl_writer *w, const struct gl_mem *m)
{
	gl_write(w, m->base, 8);
	gl_write(w, m->len, 8);
	gl_write(w, m->rkey, 4);
}

const uint8_t *gl_take(struct gl_reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->truncated || n > r->n) {
		r->truncated = true;
		return NULL;
	}
	r->p += n;
	r->n -= n;
	return p;
}

uint64_t gl_read(struct gl_reader *r, int bytes)
{
	const uint8_t *p = gl_take(r, (size_t)bytes);

	return p ? gl_get(p, bytes) : 0;
}

struct gl_mem gl_read_window(struct gl_reader *r)
{
	struct gl_mem m;

	m.base = gl_read(r, 8);
	m.len = gl_read(r, 8);
	m.rkey = (uint32_t)gl_read(r, 4);
	return m;
}

bool gl_same_window(const struct gl_mem *a, const struct gl_mem *b)
{
	return a->base == b->base && a->len == b->len && a->rkey == b->rkey;
}

bool gl_same_key(const struct gl_member_key *a, const struct gl_member_key *b)
{
	return a->qpn == b->qpn && gl_same(&a->ip, &b->ip);
}

bool gl_same_record(const struct gl_record *a, const struct gl_record *b)
{
	return gl_same(&a->ip, &b->ip) && a->qpn == b->qpn && a->sq_psn == b->sq_psn && a->rq_psn == b->rq_psn &&
	       a->receive_only == b->receive_only && gl_same_window(&a->window, &b->window);
}

struct gl_member_key gl_key_of(const struct gl_record *r)
{
	return (struct gl_member_key){.ip = r->ip, .qpn = r->qpn};
}

/* The smallest form of a run of records. */
struct section {
	size_t prefix, count, windows, receivers;
	bool sq_each, rq_each;
};

static size_t addr_len(bool v6)
{
	return v6 ? 16 : 4;
}

static void section_add(struct section *s, const struct gl_record *first, const struct gl_record *r, bool v6)
{
	size_t same = 0;

	if (!s->count)
		s->prefix = addr_len(v6);
	while (same < s->prefix && first->ip.b[same] == r->ip.b[same])
		same++;
	s->prefix = same;
	s->sq_each |= r->sq_psn != first->sq_psn;
	s->rq_each |= r->rq_psn != first->rq_psn;
	s->windows += gl_has_window(&r->window);
	s->receivers += r->receive_only;
	s->count++;
}

static size_t section_size(const struct section *s, bool v6)
{
	size_t bitmap = (s->count + 7) / 8;
	size_t record = addr_len(v6) - s->prefix + 3 + (s->sq_each ? 3 : 0) + (s->rq_each ? 3 : 0);
	size_t fixed = 4 + s->prefix + (s->sq_each ? 0 : 3) + (s->rq_each ? 0 : 3);

	if (s->windows)
		fixed += bitmap;
	if (s->receivers)
		fixed += bitmap;
	return fixed + s->count * record + s->windows * 20;
}

size_t gl_records_fit(const struct gl_record *rs, size_t n, bool v6, size_t room)
{
	struct section s = {0};

	for (size_t i = 0; i < n; i++) {
		section_add(&s, rs, &rs[i], v6);
		if (section_size(&s, v6) > room)
			return i;
	}
	return n;
}

static bool window_bit(const struct gl_record *r)
{
	return gl_has_window(&r->window);
}

static bool receive_bit(const struct gl_record *r)
{
	return r->receive_only;
}

static void write_bitmap(struct gl_writer *w, const struct gl_record *rs, size_t n, bool (*has)(const struct gl_record *))
{
	for (size_t i = 0; i < n; i += 8) {
		uint8_t bits = 0;

		for (size_t j = i; j < n && j < i + 8; j++)
			if (has(&rs[j]))
				bits |= (uint8_t)(0x80 >> (j % 8));
		gl_write(w, bits, 1);
	}
}

void gl_write_records(struct gl_writer *w, const struct gl_record *rs, size_t n, bool v6)
{
	static const struct gl_record none;
	const struct gl_record *first = n ? rs : &none;
	struct section s = {0};

	for (size_t i = 0; i < n; i++) {
		if (rs[i].ip.len != addr_len(v6))
			w->bad = true;
		section_add(&s, rs, &rs[i], v6);
	}
	gl_write(w, (s.sq_each ? SQ_EACH : 0) | (s.rq_each ? RQ_EACH : 0) | (s.windows ? HAS_WINDOWS : 0) |
	         (s.receivers ? RECEIVERS : 0), 1);
	gl_write(w, s.prefix, 1);
	gl_write(w, s.count, 2);
	gl_write_bytes(w, first->ip.b, s.prefix);
	if (!s.sq_each)
		gl_write(w, first->sq_psn, 3);
	if (!s.rq_each)
		gl_write(w, first->rq_psn, 3);
	if (s.windows)
		write_bitmap(w, rs, n, window_bit);
	if (s.receivers)
		write_bitmap(w, rs, n, receive_bit);
	for (size_t i = 0; i < n; i++) {
		gl_write_bytes(w, rs[i].ip.b + s.prefix, addr_len(v6) - s.prefix);
		gl_write(w, rs[i].qpn, 3);
		if (s.sq_each)
			gl_write(w, rs[i].sq_psn, 3);
		if (s.rq_each)
			gl_write(w, rs[i].rq_psn, 3);
		if (gl_has_window(&rs[i].window))
			gl_write_window(w, &rs[i].window);
	}
}

static bool bit(const uint8_t *map, size_t i)
{
	return map && map[i / 8] & 0x80 >> (i % 8);
}

struct gl_record *gl_read_records(struct gl_reader *r, bool v6, size_t *n)
{
	uint8_t flags = (uint8_t)gl_read(r, 1);
	size_t prefix = gl_read(r, 1), count = gl_read(r, 2), all = addr_len(v6);
	const uint8_t *common, *windows = NULL, *receivers = NULL;
	struct gl_record shared = {.ip.len = (uint8_t)all}, *rs;

	*n = 0;
	if (flags & ~(SQ_EACH | RQ_EACH | HAS_WINDOWS | RECEIVERS) || prefix > all || (!count && prefix)) {
		r->malformed = true;
		return NULL;
	}
	common = gl_take(r, prefix);
	if (common)
		memcpy(shared.ip.b, common, prefix);
	if (!(flags & SQ_EACH))
		shared.sq_psn = (uint32_t)gl_read(r, 3);
	if (!(flags & RQ_EACH))
		shared.rq_psn = (uint32_t)gl_read(r, 3);
	if (flags & HAS_WINDOWS)
		windows = gl_take(r, (count + 7) / 8);
	if (flags & RECEIVERS)
		receivers = gl_take(r, (count + 7) / 8);
	if (count * (all - prefix + 3) > r->n)
		r->truncated = true; /* before memory is taken for what it claims */
	if (r->truncated || !count)
		return NULL;
	rs = calloc(count, sizeof *rs);
	if (!rs) {
		r->truncated = true; /* no memory: the message is lost, and will be repeated */
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		const uint8_t *suffix = gl_take(r, all - prefix);

		rs[i] = shared;
		if (suffix)
			memcpy(rs[i].ip.b + prefix, suffix, all - prefix);
		rs[i].qpn = (uint32_t)gl_read(r, 3);
		if (flags & SQ_EACH)
			rs[i].sq_psn = (uint32_t)gl_read(r, 3);
		if (flags & RQ_EACH)
			rs[i].rq_psn = (uint32_t)gl_read(r, 3);
		rs[i].receive_only = bit(receivers, i);
		if (bit(windows, i)) {
			rs[i].window = gl_read_window(r);
			if (!gl_has_window(&rs[i].window))
				r->malformed = true;
		}
	}
	*n = count;
	return rs;
}

static bool has_details(const struct gl_params *p)
{
	return p->quorum || p->lag_psns || p->lag_time || p->sender_timeout || p->sender_retries;
}

size_t gl_params_size(const struct gl_params *p)
{
	return 25 + (gl_has_window(&p->window) ? 20 : 0) + (p->base ? 8 : 0) + (has_details(p) ? 15 : 0) + (p->target_key ? 4 : 0);
}

void gl_write_params(struct gl_writer *w, const struct gl_params *p)
{
	uint8_t flags = (gl_has_window(&p->window) ? WINDOW : 0) | (p->base ? UPDATE : 0) | (has_details(p) ? DETAILS : 0) |
	                (p->target_key ? TARGET : 0) | (p->no_repair ? NO_REPAIR : 0) | (p->exclusive ? EXCLUSIVE : 0);

	gl_write(w, flags, 1);
	gl_write(w, p->policy, 1);
	gl_write(w, p->qpn, 3);
	gl_write(w, p->path_mtu, 2);
	gl_write(w, p->members, 2);
	gl_write(w, p->dead_after, 8);
	gl_write(w, p->lease, 8);
	if (flags & WINDOW)
		gl_write_window(w, &p->window);
	if (flags & UPDATE)
		gl_write(w, p->base, 8);
	if (flags & DETAILS) {
		gl_write(w, p->quorum, 2);
		gl_write(w, p->lag_psns, 3);
		gl_write(w, p->lag_time, 8);
		gl_write(w, p->sender_timeout, 1);
		gl_write(w, p->sender_retries, 1);
	}
	if (flags & TARGET)
		gl_write(w, p->target_key, 4);
}

static void must(struct gl_reader *r, bool fine)
{
	if (!fine)
		r->malformed = true;
}

struct gl_params gl_read_params(struct gl_reader *r)
{
	struct gl_params p = {0};
	uint8_t flags = (uint8_t)gl_read(r, 1);

	must(r, !(flags & ~(WINDOW | UPDATE | DETAILS | TARGET | NO_REPAIR | EXCLUSIVE)));
	p.policy = (uint8_t)gl_read(r, 1);
	p.qpn = (uint32_t)gl_read(r, 3);
	p.path_mtu = (uint16_t)gl_read(r, 2);
	p.members = (uint16_t)gl_read(r, 2);
	p.dead_after = gl_read(r, 8);
	p.lease = gl_read(r, 8);
	must(r, !(p.dead_after >> 63) && !(p.lease >> 63));
	p.no_repair = flags & NO_REPAIR;
	p.exclusive = flags & EXCLUSIVE;
	if (flags & WINDOW) {
		p.window = gl_read_window(r);
		must(r, gl_has_window(&p.window));
	}
	if (flags & UPDATE) {
		p.base = gl_read(r, 8);
		must(r, p.base);
	}
	if (flags & DETAILS) {
		p.quorum = (uint16_t)gl_read(r, 2);
		p.lag_psns = (uint32_t)gl_read(r, 3);
		p.lag_time = gl_read(r, 8);
		p.sender_timeout = (uint8_t)gl_read(r, 1);
		p.sender_retries = (uint8_t)gl_read(r, 1);
		must(r, !(p.lag_time >> 63) && has_details(&p));
	}
	if (flags & TARGET) {
		p.target_key = (uint32_t)gl_read(r, 4);
		must(r, p.target_key);
	}
	return p;
}
