/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One connection of the exchange: TCP, TLS where there is a key, and lines.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exchange.h"
#include "json.h"

#define ACCEPT_TIMEOUT (4 * GL_SECOND)
#define DIAL_TIMEOUT (10 * GL_SECOND)

const struct gl_tls_functions *gl_tls_library(char *text, size_t n)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static const struct gl_tls_functions *functions;
	void *library;

	pthread_mutex_lock(&once);
	if (!functions) {
		library = dlopen(GL_TLS_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* it stays loaded */
		if (library)
			functions = dlsym(library, GL_TLS_SYMBOL);
		if (!functions)
			snprintf(text, n, "load %s for the exchange over TCP (it comes with libgleam, and needs OpenSSL 3; a program that passes on blobs does without): %s",
			         GL_TLS_LIBRARY, dlerror());
	}
	pthread_mutex_unlock(&once);
	return functions;
}

static uint32_t watched(const struct gl_conn *c)
{
	return EPOLLIN | (c->want_out || c->state == GL_DIALING ? EPOLLOUT : 0);
}

void gl_conn_pause(struct gleam_group *g, struct gl_conn *c)
{
	epoll_ctl(g->epoll, EPOLL_CTL_DEL, c->fd, NULL);
}

void gl_conn_resume(struct gleam_group *g, struct gl_conn *c)
{
	gl_watch(g, c->fd, watched(c), c->tag);
}

/* Sends what waits, as far as the socket takes it. */
void gl_conn_flush(struct gleam_group *g, struct gl_conn *c)
{
	bool before = c->want_out;

	if (c->state == GL_DIALING)
		return;
	while (c->num_out) {
		ssize_t n = send(c->fd, c->out, c->num_out, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		c->num_out -= (size_t)n;
		memmove(c->out, c->out + n, c->num_out);
	}
	c->want_out = c->num_out > 0;
	if (before != c->want_out)
		gl_rewatch(g, c->fd, watched(c), c->tag);
}

static bool queue(struct gl_conn *c, const uint8_t *b, size_t n)
{
	if (c->num_out + n > c->room_out) {
		uint8_t *more = realloc(c->out, 2 * (c->num_out + n));

		if (!more)
			return false;
		c->out = more;
		c->room_out = 2 * (c->num_out + n);
	}
	memcpy(c->out + c->num_out, b, n);
	c->num_out += n;
	return true;
}

/* Takes what TLS wants sent. */
static void pull(struct gleam_group *g, struct gl_conn *c)
{
	const struct gl_tls_functions *f = c->tls ? gl_tls_library(NULL, 0) : NULL;
	uint8_t b[4096];
	size_t n;

	while (f && (n = f->output(c->tls, b, sizeof b)) > 0)
		if (!queue(c, b, n))
			break;
	gl_conn_flush(g, c);
}

static bool begin_tls(struct gleam_group *g, struct gl_conn *c)
{
	const struct gl_tls_functions *f = gl_tls_library(NULL, 0);

	if (g->flags & GLEAM_INSECURE) {
		c->state = GL_OPEN;
		return true;
	}
	c->tls = f ? f->open(c->server, g->exchange->seed, g->cfg.key.id, GL_USE) : NULL;
	c->state = GL_SHAKING;
	c->deadline = gl_now() + (c->server ? ACCEPT_TIMEOUT : DIAL_TIMEOUT);
	return c->tls;
}

struct gl_conn *gl_conn_new(struct gleam_group *g, int fd, bool server, const struct gl_endpoint *other)
{
	struct gl_exchange *x = g->exchange;
	struct gl_conn *c = calloc(1, sizeof *c), **end = &x->conns;

	if (!c || !(c->in = malloc(GL_MAX_LINE))) {
		free(c);
		close(fd);
		return NULL;
	}
	c->fd = fd;
	c->server = server;
	c->other = *other;
	c->tag = GL_TAG_CONN + x->last_tag++;
	c->deadline = gl_now() + DIAL_TIMEOUT;
	while (*end)
		end = &(*end)->next;
	*end = c;
	if ((server && !begin_tls(g, c)) || !gl_watch(g, fd, watched(c), c->tag)) {
		gl_conn_close(g, c);
		return NULL;
	}
	pull(g, c);
	return c;
}

void gl_conn_close(struct gleam_group *g, struct gl_conn *c)
{
	struct gl_conn **at = &g->exchange->conns;
	uint8_t rest[4096];

	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	if (c->tls)
		gl_tls_library(NULL, 0)->close(c->tls);
	shutdown(c->fd, SHUT_WR);
	for (int i = 0; i < 64 && recv(c->fd, rest, sizeof rest, MSG_DONTWAIT) > 0; i++)
		; /* with unread bytes the connection would be reset, and the last message lost */
	close(c->fd);
	free(c->in);
	free(c->out);
	free(c);
}

bool gl_conn_connected(struct gleam_group *g, struct gl_conn *c, char *text, size_t n)
{
	int error = 0;
	socklen_t len = sizeof error;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		snprintf(text, n, "dial tcp %s: connect: %s", gl_endpoint_text(&c->other), error == ECONNREFUSED ? "connection refused" : strerror(error));
		return false;
	}
	if (!begin_tls(g, c)) {
		snprintf(text, n, "%s: no memory for TLS", gl_endpoint_text(&c->other));
		return false;
	}
	gl_rewatch(g, c->fd, watched(c), c->tag);
	pull(g, c);
	return true;
}

static bool plain_text(const struct gl_conn *c)
{
	return c->num_in && c->in[0] == '{';
}

/* Why TLS has ended; auth: because of the key. */
static void explain(struct gleam_group *g, struct gl_conn *c, enum gl_tls_state state, char *text, size_t n, bool *auth)
{
	const struct gl_tls_functions *f = gl_tls_library(NULL, 0);
	const char *peer = gl_endpoint_text(&c->other);
	unsigned id = g->cfg.key.id;
	int alert;

	*auth = true;
	switch (state) {
	case GL_TLS_OTHER_KEY:
		snprintf(text, n, "%s has another key than this host under id %u: give all hosts of a group the same", peer, id);
		return;
	case GL_TLS_NO_SUCH_KEY:
		snprintf(text, n, "%s wants to prove that it has key %d, which is not configured here", peer, f->asked_key(c->tls));
		return;
	case GL_TLS_OTHER_USE:
		snprintf(text, n, "%s has the key, but did not ask for %s: use the same release on all hosts", peer, GL_USE);
		return;
	case GL_TLS_ALERT:
		alert = f->alert(c->tls);
		if (alert == 42)
			snprintf(text, n, "%s refused this host: key %u is another one there: give all hosts of a group the same", peer, id);
		else if (alert == 112)
			snprintf(text, n, "%s refused this host: key %u is not configured there: give all hosts of a group the same", peer, id);
		else if (alert == 120)
			snprintf(text, n, "%s refused this host: it does not speak %s: use the same release on all hosts, and check the address", peer, GL_USE);
		else
			snprintf(text, n, "%s refused this host: TLS alert %d", peer, alert);
		return;
	case GL_TLS_NOT_TLS:
		snprintf(text, n, "%s sent something that is not TLS", peer);
		return;
	default:
		*auth = false;
		snprintf(text, n, "%s closed the connection within the handshake", peer);
	}
}

/* Gives bytes to TLS, or to the line. */
static bool take(struct gleam_group *g, struct gl_conn *c, const uint8_t *b, size_t got, char *text, size_t n, bool *auth)
{
	const struct gl_tls_functions *f = c->tls ? gl_tls_library(NULL, 0) : NULL;
	enum gl_tls_state state;
	size_t more;

	if (!c->first_byte && f && b[0] == '{') {
		*auth = true;
		c->in[c->num_in++] = '{'; /* for the answer in plain text */
		snprintf(text, n, "%s speaks plain text: it is of another release, or set insecure, and this host has a key; or it had waited in vain for this host",
		         gl_endpoint_text(&c->other));
		return false;
	}
	if (!c->first_byte && !f && b[0] == 0x16) {
		snprintf(text, n, "%s wants the exchange protected by a key, and this host is set insecure: give both the key", gl_endpoint_text(&c->other));
		return false;
	}
	c->first_byte = true;
	if (!f) {
		if (got > GL_MAX_LINE - c->num_in)
			got = GL_MAX_LINE - c->num_in; /* the line is too long: noticed when it is read */
		memcpy(c->in + c->num_in, b, got);
		c->num_in += got;
		return true;
	}
	f->input(c->tls, b, got);
	while (c->num_in < GL_MAX_LINE && (more = f->read(c->tls, c->in + c->num_in, GL_MAX_LINE - c->num_in)) > 0)
		c->num_in += more;
	pull(g, c);
	state = f->state(c->tls);
	if (state == GL_TLS_SHAKING)
		return true;
	if (state == GL_TLS_OPEN && c->state == GL_SHAKING) {
		c->state = c->server ? GL_OPEN : GL_ADMISSION;
		if (c->server) {
			f->write(c->tls, (const uint8_t *)"A", 1);
			pull(g, c);
		}
	}
	if (state == GL_TLS_CLOSED && c->num_in)
		return true; /* the last message first */
	if (state != GL_TLS_OPEN)
		explain(g, c, state, text, n, auth);
	if (c->state == GL_ADMISSION && c->num_in) {
		if (c->in[0] != 'A') {
			snprintf(text, n, "%s sent 0x%02x where 0x%02x was due", gl_endpoint_text(&c->other), c->in[0], 'A');
			return false;
		}
		c->state = GL_OPEN;
		c->num_in--;
		memmove(c->in, c->in + 1, c->num_in);
	}
	return state == GL_TLS_OPEN;
}

bool gl_conn_input(struct gleam_group *g, struct gl_conn *c, char *text, size_t n, bool *auth)
{
	uint8_t b[16384];

	*auth = false;
	for (int i = 0; i < 8; i++) {
		ssize_t got = recv(c->fd, b, sizeof b, 0);

		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			return true;
		if (got <= 0) {
			if (got == 0 && c->state == GL_OPEN)
				snprintf(text, n, "%s closed the connection", gl_endpoint_text(&c->other));
			else if (got == 0)
				snprintf(text, n, "%s closed the connection within the handshake", gl_endpoint_text(&c->other));
			else
				snprintf(text, n, "%s: %s", gl_endpoint_text(&c->other), strerror(errno));
			return false;
		}
		if (!take(g, c, b, (size_t)got, text, n, auth))
			return false;
	}
	return true;
}

bool gl_conn_line(struct gl_conn *c, char **line, size_t *n)
{
	uint8_t *end = memchr(c->in, '\n', c->num_in);

	if (!end)
		return false;
	*line = (char *)c->in;
	*n = (size_t)(end - c->in);
	return true;
}

void gl_conn_next_line(struct gl_conn *c, size_t n)
{
	c->num_in -= n + 1;
	memmove(c->in, c->in + n + 1, c->num_in);
}

void gl_conn_send(struct gleam_group *g, struct gl_conn *c, const char *format, ...)
{
	char line[4096];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof line - 1)
		return; /* messages of this host are short: exchange.h's bounds see to it */
	line[n++] = '\n';
	if (!c->tls)
		queue(c, (uint8_t *)line, (size_t)n);
	else
		gl_tls_library(NULL, 0)->write(c->tls, (uint8_t *)line, (size_t)n);
	explicit_bzero(line, sizeof line); /* R_Keys */
	pull(g, c);
}

void gl_conn_refuse(struct gleam_group *g, struct gl_conn *c, const char *why)
{
	char text[1400];

	snprintf(text, sizeof text - 2, "%.1024s", why);
	if (c->state == GL_OPEN) {
		char quoted[2600];

		gl_json_quote(text, quoted, sizeof quoted);
		gl_conn_send(g, c, "{\"v\":2,\"type\":\"error\",\"error\":%s}", quoted);
	} else if (c->server && c->tls && plain_text(c)) {
		static const char old[] = "{\"v\":1,\"type\":\"error\",\"error\":\"this host wants the exchange protected by the group's key: "
			"use the same release on all hosts, and give all of them the key\"}\n";

		queue(c, (const uint8_t *)old, sizeof old - 1);
		gl_conn_flush(g, c);
	}
	gl_conn_close(g, c);
}

int gl_stream(const struct gl_endpoint *e, bool passive)
{
	struct sockaddr_storage s = {0};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&s;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;
	socklen_t len = e->ip.len == 4 ? sizeof *v4 : sizeof *v6;
	int fd, one = 1;

	if (e->ip.len == 4) {
		*v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(e->port)};
		memcpy(&v4->sin_addr, e->ip.b, 4);
	} else {
		*v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(e->port)};
		memcpy(&v6->sin6_addr, e->ip.b, 16);
	}
	fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (passive ? setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 && bind(fd, (struct sockaddr *)&s, len) == 0 && listen(fd, 128) == 0
	            : connect(fd, (struct sockaddr *)&s, len) == 0 || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

bool gl_resolve(const char *host_port, bool passive, struct gl_endpoint **all, size_t *n, char *text, size_t room)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0}, *found, *a;
	const char *colon = strrchr(host_port, ':');
	char host[300];
	int rc;

	*all = NULL;
	*n = 0;
	if (!colon || !colon[1] || colon - host_port >= (int)sizeof host) {
		snprintf(text, room, "address %.100s: want host:port", host_port);
		return false;
	}
	snprintf(host, sizeof host, "%.*s", (int)(colon - host_port), host_port);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = 0;
		memmove(host, host + 1, strlen(host));
	}
	rc = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &found);
	if (rc) {
		snprintf(text, room, "address %.100s: %s", host_port, gai_strerror(rc));
		return false;
	}
	for (a = found; a; a = a->ai_next)
		++*n;
	*all = calloc(*n + !*n, sizeof **all);
	*n = 0;
	for (a = found; *all && a; a = a->ai_next) {
		struct gl_endpoint *e = &(*all)[(*n)++];

		if (a->ai_family == AF_INET) {
			const struct sockaddr_in *v4 = (const struct sockaddr_in *)a->ai_addr;

			e->ip.len = 4;
			memcpy(e->ip.b, &v4->sin_addr, 4);
			e->port = ntohs(v4->sin_port);
		} else if (a->ai_family == AF_INET6) {
			const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a->ai_addr;

			e->ip.len = 16;
			memcpy(e->ip.b, &v6->sin6_addr, 16);
			e->port = ntohs(v6->sin6_port);
		} else
			--*n;
	}
	freeaddrinfo(found);
	return *n > 0;
}
