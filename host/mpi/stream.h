/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts over one queue pair that is connected to a group. Every broadcast is a
 * fixed sequence of SENDs, which finds the receives for it at every member:
 *
 *     short  header and payload in one message, into a receive posted ahead
 *     long   a header and empty messages, into all receives posted ahead; an empty
 *            message, whose acknowledgement says that every member has come; then
 *            the payload, into receives in the members' own buffers
 *
 * AHEAD receives are posted at every member between two broadcasts.
 */
#ifndef GLEAM_MPI_STREAM_H
#define GLEAM_MPI_STREAM_H

#include <stdint.h>

#include "device.h"
#include "gleam.h"
#include "plan.h"

/* How a thread waits for a completion: it polls, and after spin microseconds without one it sleeps. */
struct wait_policy {
	uint32_t spin; /* us */
	int nap;       /* ms, the longest sleep */
	/* Called between two polls, and with slept set after each sleep. Another result than 0 ends the wait, with the reason in why. */
	int (*idle)(void *arg, int slept, char *why, size_t room);
	void *arg;
};

struct stream {
	struct device *device;
	struct ibv_comp_channel *channel; /* of both queues, wakes who sleeps */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;       /* of memory */
	unsigned char *memory;   /* AHEAD slots to receive into, then AHEAD to send from */
	struct gleam_qp numbers; /* as the group knows the queue pair */
	uint32_t max_msg;        /* bytes, of all members */
	uint64_t posted, done;   /* SENDs */
	uint64_t used[AHEAD];    /* the SEND that used a slot, counted from 1 */
	uint32_t slot;           /* next to receive into */
	uint32_t sequence;       /* of the next broadcast */
	uint64_t broadcasts, bytes;
	struct wait_policy wait_policy; /* of the thread that has the stream */
};

/* All return 0, or -1 with the reason in why. */
int stream_open(struct stream *s, struct device *d, char *why, size_t room);
int stream_connect(struct stream *s, const struct gleam_peer *peer, int timeout, char *why, size_t room);
int stream_send(struct stream *s, const void *buffer, uint64_t bytes, uint32_t rank, char *why, size_t room);
int stream_receive(struct stream *s, void *buffer, uint64_t bytes, uint32_t root, char *why, size_t room);
/* Waits until all members have all that was sent. */
int stream_drain(struct stream *s, char *why, size_t room);
/* After a failure: a message that comes into a receive that is still posted is an error, at its root too. */
void stream_abort(struct stream *s);
void stream_close(struct stream *s);

#endif
