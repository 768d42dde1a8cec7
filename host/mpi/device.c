/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

/* Takes the RoCE v2 GID of the family, and not a link-local one; 0 if there is one. */
static int choose_gid(struct device *d, int table, int index, int ipv4)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry e;

	for (int i = index < 0 ? 0 : index; i < (index < 0 ? table : index + 1); i++) {
		if (ibv_query_gid_ex(d->verbs.context, d->verbs.port, i, &e, 0) || e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if ((memcmp(e.gid.raw, mapped, 12) == 0) != ipv4 || (e.gid.raw[0] == 0xfe && (e.gid.raw[1] & 0xc0) == 0x80))
			continue;
		d->verbs.gid = e.gid;
		d->verbs.gid_index = i;
		return 0;
	}
	return -1;
}

static int open_one(struct device *d, struct ibv_device *dev, int gid_index, int ipv4)
{
	struct ibv_port_attr port;

	d->verbs.context = ibv_open_device(dev);
	if (!d->verbs.context)
		return -1;
	d->verbs.port = 1;
	if (!ibv_query_port(d->verbs.context, d->verbs.port, &port) && port.state == IBV_PORT_ACTIVE &&
	    !choose_gid(d, port.gid_tbl_len, gid_index, ipv4)) {
		d->mtu = 128u << port.active_mtu;
		d->max_msg = port.max_msg_sz;
		d->pd = ibv_alloc_pd(d->verbs.context);
		if (d->pd)
			return 0;
	}
	ibv_close_device(d->verbs.context);
	d->verbs.context = NULL;
	return -1;
}

int device_open(struct device *d, const char *name, int gid_index, int ipv4, char *why, size_t room)
{
	int n = 0, opened = -1;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && opened; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			opened = open_one(d, list[i], gid_index, ipv4);
	if (list)
		ibv_free_device_list(list);
	if (opened)
		snprintf(why, room, "no RDMA device%s%s with an active port and a RoCE v2 GID for %s%s: set GLEAM_MPI_DEVICE and GLEAM_MPI_GID_INDEX",
		         name ? " " : "", name ? name : "", ipv4 ? "IPv4" : "IPv6", gid_index < 0 ? "" : " at this index");
	return opened;
}

void device_close(struct device *d)
{
	if (d->verbs.context) {
		ibv_dealloc_pd(d->pd);
		ibv_close_device(d->verbs.context);
	}
	memset(d, 0, sizeof *d);
}
