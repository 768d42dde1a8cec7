/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The messages of the exchange: lines of JSON.
 */
#include <stdio.h>

#include "exchange.h"
#include "json.h"

#define VERSION 2

static bool fault(char *text, size_t room, const char *what)
{
	snprintf(text, room, "%s", what);
	return false;
}

static bool read_number(struct gl_json o, const char *name, uint64_t most, uint32_t *n)
{
	uint64_t v;
	struct gl_json j = gl_json_get(o, name);
	bool fine = !j.p || gl_json_number(j, most, &v);

	*n = fine && j.p ? (uint32_t)v : 0;
	return fine;
}

static bool read_addr(struct gl_json o, struct gl_addr *a)
{
	char ip[GL_ADDR_TEXT];

	return gl_json_text(gl_json_get(o, "ip"), ip, sizeof ip) && gl_parse_addr(ip, a) && !gl_is_mapped(a) && !gl_is_zero(a) &&
	       !(a->len == 4 && a->b[0] >> 4 == 14) && !(a->len == 16 && a->b[0] == 0xff);
}

static bool read_window(struct gl_json o, struct gl_mem *w)
{
	struct gl_json j = gl_json_get(o, "window");

	if (!j.p || (j.n == 4 && !memcmp(j.p, "null", 4)))
		return true;
	return gl_json_number(gl_json_get(j, "va"), UINT64_MAX, &w->base) && gl_json_number(gl_json_get(j, "len"), UINT64_MAX, &w->len) &&
	       read_number(j, "rkey", UINT32_MAX, &w->rkey) && gl_valid_window(w);
}

static bool read_member(struct gl_json o, struct gl_record *r)
{
	r->receive_only = gl_json_true(gl_json_get(o, "receive_only"));
	return read_addr(o, &r->ip) && read_number(o, "qpn", UINT32_MAX, &r->qpn) && gl_valid_qpn(r->qpn) && read_number(o, "sq_psn", GL_MASK24, &r->sq_psn) &&
	       read_number(o, "rq_psn", GL_MASK24, &r->rq_psn) && read_window(o, &r->window);
}

static bool read_group(struct gl_json o, struct gl_info *i)
{
	uint32_t path_mtu;

	if (!read_addr(o, &i->ip) || !read_number(o, "qpn", UINT32_MAX, &i->qpn) || !gl_valid_qpn(i->qpn) || !read_number(o, "path_mtu", 4096, &path_mtu) ||
	    !gl_path_mtu_code(path_mtu) || !read_number(o, "members", UINT32_MAX, &i->members) || !read_number(o, "target_key", UINT32_MAX, &i->target_key))
		return false;
	i->path_mtu = (uint16_t)path_mtu;
	return read_window(o, &i->window);
}

bool gl_message_read(const char *line, size_t n, struct gl_said *m, char *text, size_t room)
{
	struct gl_json o;
	uint64_t v;

	memset(m, 0, sizeof *m);
	if (!gl_json_object(line, n, &o))
		return fault(text, room, "a message that is not JSON of this exchange");
	if (!gl_json_number(gl_json_get(o, "v"), UINT64_MAX, &v))
		return fault(text, room, "a message without a version");
	gl_json_text(gl_json_get(o, "type"), m->type, sizeof m->type);
	gl_json_text(gl_json_get(o, "error"), m->error, sizeof m->error);
	if (v != VERSION && strcmp(m->type, "error")) { /* that one is the same in every version */
		snprintf(text, room, "version %llu of the exchange, this is version %d: use the same release on all hosts", (unsigned long long)v, VERSION);
		return false;
	}
	if (!strcmp(m->type, "hello") && !read_member(gl_json_get(o, "member"), &m->member))
		return fault(text, room, "an unusable hello");
	if (!strcmp(m->type, "group") && !read_group(gl_json_get(o, "group"), &m->group))
		return fault(text, room, "an unusable group");
	return true;
}

static const char *window_text(const struct gl_mem *w, char *text, size_t n)
{
	text[0] = 0;
	if (gl_has_window(w))
		snprintf(text, n, ",\"window\":{\"va\":%llu,\"len\":%llu,\"rkey\":%u}", (unsigned long long)w->base, (unsigned long long)w->len, w->rkey);
	return text;
}

void gl_send_hello(struct gleam_group *g, struct gl_conn *c)
{
	const struct gl_record *r = &g->self;
	char window[120];

	gl_conn_send(g, c, "{\"v\":%d,\"type\":\"hello\",\"member\":{\"ip\":\"%s\",\"qpn\":%u,\"sq_psn\":%u,\"rq_psn\":%u%s%s}}", VERSION, gl_addr_text(&r->ip),
	             r->qpn, r->sq_psn, r->rq_psn, window_text(&r->window, window, sizeof window), r->receive_only ? ",\"receive_only\":true" : "");
	explicit_bzero(window, sizeof window);
}

void gl_send_group(struct gleam_group *g, struct gl_conn *c)
{
	const struct gl_info *i = &g->info;
	char window[120], target[40] = "";

	if (i->target_key)
		snprintf(target, sizeof target, ",\"target_key\":%u", i->target_key);
	gl_conn_send(g, c, "{\"v\":%d,\"type\":\"group\",\"group\":{\"ip\":\"%s\",\"qpn\":%u,\"path_mtu\":%u,\"members\":%u%s%s}}", VERSION, gl_addr_text(&i->ip),
	             i->qpn, i->path_mtu, i->members, window_text(&i->window, window, sizeof window), target);
	explicit_bzero(window, sizeof window);
	explicit_bzero(target, sizeof target);
}

void gl_send_word(struct gleam_group *g, struct gl_conn *c, const char *type)
{
	gl_conn_send(g, c, "{\"v\":%d,\"type\":\"%s\"}", VERSION, type);
}
