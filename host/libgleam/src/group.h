/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A participation in a group: what the functions of gleam.h work on. One mutex
 * guards all of it.
 */
#ifndef GLEAM_GROUP_H
#define GLEAM_GROUP_H

#include <pthread.h>

#include "../gleam.h"
#include "machine.h"

enum gl_stage {
	GL_IDLE,        /* nothing was begun */
	GL_MEETING,     /* what to connect to is not known yet; at a master: its members are not */
	GL_DESCRIBED,   /* the group's parameters are known, and its members at the master */
	GL_REGISTERS,   /* own queue pair and those of the members are connected */
	GL_JOINED_STAGE,
	GL_ENDED_STAGE, /* failed, or over */
};

#define GL_FAILURE 2048

/* What a group is, as its members see it. */
struct gl_info {
	struct gl_addr ip;
	uint32_t qpn, target_key;
	uint16_t path_mtu;
	uint32_t members;
	struct gl_mem window;
};

struct gl_waiting_event {
	struct gl_waiting_event *next;
	struct gleam_event event;
};

struct gl_exchange;

struct gleam_group {
	uintptr_t handle;
	unsigned users; /* calls under way */
	bool destroyed;

	pthread_mutex_t mu;
	pthread_cond_t changed;
	bool polling;    /* a thread waits at the descriptors for all */
	bool has_thread; /* that makes progress */
	pthread_t thread;

	/* From gleam_attr. */
	bool master;
	uint32_t flags, members;
	struct gl_config cfg;
	struct gl_params params;
	struct gl_addr group_ip;
	struct gl_mem window; /* base and length as asked for */
	uint64_t ready_timeout;
	char *exchange_addr;

	int epoll, timer, wake; /* progress is due when epoll is readable */
	int events_fd, poll_fd; /* readable while events wait; what gleam_fd returns */
	int member_fd, master_fd;

	enum gl_stage stage;
	bool connected; /* own queue pair */
	bool joined;    /* it has been in the group */
	int failed_by;  /* errno of the failure */
	char failure[GL_FAILURE];
	int send_errno; /* of the last packet that could not be sent */

	struct gl_record self;
	struct gl_info info;
	struct gl_record *peers; /* master: the other members */
	size_t num_peers, room_peers;

	struct gl_member mem;
	struct gl_master mas;
	bool has_mas;
	struct gl_output out;
	struct gl_exchange *exchange; /* the built-in one, while it is under way */

	struct gl_waiting_event *first, *last;
	size_t num_events;

	enum { GL_NOTHING, GL_UNDER_WAY, GL_DONE, GL_REFUSED } changing, leaving; /* an update, a leave */
	struct gl_addr removing;
	char outcome[GL_TEXT]; /* of one that was refused */
};

uint64_t gl_now(void);

/* The text that gleam_error() returns. gl_error returns -number. */
void gl_clear_error(void);
int gl_error(int number, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* attr.c: NULL and an error if attr is not fit. */
struct gleam_group *gl_group_new(const struct gleam_attr *attr);
int gl_check_qp(const struct gleam_qp *qp, const struct gleam_mr *mr, struct gl_record *r);

/* handle.c: a group stays while it is in use. */
uintptr_t gl_handle_add(struct gleam_group *g);
struct gleam_group *gl_handle_use(uintptr_t handle); /* locked */
void gl_handle_done(struct gleam_group *g);          /* unlocks */
void gl_handle_remove(struct gleam_group *g);        /* locked: no new users; waits for the present ones */

/* loop.c */
bool gl_loop_open(struct gleam_group *g);
void gl_loop_close(struct gleam_group *g);
bool gl_watch(struct gleam_group *g, int fd, uint32_t events, uint64_t tag);
void gl_rewatch(struct gleam_group *g, int fd, uint32_t events, uint64_t tag);
void gl_progress(struct gleam_group *g);
/* Makes progress until done, or the deadline; false: it is over first. */
bool gl_wait_until(struct gleam_group *g, bool (*done)(const struct gleam_group *), uint64_t deadline);
void gl_changed(struct gleam_group *g);
bool gl_start_thread(struct gleam_group *g);
void gl_stop_thread(struct gleam_group *g);
void gl_signal_events(struct gleam_group *g);

enum { GL_TAG_TIMER = 1, GL_TAG_WAKE, GL_TAG_MEMBER, GL_TAG_MASTER, GL_TAG_LISTEN, GL_TAG_CONN };

/* udp.c: false, and why in g->failure's words in text. */
bool gl_bind(const struct gl_endpoint *at, int *fd, char *text, size_t n);
/* false: the loopback interface is down, by which a host reaches its own addresses. */
bool gl_check_loopback(char *text, size_t n);
struct gl_endpoint gl_local_of(int fd);
struct gl_endpoint gl_peer_of(int fd);
void gl_connect_member(struct gleam_group *g);
void gl_receive(struct gleam_group *g, int fd, bool master);
void gl_flush(struct gleam_group *g, int fd);

/* session.c */
int gl_begin(struct gleam_group *g, const struct gl_record *self);
void gl_described(struct gleam_group *g);
bool gl_prepare(struct gleam_group *g, char *text, size_t n);
void gl_register(struct gleam_group *g);
void gl_is_joined(struct gleam_group *g);
void gl_take_output(struct gleam_group *g, bool master);
void gl_fail(struct gleam_group *g, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gl_give_up(struct gleam_group *g, int number, const char *cause);
void gl_release(struct gleam_group *g);
struct gleam_event *gl_report(struct gleam_group *g, enum gleam_event_kind kind);
/* Reports e if the group stalls, or goes on; false if e is another event. */
bool gl_delayed(struct gleam_group *g, bool by_master, const struct gl_event *e);
bool gl_add_peer(struct gleam_group *g, const struct gl_record *r);

/* exchange.c: the exchange over TCP. */
bool gl_exchange_start(struct gleam_group *g);
void gl_exchange_event(struct gleam_group *g, uint64_t tag, uint32_t events);
void gl_exchange_advance(struct gleam_group *g, uint64_t now);
uint64_t gl_exchange_deadline(const struct gleam_group *g);
void gl_exchange_ready(struct gleam_group *g);  /* own queue pair is connected */
void gl_exchange_joined(struct gleam_group *g); /* tells the members, and ends */
void gl_exchange_end(struct gleam_group *g, const char *failure); /* NULL: all is well */
/* What it waits for, and why that ended. */
void gl_exchange_missing(const struct gleam_group *g, const char *cause, char *text, size_t n);

#endif
