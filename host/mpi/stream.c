/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The queue pair, and waiting for its completions.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "transfer.h"

int stream_open(struct stream *s, struct device *d, char *why, size_t room)
{
	struct ibv_qp_init_attr make = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
	int rc;

	s->device = d;
	s->max_msg = d->max_msg;
	errno = 0;
	if (posix_memalign((void **)&s->memory, 4096, 2 * AHEAD * SLOT))
		s->memory = NULL;
	if (s->memory)
		s->mr = ibv_reg_mr(d->pd, s->memory, 2 * AHEAD * SLOT, IBV_ACCESS_LOCAL_WRITE);
	s->channel = ibv_create_comp_channel(d->verbs.context);
	if (s->channel)
		s->send_cq = ibv_create_cq(d->verbs.context, SENDS, NULL, s->channel, 0);
	if (s->send_cq)
		s->recv_cq = ibv_create_cq(d->verbs.context, RECEIVES, NULL, s->channel, 0);
	make.send_cq = s->send_cq;
	make.recv_cq = s->recv_cq;
	if (s->mr && s->recv_cq)
		s->qp = ibv_create_qp(d->pd, &make);
	if (!s->qp) {
		snprintf(why, room, "no queue pair: %s", strerror(errno));
		return -1;
	}
	rc = gleam_verbs_init(&d->verbs, s->qp, &s->numbers);
	if (rc < 0)
		snprintf(why, room, "queue pair to INIT: %s", strerror(-rc));
	return rc < 0 ? -1 : 0;
}

int stream_connect(struct stream *s, const struct gleam_peer *peer, int timeout, char *why, size_t room)
{
	struct gleam_verbs v = s->device->verbs;

	v.timeout = timeout;
	if (gleam_verbs_rts(&v, s->qp, &s->numbers, peer, why, room) < 0)
		return -1;
	for (uint32_t i = 0; i < AHEAD; i++)
		if (post_slot(s, i, why, room))
			return -1;
	return 0;
}

int post_receive(struct stream *s, void *to, uint32_t length, uint32_t lkey, char *why, size_t room)
{
	struct ibv_sge sge = {.addr = (uintptr_t)to, .length = length, .lkey = lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = length > 0};
	int rc = ibv_post_recv(s->qp, &wr, &bad);

	if (rc)
		snprintf(why, room, "posting a receive of %u bytes: %s", length, strerror(rc));
	return rc ? -1 : 0;
}

int post_slot(struct stream *s, uint32_t i, char *why, size_t room)
{
	return post_receive(s, s->memory + i * SLOT, SLOT, s->mr->lkey, why, room);
}

/* Requests an event for the next completion of either queue. */
static int arm(struct stream *s, char *why, size_t room)
{
	int rc = ibv_req_notify_cq(s->send_cq, 0);

	if (!rc)
		rc = ibv_req_notify_cq(s->recv_cq, 0);
	if (rc)
		snprintf(why, room, "the completion queues give no events: %s", strerror(rc));
	return rc ? -1 : 0;
}

/* Sleeps until an event comes, for ms milliseconds at most. */
static void sleep_until_event(struct stream *s, int ms)
{
	struct pollfd p = {.fd = s->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	for (; poll(&p, 1, ms) == 1 && !ibv_get_cq_event(s->channel, &cq, &context); ms = 0)
		ibv_ack_cq_events(cq, 1);
}

/* What a thread does between two polls that found nothing. */
struct wait {
	enum { BEGINS, SPINS, ARMED } state;
	int64_t spun; /* us, when it has polled for long enough */
};

/* An event may have come before the queues were armed: they are polled once more before the sleep. */
static int spin_or_sleep(struct stream *s, struct wait *w, char *why, size_t room)
{
	const struct wait_policy *p = &s->wait_policy;

	switch (w->state) {
	case BEGINS:
		w->spun = now_us() + p->spin;
		w->state = SPINS; /* fall through */
	case SPINS:
		if (now_us() < w->spun)
			return p->idle(p->arg, 0, why, room);
		w->state = ARMED;
		return arm(s, why, room);
	case ARMED:
		sleep_until_event(s, p->nap);
		w->state = SPINS;
		return p->idle(p->arg, 1, why, room);
	}
	return 0;
}

/* Waits for the next completion of a queue. */
static int complete(struct stream *s, struct ibv_cq *cq, struct ibv_wc *wc, const char *what, char *why, size_t room)
{
	struct wait w = {BEGINS};

	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0 || (n > 0 && wc->status != IBV_WC_SUCCESS)) {
			snprintf(why, room, "%s: %s", what, n < 0 ? "the completion queue fails" : ibv_wc_status_str(wc->status));
			return -1;
		}
		if (n > 0)
			return 0;
		if (spin_or_sleep(s, &w, why, room))
			return -1;
	}
}

int wait_sent(struct stream *s, uint64_t n, char *why, size_t room)
{
	struct ibv_wc wc;

	for (; s->done < n; s->done++)
		if (complete(s, s->send_cq, &wc, "sending to the group (gleam group show GROUP_IP at the switch names the member that it waits for)", why, room))
			return -1;
	return 0;
}

int post_send(struct stream *s, const void *from, uint32_t length, uint32_t lkey, char *why, size_t room)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = length, .lkey = lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = length > 0, .opcode = IBV_WR_SEND};
	int rc;

	if (s->posted >= SENDS && wait_sent(s, s->posted - SENDS + 1, why, room))
		return -1;
	rc = ibv_post_send(s->qp, &wr, &bad);
	if (rc) {
		snprintf(why, room, "posting a SEND of %u bytes: %s", length, strerror(rc));
		return -1;
	}
	s->posted++;
	return 0;
}

int wait_received(struct stream *s, uint32_t *length, char *why, size_t room)
{
	struct ibv_wc wc;

	if (complete(s, s->recv_cq, &wc, "receiving from the group", why, room))
		return -1;
	*length = wc.byte_len;
	return 0;
}

int stream_drain(struct stream *s, char *why, size_t room)
{
	return wait_sent(s, s->posted, why, room);
}

/* By a NAK, for which the queue pair has to live: roots whose messages are not answered at all may repeat them
 * for ever, as soft-RoCE does. */
void stream_abort(struct stream *s)
{
	if (s->mr)
		ibv_dereg_mr(s->mr);
	s->mr = NULL;
}

void stream_close(struct stream *s)
{
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->recv_cq)
		ibv_destroy_cq(s->recv_cq);
	if (s->send_cq)
		ibv_destroy_cq(s->send_cq);
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	if (s->mr)
		ibv_dereg_mr(s->mr);
	free(s->memory);
	s->qp = NULL;
	s->recv_cq = s->send_cq = NULL;
	s->channel = NULL;
	s->mr = NULL;
	s->memory = NULL;
}
