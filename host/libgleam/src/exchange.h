/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The exchange over TCP, docs/EXCHANGE.md: connections, and messages on them.
 */
#ifndef GLEAM_EXCHANGE_H
#define GLEAM_EXCHANGE_H

#include "channel.h"
#include "group.h"

#define GL_USE "gleam-oob/2"
#define GL_MAX_LINE (64 << 10)
#define GL_CONN_TEXT 400

enum gl_conn_state { GL_DIALING, GL_SHAKING, GL_ADMISSION, GL_OPEN };

struct gl_conn {
	struct gl_conn *next;
	int fd;
	uint64_t tag, deadline;
	enum gl_conn_state state;
	bool server, first_byte; /* first_byte: one has come */
	struct gl_endpoint other;
	struct gl_tls *tls;
	uint8_t *in, *out;
	size_t num_in, num_out, room_out;
	bool want_out; /* epoll watches for room to send */

	/* Master. */
	bool peer, ready; /* it has said hello; its queue pair is connected */
	struct gl_record who;
};

/* Connections of an address that were refused. */
struct gl_refusal {
	struct gl_addr from;
	uint64_t count, second, in_second;
	char first[GL_CONN_TEXT];
};

#define GL_REFUSERS 64

struct gl_exchange {
	uint8_t seed[32];
	struct gl_conn *conns; /* the oldest first */
	uint64_t last_tag;

	/* Master. */
	int listen_fd;
	struct gl_endpoint at;
	bool all_here, described;
	uint64_t ready_deadline;
	struct gl_refusal *refusals;
	size_t num_refusals, more_refusals;

	/* Member. */
	struct gl_endpoint *addrs;
	size_t num_addrs, next_addr;
	bool admitted, known;
	uint64_t pause, try_at, auth_until; /* GL_NEVER: not set */
	char last[GL_CONN_TEXT];            /* why the last attempt failed */
	bool last_is_auth;
};

enum gl_heard { GL_HEARD_NOTHING, GL_HEARD_LINE, GL_HEARD_END };

/* conn.c. What fails says why in text; auth: the other side has not proved the key. */
struct gl_conn *gl_conn_new(struct gleam_group *g, int fd, bool server, const struct gl_endpoint *other);
void gl_conn_close(struct gleam_group *g, struct gl_conn *c);
bool gl_conn_connected(struct gleam_group *g, struct gl_conn *c, char *text, size_t n);
bool gl_conn_input(struct gleam_group *g, struct gl_conn *c, char *text, size_t n, bool *auth);
bool gl_conn_line(struct gl_conn *c, char **line, size_t *n); /* the first whole line */
void gl_conn_next_line(struct gl_conn *c, size_t n);
void gl_conn_send(struct gleam_group *g, struct gl_conn *c, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gl_conn_refuse(struct gleam_group *g, struct gl_conn *c, const char *why);
/* No input is taken until it is resumed. */
void gl_conn_pause(struct gleam_group *g, struct gl_conn *c);
void gl_conn_resume(struct gleam_group *g, struct gl_conn *c);
void gl_conn_flush(struct gleam_group *g, struct gl_conn *c);
const struct gl_tls_functions *gl_tls_library(char *text, size_t n);
bool gl_resolve(const char *host_port, bool passive, struct gl_endpoint **all, size_t *n, char *text, size_t room);
int gl_stream(const struct gl_endpoint *e, bool passive); /* a socket that connects, or listens; -1 and errno */

/* message.c */
struct gl_said {
	char type[24], error[1100];
	struct gl_record member; /* hello */
	struct gl_info group;    /* group */
};
/* False, and what is wrong with it in text. */
bool gl_message_read(const char *line, size_t n, struct gl_said *m, char *text, size_t room);
void gl_send_hello(struct gleam_group *g, struct gl_conn *c);
void gl_send_group(struct gleam_group *g, struct gl_conn *c);
void gl_send_word(struct gleam_group *g, struct gl_conn *c, const char *type);

/* exchange_master.c, exchange_member.c */
bool gl_listen(struct gleam_group *g);
void gl_accept(struct gleam_group *g);
void gl_master_conn(struct gleam_group *g, struct gl_conn *c);
void gl_master_advance_exchange(struct gleam_group *g, uint64_t now);
void gl_master_missing(const struct gleam_group *g, const char *cause, char *text, size_t n);
void gl_describe_all(struct gleam_group *g);
bool gl_dial(struct gleam_group *g);
void gl_member_conn(struct gleam_group *g, struct gl_conn *c);
void gl_member_advance_exchange(struct gleam_group *g, uint64_t now);
void gl_member_missing(const struct gleam_group *g, const char *cause, char *text, size_t n);

#endif
