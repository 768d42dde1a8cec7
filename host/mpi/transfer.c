/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One broadcast, at its root and at the others.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "transfer.h"

/* A user's buffer as registered memory: itself, or a copy where it cannot be registered,
 * as read-only memory cannot be on some devices. */
struct loan {
	struct ibv_mr *mr;
	unsigned char *at, *copy;
};

static int borrow(struct stream *s, struct loan *l, void *buffer, uint64_t bytes, int access, char *why, size_t room)
{
	l->copy = NULL;
	l->at = buffer;
	l->mr = registry_take(s->device->pd, buffer, bytes, access);
	if (l->mr)
		return 0;
	l->at = l->copy = malloc(bytes);
	if (l->copy && !access)
		memcpy(l->copy, buffer, bytes);
	if (l->copy)
		l->mr = registry_take(s->device->pd, l->copy, bytes, access);
	if (l->mr)
		return 0;
	snprintf(why, room, "registering %llu bytes: %s (ulimit -l?)", (unsigned long long)bytes, strerror(errno));
	free(l->copy);
	return -1;
}

/* After a failure there may be receives into the buffer, which the program has from now on. */
static void give_back(struct loan *l, int failed)
{
	if (failed)
		registry_drop(l->mr);
	else
		registry_give(l->mr);
	free(l->copy);
}

/* The first message, from a slot that no earlier SEND needs any more. */
static int send_first(struct stream *s, const void *payload, uint32_t length, const struct header *h, char *why, size_t room)
{
	uint32_t i = h->sequence % AHEAD;
	unsigned char *slot = s->memory + (AHEAD + i) * SLOT;

	if (wait_sent(s, s->used[i], why, room))
		return -1;
	header_write(slot, h);
	if (length)
		memcpy(slot + HEADER, payload, length);
	if (post_send(s, slot, HEADER + length, s->mr->lkey, why, room))
		return -1;
	s->used[i] = s->posted;
	return 0;
}

static int send_segments(struct stream *s, const struct loan *l, uint64_t bytes, char *why, size_t room)
{
	for (int i = 0; i < AHEAD; i++) /* AHEAD - 1 for the other slots, and the one that is waited for */
		if (post_send(s, NULL, 0, 0, why, room))
			return -1;
	if (wait_sent(s, s->posted, why, room))
		return -1;
	for (uint64_t i = 0, n = segments(bytes, s->max_msg); i < n; i++) {
		if (s->posted - s->done >= IN_FLIGHT && wait_sent(s, s->posted - IN_FLIGHT + 1, why, room))
			return -1;
		if (post_send(s, l->at + i * s->max_msg, segment_length(bytes, s->max_msg, i), l->mr->lkey, why, room))
			return -1;
	}
	return wait_sent(s, s->posted, why, room);
}

int stream_send(struct stream *s, const void *buffer, uint64_t bytes, uint32_t rank, char *why, size_t room)
{
	struct header h = {.sequence = s->sequence++, .root = rank, .bytes = bytes};
	struct loan l;
	int rc;

	s->broadcasts++;
	s->bytes += bytes;
	if (bytes <= EAGER)
		return send_first(s, buffer, bytes, &h, why, room);
	if (borrow(s, &l, (void *)buffer, bytes, 0, why, room))
		return -1;
	rc = send_first(s, NULL, 0, &h, why, room);
	if (!rc)
		rc = send_segments(s, &l, bytes, why, room);
	give_back(&l, rc);
	return rc;
}

/* Takes the first message; it leaves the slot to the caller. */
static int receive_first(struct stream *s, const struct header *want, uint32_t payload, unsigned char **slot, char *why, size_t room)
{
	struct header got;
	uint32_t length;

	if (wait_received(s, &length, why, room))
		return -1;
	*slot = s->memory + s->slot * SLOT;
	memset(&got, 0, sizeof got);
	if (length >= HEADER)
		header_read(&got, *slot);
	if (length != HEADER + payload || got.sequence != want->sequence || got.root != want->root || got.bytes != want->bytes) {
		snprintf(why, room, "this rank takes part in broadcast %u of root %u, %llu bytes; root %u sent broadcast %u, %llu bytes (%u came)",
		         want->sequence, want->root, (unsigned long long)want->bytes, got.root, got.sequence, (unsigned long long)got.bytes, length);
		return -1;
	}
	return 0;
}

static int receive_short(struct stream *s, void *buffer, const struct header *want, char *why, size_t room)
{
	unsigned char *slot;
	uint32_t i = s->slot;

	if (receive_first(s, want, want->bytes, &slot, why, room))
		return -1;
	memcpy(buffer, slot + HEADER, want->bytes);
	s->slot = (i + 1) % AHEAD;
	return post_slot(s, i, why, room);
}

static int wait_length(struct stream *s, uint64_t want, char *why, size_t room)
{
	uint32_t length;

	if (wait_received(s, &length, why, room))
		return -1;
	if (length == want)
		return 0;
	snprintf(why, room, "a message of %u bytes came in place of one of %llu", length, (unsigned long long)want);
	return -1;
}

static int post_segment(struct stream *s, const struct loan *l, uint64_t bytes, uint64_t i, char *why, size_t room)
{
	return post_receive(s, l->at + i * s->max_msg, segment_length(bytes, s->max_msg, i), l->mr->lkey, why, room);
}

/* Posts the slots for the broadcasts to come, when a long one has used them all. */
static int post_ahead(struct stream *s, char *why, size_t room)
{
	for (uint32_t k = 0; k < AHEAD; k++)
		if (post_slot(s, (s->slot + k) % AHEAD, why, room))
			return -1;
	return 0;
}

static int receive_long(struct stream *s, const struct loan *l, const struct header *want, char *why, size_t room)
{
	uint64_t n = segments(want->bytes, s->max_msg), posted = 0;
	unsigned char *slot;

	/* This is the receive that the root waits for. The segments' come behind it, since a queue
	 * has one order, and the root's first segment a round trip later. */
	if (post_receive(s, NULL, 0, 0, why, room))
		return -1;
	for (; posted < n && posted < DEPTH; posted++)
		if (post_segment(s, l, want->bytes, posted, why, room))
			return -1;
	if (receive_first(s, want, 0, &slot, why, room))
		return -1;
	for (int i = 0; i < AHEAD; i++)
		if (wait_length(s, 0, why, room))
			return -1;
	if (posted == n && post_ahead(s, why, room))
		return -1;
	for (uint64_t i = 0; i < n; i++) {
		if (wait_length(s, segment_length(want->bytes, s->max_msg, i), why, room))
			return -1;
		if (posted == n)
			continue;
		if (post_segment(s, l, want->bytes, posted, why, room) || (++posted == n && post_ahead(s, why, room)))
			return -1;
	}
	return 0;
}

int stream_receive(struct stream *s, void *buffer, uint64_t bytes, uint32_t root, char *why, size_t room)
{
	struct header want = {.sequence = s->sequence++, .root = root, .bytes = bytes};
	struct loan l;
	int rc;

	s->broadcasts++;
	s->bytes += bytes;
	if (bytes <= EAGER)
		return receive_short(s, buffer, &want, why, room);
	if (borrow(s, &l, buffer, bytes, IBV_ACCESS_LOCAL_WRITE, why, room))
		return -1;
	rc = receive_long(s, &l, &want, why, room);
	if (!rc && l.copy)
		memcpy(buffer, l.copy, bytes);
	give_back(&l, rc);
	return rc;
}
