/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The messages of the registration protocol, docs/PROTOCOL.md, and their bytes.
 * Nothing here knows sockets or clocks. Times are nanoseconds.
 */
#ifndef GLEAM_WIRE_H
#define GLEAM_WIRE_H

#include "bytes.h"

#define GL_DEFAULT_PORT 4797
#define GL_MAX_LEN 2048 /* of a message that a switch takes */
#define GL_MAC_LEN 32
#define GL_MIN_KEY 32
#define GL_MAX_KEY 256
#define GL_MASK24 0xffffffu

enum gl_type {
	GL_REGISTER = 1, GL_LEAVE, GL_DELETE, GL_RENEW, GL_ACCEPT, GL_REJECT, GL_CHALLENGE,
	GL_NOTIFY, GL_CONFIRM, GL_GONE, GL_ACK, GL_WHERE, GL_HERE, GL_NOTICE, GL_TYPES,
};

/* What a Notice says. */
enum gl_notice { GL_NOTICE_STALLED = 1, GL_NOTICE_RESUMED, GL_NOTICE_FAILED, GL_NOTICES };

/* Why an arriving message had no effect, numbered as in package envelope. */
enum gl_drop {
	GL_NO_DROP, GL_TRUNCATED, GL_BAD_MAGIC, GL_BAD_VERSION, GL_BAD_FORMAT, GL_UNAUTHENTICATED, GL_UNKNOWN_KEY,
	GL_BAD_MAC, GL_WRONG_ROLE, GL_WRONG_SOURCE, GL_WRONG_INSTANCE, GL_STALE, GL_DUPLICATE, GL_UNKNOWN_GROUP,
	GL_NOT_FOR_US, GL_UNSOLICITED, GL_PENDING_FULL, GL_REJECTED, GL_OTHER_KEY, GL_DROPS,
};

struct gl_member_key {
	struct gl_addr ip; /* len 0: no member */
	uint32_t qpn;
};

struct gl_mem {
	uint64_t base, len;
	uint32_t rkey;
};

/* A member's connection state, as its application set it up. */
struct gl_record {
	struct gl_addr ip;
	uint32_t qpn, sq_psn, rq_psn;
	struct gl_mem window;
	bool receive_only;
};

#define GL_NEVER_DEAD INT64_MAX /* the dead_after by which a silent member is waited for for ever */

/* The parameters of a whole group: the body of Register and Notify, without records. */
struct gl_params {
	uint8_t policy;
	uint32_t qpn;
	uint16_t path_mtu;
	uint16_t members; /* of the whole group */
	uint64_t dead_after, lease;
	struct gl_mem window;
	uint64_t base;
	uint32_t target_key;
	bool no_repair;
	bool exclusive; /* of a Register alone: no replacement of a group; libgleam sends none */
	uint16_t quorum;
	uint32_t lag_psns;
	uint64_t lag_time;
	uint8_t sender_timeout, sender_retries;
};

struct gl_lost_link {
	uint64_t at, to;
	char port[16];
};

struct gl_message {
	uint8_t type;
	uint16_t key_id;
	bool relay;
	uint8_t hops;
	uint64_t epoch, instance;
	uint32_t transaction;
	uint16_t seq, total;
	struct gl_addr group;
	struct gl_endpoint reply_to;

	/* The body. Each type uses what docs/PROTOCOL.md gives it. */
	struct gl_params params;   /* Register, Notify */
	struct gl_record *records; /* Register, Notify, Renew; of malloc when decoded */
	size_t num_records;
	uint8_t request;  /* Accept, Reject, Challenge */
	uint16_t members; /* Accept */
	uint64_t lease;   /* Renew, Accept */
	struct gl_member_key member; /* Leave, Reject, Confirm, Gone, Notice; Where and Here: without QPN */
	uint8_t reason;   /* Reject; Gone: why; Notice: enum gl_notice */
	uint64_t value;   /* Reject; Challenge: known; Notice: serial */
	uint8_t status;   /* Confirm */
	uint8_t code;     /* Gone, Notice */
	uint32_t qpn, sq_psn, rq_psn; /* Confirm */
	uint32_t psn;     /* Gone, Notice */
	struct gl_lost_link lost; /* Gone */
	uint8_t nonce[16]; /* Where, Here */
};

/* A secret and its id; length 0 means none: messages have no MAC then. */
struct gl_secret {
	uint16_t id;
	uint16_t length;
	uint8_t bytes[GL_MAX_KEY];
};

/* Appends, as far as room goes; overflow is noticed at the end. */
struct gl_writer {
	uint8_t *p;
	size_t n, room;
	bool bad; /* no room, or a field that does not fit */
};

/* Takes fields off the front. What is missing reads as zero and is noticed at the end. */
struct gl_reader {
	const uint8_t *p;
	size_t n;
	bool truncated, malformed;
};

void gl_write(struct gl_writer *w, uint64_t v, int bytes);
void gl_write_bytes(struct gl_writer *w, const void *b, size_t n);
void gl_write_window(struct gl_writer *w, const struct gl_mem *m);
const uint8_t *gl_take(struct gl_reader *r, size_t n);
uint64_t gl_read(struct gl_reader *r, int bytes);
struct gl_mem gl_read_window(struct gl_reader *r);

static inline bool gl_has_window(const struct gl_mem *m)
{
	return m->base || m->len || m->rkey;
}

bool gl_same_window(const struct gl_mem *a, const struct gl_mem *b);
bool gl_same_key(const struct gl_member_key *a, const struct gl_member_key *b);
bool gl_same_record(const struct gl_record *a, const struct gl_record *b);
struct gl_member_key gl_key_of(const struct gl_record *r);

/* How many of the records fit a section of room bytes. */
size_t gl_records_fit(const struct gl_record *rs, size_t n, bool v6, size_t room);
void gl_write_records(struct gl_writer *w, const struct gl_record *rs, size_t n, bool v6);
struct gl_record *gl_read_records(struct gl_reader *r, bool v6, size_t *n);

size_t gl_params_size(const struct gl_params *p);
void gl_write_params(struct gl_writer *w, const struct gl_params *p);
struct gl_params gl_read_params(struct gl_reader *r);

/* Bytes for a body in an IP packet of mtu bytes, MAC or not. */
size_t gl_payload_room(size_t mtu, bool v6);

/* Writes m with the MAC of key, or without one if it has none; 0 if it does not fit. */
size_t gl_encode(uint8_t *b, size_t room, const struct gl_message *m, const struct gl_secret *key);

/* Checks the MAC and decodes. authentic: the fault is in the body alone. The caller frees
 * m->records. Without a key in key, messages without MAC are accepted. */
enum gl_drop gl_decode(const uint8_t *b, size_t n, const struct gl_secret *key, struct gl_message *m);

/* Decodes without a look at the MAC. */
enum gl_drop gl_parse(const uint8_t *b, size_t n, struct gl_message *m);

/* Frees the records of a decoded message. */
void gl_free_records(struct gl_message *m);

enum gl_direction { GL_NO_DIRECTION, GL_TO_SWITCH, GL_FROM_SWITCH, GL_TO_MASTER };
enum gl_direction gl_direction(uint8_t type);

#endif
