/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The master's side of the exchange: it collects the members, describes the group to
 * them, and waits until their queue pairs are connected.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange.h"

#define HELLO_TIMEOUT (5 * GL_SECOND)
#define MAX_ATTEMPTS 64   /* connections without a hello */
#define FAILURES_RATE 32  /* failed ones of an address in a second */
#define MAX_NAMED 8

bool gl_listen(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	struct gl_endpoint *all;
	char text[400];
	size_t n;
	bool found = gl_resolve(g->exchange_addr, true, &all, &n, text, sizeof text);

	if (found) {
		x->listen_fd = gl_stream(&all[0], true);
		if (x->listen_fd < 0)
			snprintf(text, sizeof text, "listen tcp %s: %s", gl_endpoint_text(&all[0]), strerror(errno));
		else
			x->at = gl_local_of(x->listen_fd);
	}
	free(all);
	if (x->listen_fd >= 0 && gl_watch(g, x->listen_fd, EPOLLIN, GL_TAG_LISTEN))
		return true;
	gl_fail(g, EIO, "listen for members (the exchange address has to be one of this host, and free): %s", text);
	return false;
}

static struct gl_refusal *refusals_of(struct gl_exchange *x, const struct gl_addr *from)
{
	for (size_t i = 0; i < x->num_refusals; i++)
		if (gl_same(&x->refusals[i].from, from))
			return &x->refusals[i];
	return NULL;
}

/* Remembers a connection that was refused. */
static void refused(struct gl_exchange *x, const struct gl_addr *from, uint64_t now, const char *why)
{
	struct gl_refusal *r = refusals_of(x, from);

	if (!x->refusals)
		x->refusals = calloc(GL_REFUSERS, sizeof *x->refusals);
	if (!r && x->refusals && x->num_refusals < GL_REFUSERS) {
		r = &x->refusals[x->num_refusals++];
		r->from = *from;
		snprintf(r->first, sizeof r->first, "%s", why);
	}
	if (!r) {
		x->more_refusals++;
		return;
	}
	r->count++;
	if (now - r->second >= GL_SECOND) {
		r->second = now;
		r->in_second = 0;
	}
	r->in_second++;
}

/* What a host can choose its addresses from: an IPv4 address, or the first 64 bits of an IPv6 address. */
static bool same_network(const struct gl_addr *a, const struct gl_addr *b)
{
	return a->len == b->len && !memcmp(a->b, b->b, a->len == 16 ? 8 : a->len);
}

/* Closes the oldest connection without a hello of the address that has most of them, in the network that has most of them. */
static void displace(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	struct gl_conn *oldest = NULL;
	size_t attempts = 0, of_network = 0, of_address = 0;

	for (struct gl_conn *c = x->conns; c; c = c->next) {
		size_t near = 0, same = 0;

		if (c->peer)
			continue;
		attempts++;
		for (struct gl_conn *o = x->conns; o; o = o->next) {
			near += !o->peer && same_network(&o->other.ip, &c->other.ip);
			same += !o->peer && gl_same(&o->other.ip, &c->other.ip);
		}
		if (near > of_network || (near == of_network && same > of_address)) {
			of_network = near;
			of_address = same;
			oldest = c;
		}
	}
	if (attempts <= MAX_ATTEMPTS)
		return;
	refused(x, &oldest->other.ip, gl_now(), "had not authenticated itself when others came");
	gl_conn_close(g, oldest);
}

void gl_accept(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;

	for (int i = 0; i < MAX_ATTEMPTS; i++) {
		struct sockaddr_storage s = {0};
		struct gl_endpoint other;
		struct gl_refusal *r;
		char text[200];
		socklen_t len = sizeof s;
		int fd = accept4(x->listen_fd, (struct sockaddr *)&s, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return; /* nothing more, or no descriptor: it is tried again */
		other = gl_peer_of(fd);
		r = refusals_of(x, &other.ip);
		if (r && r->in_second >= FAILURES_RATE && gl_now() - r->second < GL_SECOND) {
			snprintf(text, sizeof text, "%s: too many connections from there have failed", gl_endpoint_text(&other));
			refused(x, &other.ip, gl_now(), text);
			close(fd);
			continue;
		}
		if (gl_conn_new(g, fd, true, &other))
			displace(g);
	}
}

static size_t num_peers(const struct gl_exchange *x, bool ready)
{
	size_t n = 0;

	for (const struct gl_conn *c = x->conns; c; c = c->next)
		n += c->peer && (!ready || c->ready);
	return n;
}

/* Why a member cannot be in the group; NULL: it can. */
static const char *unfit(struct gleam_group *g, const struct gl_conn *c, char *text, size_t n)
{
	const struct gl_record *r = &c->who;
	char who[200];

	snprintf(who, sizeof who, "%s QP 0x%x (member %s)", gl_addr_text(&r->ip), r->qpn, gl_endpoint_text(&c->other));
	if (!gl_same(&c->other.ip, &r->ip) && !(g->flags & GLEAM_OTHER_NETWORK))
		snprintf(text, n, "%s: it claims %s and is connected from %s: a member speaks for its own address only (OtherNetwork, gleam perf's --other-network "
		         "and GLEAM_OTHER_NETWORK are for exchanges over another network than the group's)", who, gl_addr_text(&r->ip), gl_addr_text(&c->other.ip));
	else if (r->ip.len != g->group_ip.len)
		snprintf(text, n, "%s: its address is not of the family of GroupIP %s", who, gl_addr_text(&g->group_ip));
	else if (g->exchange->all_here)
		snprintf(text, n, "the group has all its members already");
	else {
		for (const struct gl_conn *o = g->exchange->conns; o; o = o->next)
			if (o->peer && gl_same(&o->who.ip, &r->ip)) {
				snprintf(text, n, "%s: %s QP 0x%x is a member already", who, gl_addr_text(&o->who.ip), o->who.qpn);
				return text;
			}
		return NULL;
	}
	return text;
}

/* Closes what is no member, and accepts no more. */
static void stop_accepting(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	struct gl_conn *c = x->conns;

	close(x->listen_fd);
	x->listen_fd = -1;
	while (c) {
		struct gl_conn *next = c->next;

		if (!c->peer)
			gl_conn_refuse(g, c, "the group has all its members already");
		c = next;
	}
}

void gl_describe_all(struct gleam_group *g)
{
	struct gl_exchange *x = g->exchange;
	char text[GL_TEXT];

	for (struct gl_conn *c = x->conns; c; c = c->next)
		if (!gl_add_peer(g, &c->who)) {
			gl_fail(g, EIO, "no memory");
			return;
		}
	if (!gl_prepare(g, text, sizeof text)) {
		gl_fail(g, EIO, "%s", text);
		return;
	}
	x->described = true;
	x->ready_deadline = gl_now() + g->ready_timeout;
	for (struct gl_conn *c = x->conns; c; c = c->next)
		gl_send_group(g, c);
	gl_described(g);
}

/* True: goes on with this connection. */
static bool said_hello(struct gleam_group *g, struct gl_conn *c, const struct gl_said *m)
{
	struct gl_exchange *x = g->exchange;
	const char *why;
	char text[600];

	c->who = m->member;
	why = unfit(g, c, text, sizeof text);
	if (why) {
		refused(x, &c->other.ip, gl_now(), why);
		gl_conn_refuse(g, c, why);
		return false;
	}
	c->peer = true;
	c->deadline = GL_NEVER;
	if (num_peers(x, false) < g->members)
		return true;
	x->all_here = true;
	stop_accepting(g);
	if (g->connected)
		gl_describe_all(g);
	return g->exchange == x;
}

/* A connection that was lost, or that said what it must not. */
static void lost(struct gleam_group *g, struct gl_conn *c, const char *why)
{
	struct gl_exchange *x = g->exchange;

	if (c->peer && x->all_here) {
		c->peer = c->state == GL_OPEN;
		gl_fail(g, EIO, "%s", why);
		return;
	}
	refused(x, &c->other.ip, gl_now(), why); /* a member may come again */
	gl_conn_refuse(g, c, why);
}

/* True: goes on with this connection. */
static bool heard(struct gleam_group *g, struct gl_conn *c, const char *line, size_t n)
{
	struct gl_exchange *x = g->exchange;
	struct gl_said m;
	char text[1400], wrong[300];
	bool fine = gl_message_read(line, n, &m, wrong, sizeof wrong);

	if (!fine)
		snprintf(text, sizeof text, "member %s sent %s", gl_endpoint_text(&c->other), wrong);
	else if (!strcmp(m.type, "error"))
		snprintf(text, sizeof text, "member %s gave up: %s", gl_endpoint_text(&c->other), m.error);
	else if (!strcmp(m.type, "hello") && !c->peer)
		return said_hello(g, c, &m);
	else if (!strcmp(m.type, "ready") && x->described && !c->ready) {
		c->ready = true;
		if (num_peers(x, true) == g->members) {
			x->ready_deadline = GL_NEVER;
			gl_register(g);
		}
		return g->exchange == x;
	} else
		snprintf(text, sizeof text, "member %s sent \"%s\" where %s was due", gl_endpoint_text(&c->other), m.type, c->peer ? "\"ready\"" : "\"hello\"");
	lost(g, c, text);
	return false;
}

void gl_master_conn(struct gleam_group *g, struct gl_conn *c)
{
	bool auth, was_open = c->state == GL_OPEN, fine;
	char text[GL_CONN_TEXT], *line;
	size_t n;

	fine = gl_conn_input(g, c, text, sizeof text, &auth);
	if (!was_open && c->state == GL_OPEN)
		c->deadline = gl_now() + HELLO_TIMEOUT;
	while (c->state == GL_OPEN && gl_conn_line(c, &line, &n)) {
		if (!heard(g, c, line, n))
			return;
		gl_conn_next_line(c, n);
	}
	if (fine && c->num_in == GL_MAX_LINE) {
		snprintf(text, sizeof text, "member %s sent a message of more than %d bytes", gl_endpoint_text(&c->other), GL_MAX_LINE);
		fine = false;
	}
	if (!fine)
		lost(g, c, text);
}

void gl_master_advance_exchange(struct gleam_group *g, uint64_t now)
{
	struct gl_exchange *x = g->exchange;
	struct gl_conn *c = x->conns;
	char text[300], took[32];

	while (c) {
		struct gl_conn *next = c->next;

		if (now >= c->deadline) {
			snprintf(text, sizeof text, "%s: handshake: i/o timeout", gl_endpoint_text(&c->other));
			lost(g, c, text);
		}
		c = next;
	}
	if (now < x->ready_deadline)
		return;
	gl_duration_text(g->ready_timeout, took, sizeof took);
	snprintf(text, sizeof text, "its queue pair was not connected within %s", took);
	gl_give_up(g, EIO, text);
}

void gl_master_missing(const struct gleam_group *g, const char *cause, char *text, size_t n)
{
	const struct gl_exchange *x = g->exchange;
	const struct gl_conn *c;
	size_t at = 0, named = 0;

	if (!x->all_here) {
		at = (size_t)snprintf(text, n, "%zu of %u members have connected to %s: %s", num_peers(x, false), g->members, gl_endpoint_text(&x->at), cause);
		for (c = x->conns; c && at < n; c = c->next)
			if (c->peer)
				at += (size_t)snprintf(text + at, n - at, "%s%s", named++ ? ", " : "; connected: ", gl_addr_text(&c->who.ip));
		for (size_t i = 0; i < x->num_refusals && i < MAX_NAMED && at < n; i++) {
			at += (size_t)snprintf(text + at, n - at, "%s%s", i ? ", " : "; refused: ", x->refusals[i].first);
			if (x->refusals[i].count > 1 && at < n)
				at += (size_t)snprintf(text + at, n - at, " (the first of %llu connections from there)", (unsigned long long)x->refusals[i].count);
		}
		if ((x->num_refusals > MAX_NAMED || x->more_refusals) && at < n)
			snprintf(text + at, n - at, ", and connections of other addresses");
		return;
	}
	if (!g->connected) {
		snprintf(text, n, "the application had not connected its queue pair: %s", cause);
		return;
	}
	for (c = x->conns; c && c->ready; c = c->next)
		;
	snprintf(text, n, "waiting for \"ready\" from member %s: %s", c ? gl_endpoint_text(&c->other) : "none", cause);
}
