/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * UDP. A member's socket is bound to the switch's port at the host's address and
 * connected to the GroupIP: so several processes of a host share that address, each
 * with groups of its own, and the kernel gives each the packets of its group.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group.h"

static socklen_t to_sockaddr(const struct gl_endpoint *e, struct sockaddr_storage *s)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)s;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)s;

	memset(s, 0, sizeof *s);
	if (e->ip.len == 4) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(e->port);
		memcpy(&v4->sin_addr, e->ip.b, 4);
		return sizeof *v4;
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(e->port);
	memcpy(&v6->sin6_addr, e->ip.b, 16);
	return sizeof *v6;
}

static struct gl_endpoint from_sockaddr(const struct sockaddr_storage *s)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)s;
	struct gl_endpoint e = {0};

	if (s->ss_family == AF_INET) {
		e.ip.len = 4;
		memcpy(e.ip.b, &v4->sin_addr, 4);
		e.port = ntohs(v4->sin_port);
	} else {
		e.ip = gl_from_gid(v6->sin6_addr.s6_addr);
		e.port = ntohs(v6->sin6_port);
	}
	return e;
}

bool gl_bind(const struct gl_endpoint *at, int *fd, char *text, size_t n)
{
	struct sockaddr_storage s;
	socklen_t len = to_sockaddr(at, &s);
	int one = 1;

	*fd = socket(s.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 && bind(*fd, (struct sockaddr *)&s, len) == 0)
		return true;
	snprintf(text, n, "answer envelopes at %s: %s%s", gl_endpoint_text(at), errno == EADDRNOTAVAIL ? "cannot assign requested address" : strerror(errno),
	         errno == EADDRINUSE ? ": another program of this host has the port for itself, such as gleam perf" : "");
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return false;
}

bool gl_check_loopback(char *text, size_t n)
{
	struct ifaddrs *list;
	bool fine = true;

	if (getifaddrs(&list) < 0)
		return true; /* it is not known */
	for (const struct ifaddrs *i = list; i && fine; i = i->ifa_next) {
		fine = !(i->ifa_flags & IFF_LOOPBACK) || i->ifa_flags & IFF_UP;
		if (!fine)
			snprintf(text, n, "the loopback interface %s is down: a master confirms its own membership by it; type `ip link set %s up`", i->ifa_name, i->ifa_name);
	}
	freeifaddrs(list);
	return fine;
}

struct gl_endpoint gl_local_of(int fd)
{
	struct sockaddr_storage s = {0};
	socklen_t len = sizeof s;

	getsockname(fd, (struct sockaddr *)&s, &len);
	return from_sockaddr(&s);
}

struct gl_endpoint gl_peer_of(int fd)
{
	struct sockaddr_storage s = {0};
	socklen_t len = sizeof s;

	getpeername(fd, (struct sockaddr *)&s, &len);
	return from_sockaddr(&s);
}

void gl_connect_member(struct gleam_group *g)
{
	struct gl_endpoint to = {.ip = g->info.ip, .port = g->cfg.port};
	struct sockaddr_storage s;
	socklen_t len = to_sockaddr(&to, &s);

	if (connect(g->member_fd, (struct sockaddr *)&s, len) < 0)
		g->send_errno = errno; /* no route, perhaps: reported if the join fails */
}

enum { AT_ONCE = 64 };

void gl_receive(struct gleam_group *g, int fd, bool master)
{
	uint8_t b[2 * GL_MAX_LEN]; /* what is longer is cut off, and dropped as truncated */

	for (int i = 0; i < AT_ONCE; i++) {
		struct sockaddr_storage s;
		struct gl_endpoint from;
		socklen_t len = sizeof s;
		ssize_t n = recvfrom(fd, b, sizeof b, 0, (struct sockaddr *)&s, &len);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0) /* an ICMP error: the machines repeat themselves */
			continue;
		from = from_sockaddr(&s);
		if (master && g->has_mas)
			gl_master_input(&g->mas, gl_now(), &from, b, (size_t)n, &g->out);
		else if (!master)
			gl_member_input(&g->mem, gl_now(), &from, b, (size_t)n, &g->out);
		gl_take_output(g, master);
		if (g->member_fd != fd && g->master_fd != fd)
			return; /* that was the end */
	}
}

void gl_flush(struct gleam_group *g, int fd)
{
	for (size_t i = 0; i < g->out.num_packets; i++) {
		const struct gl_packet *p = &g->out.packets[i];
		struct sockaddr_storage s;
		socklen_t len = to_sockaddr(&p->to, &s);

		if (sendto(fd, p->b, p->n, MSG_NOSIGNAL, (struct sockaddr *)&s, len) < 0)
			g->send_errno = errno;
	}
	g->out.num_packets = 0;
}
