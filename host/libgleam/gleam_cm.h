/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Joining a group by RDMA-CM: a program on librdmacm connects to the GroupIP, as to
 * any peer (docs/CM.md). A group with a key authenticates members by the
 * private data of rdma_connect(); this header fills it in. Link with -lgleam -lrdmacm.
 *
 *     struct gleam_cm_attr attr = {.size = sizeof attr, .key = key, .key_len = 32, .key_id = 1};
 *     ... rdma_resolve_addr(), rdma_resolve_route(), rdma_create_qp() ...
 *     gleam_cm_connect(id, &param, &attr);     in place of rdma_connect(id, &param)
 */
#ifndef GLEAM_CM_H
#define GLEAM_CM_H

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "gleam.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GLEAM_CM_RESOLVE_MS 2000 /* for the addresses and the route of gleam_cm_nonce() */
#define GLEAM_CM_UNPROVEN 8       /* the code of a REJ that has the nonce: docs/CM.md */

/* What a member says of itself, beside its addresses and queue pair. */
struct gleam_cm_attr {
	uint32_t    size; /* sizeof(struct gleam_cm_attr) */
	uint32_t    key_len;
	const void *key;  /* as in struct gleam_attr; NULL: none, for groups without --key-id */
	uint16_t    key_id;
	uint32_t    flags; /* GLEAM_RECEIVE_ONLY */
	const struct gleam_mr *mr; /* where WRITEs to the group land; NULL: nowhere */
	uint32_t    expect;        /* members, 2 to 65535: the first to connect makes the group, if the key may; 0: the group is there */
};

/* The GID of an address of RDMA-CM; 0 or -EINVAL. */
static inline int gleam_cm_gid(const struct sockaddr *a, uint8_t gid[16], uint16_t *port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a;

	memset(gid, 0, 16);
	if (a && a->sa_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &v4->sin_addr, 4);
		*port = ntohs(v4->sin_port);
		return 0;
	}
	if (a && a->sa_family == AF_INET6) {
		memcpy(gid, &v6->sin6_addr, 16);
		*port = ntohs(v6->sin6_port);
		return 0;
	}
	return -EINVAL;
}

/* Asks the switch for the nonce of a member's private data: by a REQ of its own, for the queue pair
 * qp_num, which the switch rejects. id's addresses are resolved; data is what gleam_cm_private() writes with
 * nonce 0. It returns when the switch has answered: 0 if that was no nonce; what rdma_connect()
 * is told then says why. */
static inline uint64_t gleam_cm_nonce(struct rdma_cm_id *id, uint32_t qp_num, const struct rdma_conn_param *param, const void *data)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param with = *param;
	struct rdma_cm_event *event;
	struct rdma_cm_id *own;
	struct sockaddr_storage from;
	const uint8_t *answer;
	uint64_t nonce = 0;
	int ended, i;

	if (!channel)
		return 0;
	if (rdma_create_id(channel, &own, NULL, RDMA_PS_TCP)) {
		rdma_destroy_event_channel(channel);
		return 0;
	}
	memset(&from, 0, sizeof from);
	if (rdma_get_local_addr(id)->sa_family == AF_INET6) {
		memcpy(&from, rdma_get_local_addr(id), sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)(void *)&from)->sin6_port = 0;
	} else {
		memcpy(&from, rdma_get_local_addr(id), sizeof(struct sockaddr_in));
		((struct sockaddr_in *)(void *)&from)->sin_port = 0;
	}
	with.private_data = data;
	with.private_data_len = GLEAM_CM_PRIVATE;
	with.qp_num = qp_num;
	ended = rdma_resolve_addr(own, (struct sockaddr *)&from, rdma_get_peer_addr(id), GLEAM_CM_RESOLVE_MS) != 0;
	while (!ended && !rdma_get_cm_event(channel, &event)) {
		switch (event->event) {
		case RDMA_CM_EVENT_ADDR_RESOLVED:
			ended = rdma_resolve_route(own, GLEAM_CM_RESOLVE_MS) != 0;
			break;
		case RDMA_CM_EVENT_ROUTE_RESOLVED:
			ended = rdma_connect(own, &with) != 0;
			break;
		case RDMA_CM_EVENT_REJECTED:
			answer = (const uint8_t *)event->param.conn.private_data;
			if (event->param.conn.private_data_len >= 11 && answer[1] == GLEAM_CM_UNPROVEN && answer[2] == 8)
				for (i = 3; i < 11; i++)
					nonce = nonce << 8 | answer[i];
			ended = 1;
			break;
		default:
			ended = 1;
		}
		rdma_ack_cm_event(event);
	}
	rdma_destroy_id(own);
	rdma_destroy_event_channel(channel);
	return nonce;
}

/* rdma_connect() to a group. id has a queue pair, and its addresses are resolved; the
 * private data of param is that of this call. With a key it waits for the switch's nonce first, which takes
 * a round trip. 0, or a negative errno value. */
static inline int gleam_cm_connect(struct rdma_cm_id *id, const struct rdma_conn_param *param, const struct gleam_cm_attr *attr)
{
	struct gleam_cm_member m;
	struct rdma_conn_param with = *param;
	uint8_t data[GLEAM_CM_PRIVATE];
	uint16_t own_port;
	int rc;

	memset(&m, 0, sizeof m);
	if (!attr || attr->size != sizeof *attr || !id->qp || gleam_cm_gid(rdma_get_peer_addr(id), m.group_gid, &m.port) < 0 ||
	    gleam_cm_gid(rdma_get_local_addr(id), m.gid, &own_port) < 0)
		return -EINVAL;
	m.size = sizeof m;
	m.qp_num = id->qp->qp_num;
	m.key = attr->key;
	m.key_len = attr->key_len;
	m.key_id = attr->key_id;
	m.flags = attr->flags;
	m.mr = attr->mr;
	m.expect = attr->expect;
	rc = gleam_cm_private(&m, data);
	if (rc >= 0 && attr->key) {
		m.nonce = gleam_cm_nonce(id, m.qp_num, param, data);
		rc = gleam_cm_private(&m, data);
	}
	if (rc < 0)
		return rc;
	with.private_data = data;
	with.private_data_len = sizeof data;
	return rdma_connect(id, &with) ? -errno : 0;
}

#ifdef __cplusplus
}
#endif
#endif
