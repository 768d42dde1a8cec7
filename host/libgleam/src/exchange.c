/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The exchange over TCP: what master and member have in common.
 */
#include "exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sha256.h"

#define SEED_LABEL "gleam out-of-band exchange 2, Ed25519 seed"

bool gl_exchange_start(struct gleam_group *g)
{
	struct gl_exchange *x = calloc(1, sizeof *x);
	char text[600];

	if (!x) {
		gl_fail(g, EIO, "no memory");
		return true;
	}
	x->listen_fd = -1;
	x->try_at = x->auth_until = x->ready_deadline = GL_NEVER;
	g->exchange = x;
	if (!(g->flags & GLEAM_INSECURE)) {
		if (!gl_tls_library(text, sizeof text)) {
			gl_fail(g, EIO, "%s", text);
			return true;
		}
		gl_hkdf(g->cfg.key.bytes, g->cfg.key.length, SEED_LABEL, x->seed);
	}
	if (g->master)
		gl_listen(g);
	else
		gl_dial(g);
	return true;
}

static struct gl_conn *find(const struct gleam_group *g, uint64_t tag)
{
	struct gl_conn *c = g->exchange ? g->exchange->conns : NULL;

	while (c && c->tag != tag)
		c = c->next;
	return c;
}

void gl_exchange_event(struct gleam_group *g, uint64_t tag, uint32_t events)
{
	struct gl_conn *c;

	(void)events;
	if (!g->exchange)
		return;
	if (tag == GL_TAG_LISTEN) {
		gl_accept(g);
		return;
	}
	c = find(g, tag);
	if (!c)
		return;
	gl_conn_flush(g, c);
	if (g->master)
		gl_master_conn(g, c);
	else
		gl_member_conn(g, c);
}

void gl_exchange_advance(struct gleam_group *g, uint64_t now)
{
	if (g->exchange && g->master)
		gl_master_advance_exchange(g, now);
	else if (g->exchange)
		gl_member_advance_exchange(g, now);
}

uint64_t gl_exchange_deadline(const struct gleam_group *g)
{
	const struct gl_exchange *x = g->exchange;
	uint64_t at;

	if (!x)
		return GL_NEVER;
	at = x->try_at < x->ready_deadline ? x->try_at : x->ready_deadline;
	for (const struct gl_conn *c = x->conns; c; c = c->next)
		if (c->deadline < at)
			at = c->deadline;
	return at;
}

void gl_exchange_ready(struct gleam_group *g)
{
	if (g->master) {
		if (g->exchange->all_here)
			gl_describe_all(g);
		return;
	}
	gl_register(g);
	if (!g->exchange || !g->exchange->conns)
		return;
	gl_conn_resume(g, g->exchange->conns);
	gl_send_word(g, g->exchange->conns, "ready");
	gl_member_conn(g, g->exchange->conns);
}

void gl_exchange_joined(struct gleam_group *g)
{
	if (!g->exchange)
		return;
	for (struct gl_conn *c = g->exchange->conns; g->master && c; c = c->next)
		if (c->peer)
			gl_send_word(g, c, "registered"); /* the switch notices a member that has gone by now */
	gl_exchange_end(g, NULL);
}

void gl_exchange_end(struct gleam_group *g, const char *failure)
{
	struct gl_exchange *x = g->exchange;

	if (!x)
		return;
	while (x->conns) {
		struct gl_conn *c = x->conns;

		if (failure && (!g->master || c->peer))
			gl_conn_refuse(g, c, failure);
		else
			gl_conn_close(g, c);
	}
	g->exchange = NULL;
	if (x->listen_fd >= 0)
		close(x->listen_fd);
	free(x->refusals);
	free(x->addrs);
	explicit_bzero(x, sizeof *x);
	free(x);
}

void gl_exchange_missing(const struct gleam_group *g, const char *cause, char *text, size_t n)
{
	if (g->master)
		gl_master_missing(g, cause, text, n);
	else
		gl_member_missing(g, cause, text, n);
}
