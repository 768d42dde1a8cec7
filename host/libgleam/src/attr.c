/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a program says of a group and of its queue pair, checked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "group.h"

#define DEFAULT_QPN 0x676c6d
#define KNOWN_FLAGS (GLEAM_INSECURE | GLEAM_NO_REPAIR | GLEAM_OTHER_NETWORK | GLEAM_RECEIVE_ONLY | GLEAM_THREAD | GLEAM_NO_THREAD | GLEAM_TARGETS)

#define BAD(...) return gl_error(EINVAL, "invalid argument: " __VA_ARGS__)

static uint32_t or_else(uint32_t value, uint32_t other)
{
	return value ? value : other;
}

static int check_key(struct gleam_group *g, const struct gleam_attr *a)
{
	if (a->flags & GLEAM_INSECURE) {
		if (a->key || a->key_len)
			BAD("attr has a key and GLEAM_INSECURE: want one of them");
		return 0;
	}
	if (!a->key)
		BAD("attr.key is NULL: want the secret that gleamd has under envelope.keys, or GLEAM_INSECURE");
	if (a->key_len < GL_MIN_KEY || a->key_len > GL_MAX_KEY)
		BAD("attr.key_len is %u: want %d to %d bytes (decode the hexadecimal digits that gleamd's configuration has)", a->key_len, GL_MIN_KEY, GL_MAX_KEY);
	if (!a->key_id)
		BAD("attr.key_id is 0: want the id that gleamd has for the key");
	g->cfg.key.id = a->key_id;
	g->cfg.key.length = (uint16_t)a->key_len;
	memcpy(g->cfg.key.bytes, a->key, a->key_len);
	return 0;
}

/* What only a master says. */
static int check_descriptor(struct gleam_group *g, const struct gleam_attr *a)
{
	struct gl_params *p = &g->params;
	struct gl_fault f;

	if (!a->group_ip)
		BAD("attr.group_ip is NULL: a master names a free address in the switch's group_prefixes");
	if (!gl_parse_addr(a->group_ip, &g->group_ip))
		BAD("attr.group_ip: %.60s is no IP address", a->group_ip);
	if (!gl_unicast(&g->group_ip) || gl_is_mapped(&g->group_ip))
		BAD("attr.group_ip: GroupIP %s: want a unicast address in the switch's group_prefixes", a->group_ip);
	if (a->members < 1)
		BAD("attr.members is 0: want at least 1");
	if (a->policy > GLEAM_QUORUM)
		BAD("attr.policy is %u: want GLEAM_STRICT, GLEAM_EVICT or GLEAM_QUORUM", a->policy);
	if (a->path_mtu > 0xffff || a->quorum > 0xffff)
		BAD("attr.path_mtu is %u, attr.quorum %u: too large", a->path_mtu, a->quorum);
	g->members = a->members;
	p->policy = (uint8_t)a->policy;
	p->qpn = or_else(a->virtual_qpn, DEFAULT_QPN);
	p->path_mtu = (uint16_t)or_else(a->path_mtu, 1024);
	p->quorum = (uint16_t)a->quorum;
	p->dead_after = a->dead_after_ms * GL_MS;
	if (a->dead_after_ms == GLEAM_FOREVER) /* 0 is the switch's default under one policy, and never under the others */
		p->dead_after = a->policy == GLEAM_STRICT ? GL_NEVER_DEAD : 0;
	if (!a->dead_after_ms && a->policy != GLEAM_STRICT)
		p->dead_after = 100 * GL_MS;
	p->lag_psns = a->lag_psns;
	p->lag_time = a->lag_ms * GL_MS;
	p->sender_timeout = (uint8_t)(a->sender_timeout > 255 ? 255 : or_else(a->sender_timeout, 14));
	p->sender_retries = (uint8_t)(a->sender_retries > 255 ? 255 : or_else(a->sender_retries, 7));
	p->lease = a->lease_ms * GL_MS;
	p->no_repair = a->flags & GLEAM_NO_REPAIR;
	g->ready_timeout = or_else(a->ready_timeout_ms, 10000) * GL_MS;
	g->window = (struct gl_mem){.base = a->window_base, .len = a->window_len};
	f = gl_check_params(p, a->members);
	if (f.field)
		BAD("attr.%s: %s", f.field, f.text);
	if (a->flags & GLEAM_TARGETS && a->policy == GLEAM_QUORUM)
		BAD("attr.flags: GLEAM_TARGETS is not possible with GLEAM_QUORUM");
	return 0;
}

static int check_attr(struct gleam_group *g, const struct gleam_attr *a)
{
	int rc;

	if (a->size != sizeof *a)
		BAD("attr.size is %u, want %zu: set it to sizeof(struct gleam_attr), and compile with the gleam.h of this library", a->size, sizeof *a);
	if (a->role != GLEAM_MASTER && a->role != GLEAM_MEMBER)
		BAD("attr.role is %u: want GLEAM_MASTER or GLEAM_MEMBER", a->role);
	if (a->flags & ~(uint32_t)KNOWN_FLAGS)
		BAD("attr.flags 0x%x: only the flags of enum gleam_flags are known", a->flags);
	if ((a->flags & (GLEAM_THREAD | GLEAM_NO_THREAD)) == (GLEAM_THREAD | GLEAM_NO_THREAD))
		BAD("attr.flags has GLEAM_THREAD and GLEAM_NO_THREAD: want one of them");
	rc = check_key(g, a);
	if (rc < 0)
		return rc;
	g->master = a->role == GLEAM_MASTER;
	g->flags = a->flags;
	g->cfg.port = a->port;
	g->cfg.deadline = a->register_timeout_ms * GL_MS;
	g->cfg.ask_every = 3 * GL_SECOND;
	g->cfg.renew_within = 2 * GL_SECOND;
	gl_config_defaults(&g->cfg);
	if (a->exchange) {
		g->exchange_addr = strdup(a->exchange);
		if (!g->exchange_addr)
			return gl_error(EIO, "no memory");
	}
	return g->master ? check_descriptor(g, a) : 0;
}

struct gleam_group *gl_group_new(const struct gleam_attr *attr)
{
	struct gleam_group *g;

	if (!attr) {
		gl_error(EINVAL, "invalid argument: attr is NULL");
		return NULL;
	}
	g = calloc(1, sizeof *g);
	if (!g) {
		gl_error(EIO, "no memory");
		return NULL;
	}
	g->member_fd = g->master_fd = g->epoll = g->timer = g->wake = g->events_fd = g->poll_fd = -1;
	if (check_attr(g, attr) < 0 || !gl_loop_open(g)) {
		free(g->exchange_addr);
		explicit_bzero(g, sizeof *g);
		free(g);
		return NULL;
	}
	return g;
}

int gl_check_qp(const struct gleam_qp *qp, const struct gleam_mr *mr, struct gl_record *r)
{
	struct gl_addr ip;

	if (!qp)
		BAD("qp is NULL");
	ip = gl_from_gid(qp->gid);
	if (gl_is_zero(&ip) || (ip.len == 4 && ip.b[0] >> 4 == 14) || (ip.len == 16 && ip.b[0] == 0xff))
		BAD("qp.gid is %s: want the RoCE v2 GID that the queue pair will use (ibv_query_gid; ::ffff:a.b.c.d for IPv4)", gl_addr_text(&ip));
	if (!gl_unicast(&ip) || (ip.len == 16 && ip.b[0] == 0xfe && ip.b[1] >> 6 == 2) || (ip.len == 4 && ip.b[0] == 169 && ip.b[1] == 254))
		BAD("qp.gid is %s, link-local or loopback: want the GID of an address that the switch reaches, by another gid_index", gl_addr_text(&ip));
	if (!gl_valid_qpn(qp->qp_num))
		BAD("qp.qp_num is 0x%x: want that of a reliable connected queue pair, 0x10 to 0xfffffe", qp->qp_num);
	if (qp->sq_psn > GL_MASK24 || qp->rq_psn > GL_MASK24)
		BAD("qp.sq_psn is 0x%x, qp.rq_psn 0x%x: PSNs have 24 bits", qp->sq_psn, qp->rq_psn);
	*r = (struct gl_record){.ip = ip, .qpn = qp->qp_num, .sq_psn = qp->sq_psn, .rq_psn = qp->rq_psn};
	if (!mr)
		return 0;
	r->window = (struct gl_mem){.base = mr->addr, .len = mr->length, .rkey = mr->rkey};
	if (!gl_valid_window(&r->window))
		BAD("mr of %llu bytes at 0x%llx is empty or passes the end of the address space: give NULL for no region",
		    (unsigned long long)mr->length, (unsigned long long)mr->addr);
	return 0;
}
