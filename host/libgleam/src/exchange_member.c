/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A member's side of the exchange: it finds the master, says hello, learns the group,
 * and hears when data may flow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

#define FIRST_PAUSE (10 * GL_MS)
#define LONGEST_PAUSE (500 * GL_MS)
#define AUTH_TIMEOUT (2 * GL_SECOND) /* an address that was somebody else's for a moment does not end a join */

static void dial_once(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	const struct gl_endpoint *to = &x->addrs[x->next_addr++ % x->num_addrs];
	int fd = gl_stream(to, false);

	x->try_at = GL_NEVER;
	if (fd >= 0 && gl_conn_new(g, fd, false, to))
		return;
	snprintf(x->last, sizeof x->last, "dial tcp %s: %s", gl_endpoint_text(to), strerror(errno));
	x->try_at = gl_now() + x->pause;
}

bool gl_dial(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	char text[400];

	if (!gl_resolve(g->exchange_addr, false, &x->addrs, &x->num_addrs, text, sizeof text)) {
		gl_fail(g, EIO, "connect to the master at %s: %s", g->exchange_addr, text);
		return false;
	}
	x->pause = FIRST_PAUSE;
	dial_once(g);
	return true;
}

/* The connection is lost before this host was admitted: it tries again for a while. */
static void try_again(struct gleam_group *g, struct gl_conn *c, const char *why, bool auth)
{
	struct gl_exchange *x = g->exchange;
	uint64_t now = gl_now();

	gl_conn_close(g, c);
	snprintf(x->last, sizeof x->last, "%s", why);
	if (auth && x->auth_until == GL_NEVER)
		x->auth_until = now + AUTH_TIMEOUT;
	if (now >= x->auth_until) {
		gl_fail(g, EIO, "connect to the master at %s: %s", g->exchange_addr, x->last);
		return;
	}
	x->try_at = now + x->pause;
	x->pause = 2 * x->pause < LONGEST_PAUSE ? 2 * x->pause : LONGEST_PAUSE;
}

static void admitted(struct gleam_group *g, struct gl_conn *c)
{
	g->exchange->admitted = true;
	c->deadline = GL_NEVER;
	gl_send_hello(g, c);
}

static const char *due(const struct gl_exchange *x)
{
	return x->known ? "registered" : "group";
}

/* What prevents this member, as far as it knows. */
static void with_problem(const struct gleam_group *g, char *text, size_t n)
{
	size_t at = strlen(text);
	char problem[400];

	if (g->stage == GL_REGISTERS && gl_member_problem(&g->mem, problem, sizeof problem) && at < n)
		snprintf(text + at, n - at, "; here, %s", problem);
}

/* True: goes on with this connection. */
static bool heard(struct gleam_group *g, struct gl_conn *c, const char *line, size_t n)
{
	struct gl_exchange *x = g->exchange;
	struct gl_said m;
	char text[1800], wrong[300];

	if (!gl_message_read(line, n, &m, wrong, sizeof wrong))
		snprintf(text, sizeof text, "master %s sent %s", gl_endpoint_text(&c->other), wrong);
	else if (!strcmp(m.type, "error"))
		snprintf(text, sizeof text, "master %s gave up: %s", gl_endpoint_text(&c->other), m.error);
	else if (!strcmp(m.type, "group") && !x->known && m.group.ip.len == g->self.ip.len) {
		x->known = true;
		g->info = m.group;
		gl_conn_pause(g, c); /* the rest when the queue pair is connected, in that order */
		gl_conn_next_line(c, n);
		gl_described(g);
		return false;
	} else if (!strcmp(m.type, "registered") && g->stage == GL_REGISTERS) {
		gl_is_joined(g);
		return false;
	} else
		snprintf(text, sizeof text, "master %s sent \"%s\" where \"%s\" was due", gl_endpoint_text(&c->other), m.type, due(x));
	with_problem(g, text, sizeof text);
	gl_conn_close(g, c); /* it knows */
	if (x->known)
		gl_fail(g, EIO, "group %s: %s", gl_addr_text(&g->info.ip), text);
	else
		gl_fail(g, EIO, "%s", text);
	return false;
}

void gl_member_conn(struct gleam_group *g, struct gl_conn *c)
{
	struct gl_exchange *x = g->exchange;
	char text[GL_CONN_TEXT], *line;
	bool auth = false, fine = true;
	size_t n;

	if (c->state == GL_DIALING)
		fine = gl_conn_connected(g, c, text, sizeof text);
	if (fine && c->state != GL_OPEN)
		fine = gl_conn_input(g, c, text, sizeof text, &auth);
	if (fine && c->state == GL_OPEN && !x->admitted)
		admitted(g, c);
	if (fine && c->state == GL_OPEN)
		fine = gl_conn_input(g, c, text, sizeof text, &auth);
	if (!x->admitted) {
		if (!fine)
			try_again(g, c, text, auth);
		return;
	}
	while (gl_conn_line(c, &line, &n)) {
		if (!heard(g, c, line, n))
			return;
		gl_conn_next_line(c, n);
	}
	if (fine && c->num_in < GL_MAX_LINE)
		return;
	if (fine)
		snprintf(text, sizeof text, "master %s sent a message of more than %d bytes", gl_endpoint_text(&c->other), GL_MAX_LINE);
	else
		snprintf(text, sizeof text, "master %s closed the connection instead of sending \"%s\"", gl_endpoint_text(&c->other), due(x));
	with_problem(g, text, sizeof text);
	gl_fail(g, EIO, "%s", text);
}

void gl_member_advance_exchange(struct gleam_group *g, uint64_t now)
{
	struct gl_exchange *x = g->exchange;
	char text[200];

	if (x->conns && now >= x->conns->deadline) {
		snprintf(text, sizeof text, "%s: handshake: i/o timeout", gl_endpoint_text(&x->conns->other));
		try_again(g, x->conns, text, false);
	} else if (now >= x->try_at)
		dial_once(g);
}

void gl_member_missing(const struct gleam_group *g, const char *cause, char *text, size_t n)
{
	const struct gl_exchange *x = g->exchange;

	if (!x->admitted)
		snprintf(text, n, "connect to the master at %s: %s (last: %s): is the other side started?", g->exchange_addr, cause, *x->last ? x->last : "no answer");
	else if (!x->known)
		snprintf(text, n, "waiting for \"group\" from master %s: %s", gl_endpoint_text(&x->conns->other), cause);
	else if (!g->connected)
		snprintf(text, n, "the application had not connected its queue pair: %s", cause);
	else {
		snprintf(text, n, "group %s: waiting for \"registered\" from master %s: %s", gl_addr_text(&g->info.ip), gl_endpoint_text(&x->conns->other), cause);
		with_problem(g, text, n);
	}
}
