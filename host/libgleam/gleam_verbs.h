/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The application's part of joining, for programs on libibverbs: a device by its IP
 * address, and the states of a queue pair. Header only; link with -lgleam -libverbs.
 *
 *     gleam_verbs_open(&v, "10.0.0.2");       context, port and GID index of an address
 *     ... ibv_alloc_pd(), ibv_reg_mr(), ibv_create_cq(), ibv_create_qp() ...
 *     gleam_verbs_init(&v, qp, &numbers);     to INIT
 *     gleam_join(g, &numbers, ...);           or gleam_export()
 *     ... ibv_post_recv() ...
 *     gleam_verbs_connect(&v, qp, &numbers, g);   to RTR and RTS; gleam_connected()
 *     gleam_wait(g, &window, ms);
 *
 * The attributes are those of docs/APPLICATIONS.md.
 */
#ifndef GLEAM_VERBS_H
#define GLEAM_VERBS_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "gleam.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An address of an RDMA device. */
struct gleam_verbs {
	struct ibv_context *context;
	union ibv_gid       gid;
	uint8_t             port;
	uint8_t             gid_index;
	uint8_t             timeout; /* of queue pairs: 4.096 us * 2^n. A master has to give attr.sender_timeout the same [14] */
};

/* Opens the device that has an IPv4 or IPv6 address as a GID of RoCE v2. 0, or a negative
 * errno value: -EINVAL for no address, -ENODEV if no device has it. */
static inline int gleam_verbs_open(struct gleam_verbs *v, const char *ip)
{
	enum { GLEAM_VERBS_GIDS = 256 };
	struct ibv_gid_entry gids[GLEAM_VERBS_GIDS];
	struct ibv_device **devices;

	memset(v, 0, sizeof *v);
	v->timeout = 14;
	v->gid.raw[10] = v->gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, ip, v->gid.raw + 12) != 1 && inet_pton(AF_INET6, ip, v->gid.raw) != 1)
		return -EINVAL;
	devices = ibv_get_device_list(NULL);
	if (!devices)
		return -errno;
	for (int i = 0; devices[i] && !v->port; i++) {
		ssize_t n = -1;

		v->context = ibv_open_device(devices[i]);
		if (v->context)
			n = ibv_query_gid_table(v->context, gids, GLEAM_VERBS_GIDS, 0);
		for (ssize_t j = 0; j < n; j++)
			if (gids[j].gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(gids[j].gid.raw, v->gid.raw, 16)) {
				v->port = (uint8_t)gids[j].port_num;
				v->gid_index = (uint8_t)gids[j].gid_index;
			}
		if (v->context && !v->port)
			ibv_close_device(v->context);
	}
	ibv_free_device_list(devices);
	if (v->port)
		return 0;
	v->context = NULL;
	return -ENODEV;
}

/* Takes a reliable connected queue pair to INIT, from any state, and fills in numbers,
 * with random first PSNs. 0, or a negative errno value. */
static inline int gleam_verbs_init(const struct gleam_verbs *v, struct ibv_qp *qp, struct gleam_qp *numbers)
{
	struct ibv_qp_attr a;
	int rc;

	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RESET;
	rc = qp->state == IBV_QPS_RESET ? 0 : ibv_modify_qp(qp, &a, IBV_QP_STATE);
	if (rc)
		return -rc;
	a.qp_state = IBV_QPS_INIT;
	a.port_num = v->port;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc)
		return -rc;
	memset(numbers, 0, sizeof *numbers);
	memcpy(numbers->gid, v->gid.raw, 16);
	numbers->qp_num = qp->qp_num;
	if (getrandom(&numbers->sq_psn, 4, 0) != 4 || getrandom(&numbers->rq_psn, 4, 0) != 4)
		return -EIO;
	numbers->sq_psn &= 0xffffff;
	numbers->rq_psn &= 0xffffff;
	return 0;
}

/* Takes the queue pair to RTR and RTS toward peer. 0, or a negative errno value, with the cause
 * in why. Receives for the first messages are to be posted before gleam_connected(). */
static inline int gleam_verbs_rts(const struct gleam_verbs *v, struct ibv_qp *qp, const struct gleam_qp *numbers, const struct gleam_peer *peer, char *why, size_t room)
{
	struct ibv_qp_attr a;
	int rc;

	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = (enum ibv_mtu)peer->path_mtu;
	a.dest_qp_num = peer->qp_num;
	a.rq_psn = numbers->rq_psn;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = v->port;
	a.ah_attr.grh.sgid_index = v->gid_index;
	a.ah_attr.grh.hop_limit = 64;
	memcpy(a.ah_attr.grh.dgid.raw, peer->gid, 16);
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (rc) {
		snprintf(why, room, "modify to RTR toward %s: %s%s", peer->ip, strerror(rc),
		         rc == ETIMEDOUT ? " (nobody answers ARP or ND for it: is it in gleamd's group_prefixes?)" : "");
		return -rc;
	}
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = numbers->sq_psn;
	a.timeout = v->timeout;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	rc = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	if (rc)
		snprintf(why, room, "modify to RTS: %s", strerror(rc));
	return -rc;
}

/* gleam_verbs_rts() toward the group, and gleam_connected(), also with what failed:
 * gleam_wait() then says so, at all members. It returns what gleam_connected() does. */
static inline int gleam_verbs_connect(const struct gleam_verbs *v, struct ibv_qp *qp, const struct gleam_qp *numbers, struct gleam_group *g)
{
	struct gleam_peer peer;
	char why[200];
	int rc = gleam_peer(g, &peer);

	if (rc < 0)
		return rc;
	rc = gleam_verbs_rts(v, qp, numbers, &peer, why, sizeof why);
	return gleam_connected(g, rc < 0 ? why : NULL);
}

#ifdef __cplusplus
}
#endif
#endif
