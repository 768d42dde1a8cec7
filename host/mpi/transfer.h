/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What stream.c offers to transfer.c.
 */
#ifndef GLEAM_MPI_TRANSFER_H
#define GLEAM_MPI_TRANSFER_H

#include "stream.h"

enum {
	SENDS = AHEAD + 1 + IN_FLIGHT,
	RECEIVES = 2 * AHEAD + 1 + DEPTH,
};

int post_receive(struct stream *s, void *to, uint32_t length, uint32_t lkey, char *why, size_t room);
int post_slot(struct stream *s, uint32_t i, char *why, size_t room);
int post_send(struct stream *s, const void *from, uint32_t length, uint32_t lkey, char *why, size_t room);
/* Waits until the first n SENDs of the stream are complete. */
int wait_sent(struct stream *s, uint64_t n, char *why, size_t room);
/* Waits for the next message. */
int wait_received(struct stream *s, uint32_t *length, char *why, size_t room);

#endif
