/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The two state machines of a host: a member, which confirms what the switch has
 * registered, and a master, which registers a group and keeps it. Packets and the
 * time go in, packets and events come out; there are no sockets, clocks or threads.
 * They do what package envelope does, packet by packet: host/libgleam/test compares.
 */
#ifndef GLEAM_MACHINE_H
#define GLEAM_MACHINE_H

#include "wire.h"

#define GL_SECOND 1000000000ull
#define GL_MS 1000000ull
#define GL_NEVER UINT64_MAX

enum gl_event_kind {
	GL_SWITCH_ACCEPTED = 1, GL_MEMBER_CONFIRMED, GL_REGISTERED, GL_REGISTRATION_FAILED, GL_MEMBER_GONE,
	GL_GROUP_GONE, GL_LEAVE_FAILED, GL_MEMBER_JOINED, GL_UPDATED, GL_UPDATE_FAILED, GL_STALLED, GL_RESUMED,
};

enum gl_end_reason {
	GL_NOT_ENDED, GL_DELETED, GL_EXPIRED, GL_REPLACED, GL_LEFT_BY_REQUEST, GL_REMOVED, GL_END_EVICTED, GL_GROUP_FAILED,
	GL_SWITCH_LOST, GL_WITHDRAWN, GL_FORGOTTEN,
};

enum gl_status {
	GL_CONFIRMED, GL_NOT_JOINED, GL_QPN_MISMATCH, GL_SQ_PSN_MISMATCH, GL_RQ_PSN_MISMATCH, GL_VIRTUAL_QPN_MISMATCH,
	GL_PATH_MTU_MISMATCH, GL_WINDOW_MISMATCH,
};

/* Reasons of a Reject that the machines act upon; reason.c has words for all. */
enum {
	GL_PROBLEM_PATH_MTU = 2, GL_PROBLEM_AUTHENTICATION = 4, GL_PROBLEM_OVERLAP = 5, GL_PROBLEM_STALE_EPOCH = 6, GL_PROBLEM_EPOCH_CONFLICT = 7,
	GL_PROBLEM_WINDOW = 8, GL_PROBLEM_PREFIX = 9, GL_PROBLEM_MALFORMED = 10, GL_PROBLEM_TOO_FEW = 12, GL_PROBLEM_FAMILY = 13,
	GL_PROBLEM_MEMBER = 14, GL_PROBLEM_VIRTUAL_QPN = 15, GL_PROBLEM_UNKNOWN_GROUP = 16, GL_PROBLEM_MEMBERS_CHANGED = 19,
	GL_PROBLEM_POLICY = 21, GL_PROBLEM_DEAD_AFTER = 22, GL_PROBLEM_STALE_TRANSACTION = 24, GL_PROBLEM_NO_SENDER = 30,
};

/* Values of GL_PROBLEM_MEMBER and GL_PROBLEM_OVERLAP that a master finds itself. */
enum { GL_FAULT_ADDRESS = 1, GL_FAULT_GROUP = 2, GL_FAULT_QPN = 4, GL_OVERLAP_HERE = 1 };

/* A fault of a registration; reason 0 is none. */
struct gl_problem {
	uint8_t reason;
	struct gl_member_key member;
	uint64_t value;
};

#define GL_TEXT 1024

struct gl_event {
	enum gl_event_kind kind;
	uint64_t epoch;
	struct gl_member_key member;
	uint8_t end_reason, status, code;
	uint32_t psn;
	size_t done, total;
	uint64_t lease;
	struct gl_problem problem; /* of a failure by a Reject */
	char text[GL_TEXT];        /* the cause of a failure, or "" */
};

struct gl_packet {
	struct gl_endpoint to;
	size_t n;
	uint8_t b[GL_MAX_LEN];
};

/* What a call brings. A packet or event that finds no memory is lost: the machines
 * repeat packets; lost is counted. */
struct gl_output {
	struct gl_packet *packets;
	size_t num_packets, room_packets;
	struct gl_event *events;
	size_t num_events, room_events;
	enum gl_drop drop;
	size_t lost;
};

void gl_output_reset(struct gl_output *o);
void gl_output_free(struct gl_output *o);
struct gl_event *gl_add_event(struct gl_output *o, enum gl_event_kind kind);

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t gl_random(uint64_t *state);

/* Waits between retransmissions: twice the one before, with a jitter of a quarter. */
struct gl_backoff {
	uint64_t next, wait;
};

void gl_backoff_start(struct gl_backoff *b, uint64_t now, uint64_t min, uint64_t *random);
void gl_backoff_retry(struct gl_backoff *b, uint64_t now, uint64_t max, uint64_t *random);

struct gl_config {
	struct gl_endpoint local; /* the source of all packets */
	uint16_t port;            /* of the switch */
	struct gl_secret key;
	uint64_t seed;
	size_t mtu;               /* master: of IP packets */
	uint64_t retry_min, retry_max, deadline;
	uint64_t ask_every;    /* member: between two questions whether the switch still knows the group; 0: none */
	uint64_t renew_within; /* master: between two Renews at most; 0: a third of the lease */
};

/* Fills in what is 0. */
void gl_config_defaults(struct gl_config *c);

/* Sends m, whose key is c's. */
void gl_send(const struct gl_config *c, const struct gl_endpoint *to, struct gl_message *m, struct gl_output *o);

/* What a member's queue pair is set up for. */
struct gl_membership {
	struct gl_addr group;
	uint32_t virtual_qpn, qpn, sq_psn, rq_psn;
	uint16_t path_mtu;
	struct gl_mem window;
};

struct gl_member {
	struct gl_config cfg;
	uint64_t random, drops[GL_DROPS];
	uint32_t last_transaction;
	struct gl_membership is;
	uint64_t epoch; /* newest that was confirmed; 0: none */
	uint64_t instance, refused, deadline, unauthentic_at_join;
	uint64_t notice; /* serial of the newest Notice */
	struct gl_question {
		struct gl_backoff timer; /* next is 0 if nothing is asked */
		uint64_t every;
		uint32_t transaction; /* of the one under way; valid if asked */
		bool asked;
		unsigned int unknown; /* answers in a row that the group is unknown */
	} question;
	bool joined, ended, leaving;
	uint8_t status; /* of the latest refusal */
	uint32_t transaction;
	struct gl_backoff retry;
};

void gl_member_init(struct gl_member *m, const struct gl_config *cfg);
void gl_member_join(struct gl_member *m, const struct gl_membership *is);
void gl_member_input(struct gl_member *m, uint64_t now, const struct gl_endpoint *from, const uint8_t *b, size_t n, struct gl_output *o);
void gl_member_advance(struct gl_member *m, uint64_t now, struct gl_output *o);
void gl_member_leave(struct gl_member *m, uint64_t now, struct gl_output *o);
uint64_t gl_member_deadline(const struct gl_member *m); /* GL_NEVER: none */
/* Writes why the group is not registered with this member, as far as it knows; false if it does not. */
bool gl_member_problem(const struct gl_member *m, char *text, size_t n);

struct gl_registration {
	struct gl_addr group;
	uint64_t epoch; /* 0: the one after the newest that the switch knows */
	struct gl_params params; /* .members is not used, .base is that of an update */
	struct gl_record *records;
	size_t num;
};

/* The first fault of r; reason 0 is none. */
struct gl_problem gl_validate(const struct gl_registration *r);

/* A fault of a group's parameters: the field of struct gleam_attr, and the text about it.
 * field is NULL if the parameters are valid. gl_check_params returns the first one; some
 * parameters are bounded by the number of receivers. */
struct gl_fault {
	const char *field;
	char text[200];
	bool conflict;  /* fields that do not fit each other */
	uint64_t bound; /* of dead_after */
};
struct gl_fault gl_check_params(const struct gl_params *p, size_t receivers);
bool gl_valid_qpn(uint32_t qpn);
unsigned gl_path_mtu_code(uint32_t bytes); /* 1 to 5; 0: it is none */
bool gl_valid_window(const struct gl_mem *w);
uint64_t gl_ack_timeout(uint8_t exponent);

enum gl_phase { GL_CREATED, GL_REGISTERING, GL_CONFIRMING, GL_IN_GROUP, GL_OVER };

struct gl_request {
	uint8_t type; /* GL_LEAVE, GL_DELETE */
	struct gl_member_key member;
	uint32_t transaction;
	struct gl_backoff retry;
	uint64_t deadline;
	bool unreported;
};

struct gl_update {
	bool on;
	struct gl_registration reg;
	uint32_t transaction;
	uint64_t started, sent;
	struct gl_backoff retry;
};

struct gl_master {
	struct gl_config cfg;
	uint64_t random, drops[GL_DROPS];
	struct gl_registration reg;
	uint64_t lease; /* as asked for */
	bool auto_epoch;
	enum gl_phase phase;
	struct gl_endpoint switch_addr;
	uint64_t instance, register_sent, deadline;
	uint32_t last_transaction, register_tx, renew_tx;
	bool auth_hint, renewing, joiners;
	uint8_t *confirmed, *gone; /* of reg.records */
	size_t next_record;        /* first of the next Renew's list */
	struct gl_backoff retry;
	uint64_t renew_sent, lease_until, used_epoch;
	uint64_t notice; /* serial of the newest Notice */
	struct gl_request *requests;
	size_t num_requests, room_requests;
	struct gl_update update;
};

/* Prepares to register reg, of which it keeps a copy. False, and why in text, if the
 * registration is faulty or there is no memory. */
bool gl_master_init(struct gl_master *m, const struct gl_config *cfg, const struct gl_registration *reg, char *text, size_t n);
void gl_master_free(struct gl_master *m);
void gl_master_start(struct gl_master *m, uint64_t now, struct gl_output *o);
void gl_master_input(struct gl_master *m, uint64_t now, const struct gl_endpoint *from, const uint8_t *b, size_t n, struct gl_output *o);
void gl_master_advance(struct gl_master *m, uint64_t now, struct gl_output *o);
uint64_t gl_master_deadline(const struct gl_master *m);
/* The outcomes are events. False, and why in text, if it cannot begin. */
bool gl_master_leave(struct gl_master *m, uint64_t now, const struct gl_member_key *k, struct gl_output *o, char *text, size_t n);
bool gl_master_update(struct gl_master *m, uint64_t now, const struct gl_record *rs, size_t num, struct gl_output *o, char *text, size_t n);
void gl_master_delete(struct gl_master *m, uint64_t now, struct gl_output *o);
bool gl_master_ended(const struct gl_master *m);
/* The records of those that are still in the group, in memory of the caller, num of them at most. */
size_t gl_master_members(const struct gl_master *m, struct gl_record *rs, size_t num);
/* What it is waiting for, as if its deadline were now; false if for nothing. */
bool gl_master_unfinished(const struct gl_master *m, uint64_t now, char *text, size_t n);

/* Words: reason.c. */
const char *gl_end_reason_text(uint8_t reason);
const char *gl_status_text(uint8_t status);
void gl_cause_text(uint8_t code, char *text, size_t n);
void gl_problem_text(const struct gl_problem *p, char *text, size_t n);
void gl_duration_text(uint64_t ns, char *text, size_t n); /* "1.5s" */
void gl_no_answer_text(const char *action, const struct gl_addr *group, uint64_t after, char *text, size_t n);
void gl_key_text(const struct gl_member_key *k, char *text, size_t n);

#endif
