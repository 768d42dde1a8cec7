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

/* What a member says of itself, beside its addresses and queue pair. */
struct gleam_cm_attr {
	uint32_t    size; /* sizeof(struct gleam_cm_attr) */
	uint32_t    key_len;
	const void *key;  /* as in struct gleam_attr; NULL: none, for groups without --key */
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

/* rdma_connect() to a group. id has a queue pair, and its addresses are resolved; the
 * private data of param is that of this call. 0, or a negative errno value. */
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
