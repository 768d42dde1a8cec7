/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The queue pair, and waiting for its completions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "transfer.h"

int stream_open(struct stream *s, struct device *d, char *why, size_t room)
{
	struct ibv_qp_init_attr make = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = 0};
	uint32_t psn[2];
	int rc;

	s->device = d;
	s->max_msg = d->max_msg;
	errno = 0;
	if (posix_memalign((void **)&s->memory, 4096, 2 * AHEAD * SLOT))
		s->memory = NULL;
	if (s->memory)
		s->mr = ibv_reg_mr(d->pd, s->memory, 2 * AHEAD * SLOT, IBV_ACCESS_LOCAL_WRITE);
	s->send_cq = ibv_create_cq(d->ctx, SENDS, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(d->ctx, RECEIVES, NULL, NULL, 0);
	make.send_cq = s->send_cq;
	make.recv_cq = s->recv_cq;
	if (s->mr && s->send_cq && s->recv_cq)
		s->qp = ibv_create_qp(d->pd, &make);
	if (!s->qp || getrandom(psn, sizeof psn, 0) != sizeof psn) {
		snprintf(why, room, "no queue pair: %s", strerror(errno));
		return -1;
	}
	rc = ibv_modify_qp(s->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc) {
		snprintf(why, room, "queue pair to INIT: %s", strerror(rc));
		return -1;
	}
	s->numbers.qp_num = s->qp->qp_num;
	s->numbers.sq_psn = psn[0] & 0xffffff;
	s->numbers.rq_psn = psn[1] & 0xffffff;
	memcpy(s->numbers.gid, d->gid.raw, 16);
	return 0;
}

int stream_connect(struct stream *s, const struct gleam_peer *peer, int timeout, char *why, size_t room)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = peer->path_mtu, .dest_qp_num = peer->qp_num, .rq_psn = s->numbers.rq_psn,
		.min_rnr_timer = 12, .ah_attr = {.is_global = 1, .port_num = PORT, .grh = {.sgid_index = s->device->gid_index, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .sq_psn = s->numbers.sq_psn, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7,
	};
	int rc;

	memcpy(rtr.ah_attr.grh.dgid.raw, peer->gid, 16);
	rc = ibv_modify_qp(s->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc) {
		snprintf(why, room, "queue pair to RTR toward %s: %s%s", peer->ip, strerror(rc),
		         rc == ETIMEDOUT ? " (nobody answers ARP or ND for it: is it in gleamd's group_prefixes?)" : "");
		return -1;
	}
	rc = ibv_modify_qp(s->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                   IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc) {
		snprintf(why, room, "queue pair to RTS: %s", strerror(rc));
		return -1;
	}
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

/* Waits for the next completion of a queue. */
static int complete(struct stream *s, struct ibv_cq *cq, struct ibv_wc *wc, const char *what, char *why, size_t room)
{
	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0 || (n > 0 && wc->status != IBV_WC_SUCCESS)) {
			snprintf(why, room, "%s: %s", what, n < 0 ? "the completion queue fails" : ibv_wc_status_str(wc->status));
			return -1;
		}
		if (n > 0)
			return 0;
		if (s->idle(s->arg, why, room))
			return -1;
	}
}

int wait_sent(struct stream *s, uint64_t until, char *why, size_t room)
{
	struct ibv_wc wc;

	for (; s->done < until; s->done++)
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

void stream_close(struct stream *s)
{
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->recv_cq)
		ibv_destroy_cq(s->recv_cq);
	if (s->send_cq)
		ibv_destroy_cq(s->send_cq);
	if (s->mr)
		ibv_dereg_mr(s->mr);
	free(s->memory);
	s->qp = NULL;
	s->recv_cq = s->send_cq = NULL;
	s->mr = NULL;
	s->memory = NULL;
}
