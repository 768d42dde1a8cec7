/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A member of a group without RDMA: the queue pair and the region are numbers.
 * The test starts one at each host, reads what it prints and writes commands.
 *
 *     participant master IP QPN KEYHEX LISTEN MS GROUPIP MEMBERS
 *     participant member|receiver IP QPN KEYHEX MASTER MS [FAILURE]
 *     participant arguments IP
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gleam.h"

static int say_failure(const char *what, int rc)
{
	printf("error %s %d %s\n", what, rc, gleam_error());
	return 1;
}

static int key_from_hex(const char *hex, unsigned char *key)
{
	int n = 0;

	for (; hex[0] && hex[1] && n < 256; hex += 2)
		if (sscanf(hex, "%2hhx", &key[n++]) != 1)
			return -1;
	return n;
}

static void gid_of(const char *ip, struct gleam_qp *qp)
{
	if (inet_pton(AF_INET6, ip, qp->gid) == 1)
		return;
	qp->gid[10] = qp->gid[11] = 0xff;
	inet_pton(AF_INET, ip, qp->gid + 12);
}

static void print_event(const struct gleam_event *e)
{
	static const char *const kinds[] = {"?", "joined", "left", "evicted", "failed", "ended"};

	printf("event %s %s| %s\n", kinds[e->kind <= GLEAM_ENDED ? e->kind : 0], e->member, e->text);
}

/* Prints events and obeys: "leave", "status", end of file. */
static int obey(struct gleam_group *g)
{
	struct pollfd p[2] = {{.fd = 0, .events = POLLIN}, {.fd = gleam_fd(g), .events = POLLIN}};
	struct gleam_event e;
	char line[64];
	int rc;

	if (p[1].fd < 0)
		return say_failure("fd", p[1].fd);
	for (;;) {
		if (poll(p, 2, -1) < 0)
			return say_failure("poll", -errno);
		if (p[1].revents & POLLIN) {
			while ((rc = gleam_next_event(g, &e, 0)) == 1)
				print_event(&e);
			if (rc < 0 && rc != -ENODATA)
				return say_failure("event", rc);
		} else if (p[0].revents) {
			rc = read(0, line, sizeof line - 1);
			if (rc <= 0)
				return 0;
			line[rc] = 0;
			if (!strcmp(line, "leave\n")) {
				rc = gleam_leave(g, 10000);
				if (rc < 0)
					say_failure("leave", rc);
				else
					printf("gone\n");
			} else if (!strcmp(line, "wait\n")) { /* for an event that does not come */
				rc = gleam_next_event(g, &e, 50);
				printf("waited %d %s\n", rc, rc < 0 ? gleam_error() : "");
			}
		}
	}
}

static int participate(int argc, char **argv)
{
	int master = !strcmp(argv[1], "master"), ms = atoi(argv[6]), rc;
	unsigned char key[256];
	struct gleam_attr attr = {
		.size = sizeof attr, .role = master ? GLEAM_MASTER : GLEAM_MEMBER,
		.exchange = argv[5], .key = key, .key_len = key_from_hex(argv[4], key), .key_id = 1,
		.register_timeout_ms = 3000, .flags = strcmp(argv[1], "receiver") ? 0 : GLEAM_RECEIVE_ONLY,
	};
	struct gleam_qp qp = {.qp_num = strtoul(argv[3], NULL, 0)};
	struct gleam_mr mr = {.addr = 0x7f0000000000 + ((uint64_t)qp.qp_num << 24), .length = 1 << 20, .rkey = qp.qp_num * 256};
	struct gleam_peer peer;
	struct gleam_window w;
	struct gleam_group *g;

	if (master) {
		attr.group_ip = argv[7];
		attr.members = atoi(argv[8]);
		attr.window_base = 0x5000000;
		attr.virtual_qpn = 0x4711;
	}
	gid_of(argv[2], &qp);
	qp.sq_psn = 0xfffff0 + (qp.qp_num & 0xf);
	qp.rq_psn = qp.qp_num;
	g = gleam_create(&attr);
	if (!g)
		return say_failure("create", 0);
	rc = gleam_join(g, &qp, &mr, &peer, ms);
	if (rc < 0)
		return say_failure("join", rc);
	printf("peer %s 0x%x %u %u gid", peer.ip, peer.qp_num, peer.path_mtu_bytes, peer.path_mtu);
	for (int i = 0; i < 16; i++)
		printf("%02x", peer.gid[i]);
	printf("\n");
	rc = gleam_connected(g, !master && argc > 7 ? argv[7] : NULL);
	if (rc < 0)
		return say_failure("connected", rc);
	rc = gleam_wait(g, &w, ms);
	if (rc < 0)
		return say_failure("wait", rc);
	printf("registered 0x%llx %llu %u members, rkey %s\n", (unsigned long long)w.addr, (unsigned long long)w.length,
	       w.members, w.rkey ? "set" : "0");
	rc = obey(g);
	gleam_destroy(g);
	return rc;
}

static int wrong;

/* Expects rc, and a text that has want in it. */
static void expect(const char *call, int rc, int want_rc, const char *want)
{
	if (rc == want_rc && strstr(gleam_error(), want))
		return;
	printf("wrong: %s: %d (%s), want %d (%s)\n", call, rc, gleam_error(), want_rc, want);
	wrong = 1;
}

#define FAILS(call, rc, text) expect(#call, call, rc, text)
#define REFUSED(what, set, text)                                                      \
	do {                                                                          \
		struct gleam_attr a = good;                                           \
		set;                                                                  \
		expect("create: " what, gleam_create(&a) ? 1 : 0, 0, text);           \
	} while (0)

static void *other_thread(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)strlen(gleam_error());
}

/* Whatever C may pass is an error with a text, never a crash. */
static int arguments(const char *ip)
{
	static const char key[32] = "0123456789abcdef0123456789abcdef";
	const struct gleam_attr good = {
		.size = sizeof good, .role = GLEAM_MASTER, .exchange = "0.0.0.0:7100", .key = key, .key_len = 32,
		.key_id = 1, .members = 1, .group_ip = "10.77.254.1",
	};
	struct gleam_qp qp = {.qp_num = 0x11}, ok;
	struct gleam_mr mr = {.addr = UINT64_MAX - 10, .length = 100, .rkey = 1};
	struct gleam_peer peer;
	struct gleam_event e;
	struct gleam_group *g, *bad = (struct gleam_group *)0xdeadbeef;
	pthread_t t;
	void *length;

	gid_of(ip, &qp);
	ok = qp;
	if (strlen(gleam_error()) || !strlen(gleam_version()))
		printf("wrong: error or version\n"), wrong = 1;
	expect("create: NULL", gleam_create(NULL) ? 1 : 0, 0, "attr is NULL");
	REFUSED("size", a.size = 8, "attr.size is 8");
	REFUSED("role", a.role = 7, "attr.role is 7");
	REFUSED("flags", a.flags = 258, "attr.flags 0x102: only the flags of enum gleam_flags are known");
	REFUSED("threads", a.flags = GLEAM_THREAD | GLEAM_NO_THREAD, "want one of them");
	REFUSED("targets", (a.flags = GLEAM_TARGETS, a.policy = GLEAM_QUORUM, a.quorum = 1), "GLEAM_TARGETS is not possible with GLEAM_QUORUM");
	REFUSED("key", a.key = NULL, "attr.key is NULL");
	REFUSED("key length", a.key_len = 31, "attr.key_len is 31: want 32");
	REFUSED("long key", a.key_len = 257, "attr.key_len is 257");
	REFUSED("key id", a.key_id = 0, "attr.key_id is 0");
	REFUSED("both", a.flags = GLEAM_INSECURE, "want one of them");
	REFUSED("group", a.group_ip = NULL, "attr.group_ip is NULL");
	REFUSED("group text", a.group_ip = "ten", "attr.group_ip");
	REFUSED("class D", a.group_ip = "224.1.1.1", "unicast address");
	REFUSED("members", a.members = 0, "at least 1");
	REFUSED("QPN", a.virtual_qpn = 1, "attr.virtual_qpn: 0x1 is");
	REFUSED("MTU", a.path_mtu = 3, "attr.path_mtu: 3: want 256");
	REFUSED("policy", a.policy = 9, "attr.policy is 9");
	REFUSED("dead after", a.dead_after_ms = 9, "attr.dead_after_ms: 9ms is not longer than a sender's timeout");
	REFUSED("dead after, sender", (a.dead_after_ms = 90, a.sender_timeout = 16, a.sender_retries = 2), "not longer than a sender's timeout of 268");
	REFUSED("quorum alone", a.quorum = 1, "attr.quorum: 1: only with the policy quorum");
	REFUSED("quorum", (a.policy = GLEAM_QUORUM, a.quorum = a.members + 1), "receivers beside the source");
	REFUSED("no quorum", a.policy = GLEAM_QUORUM, "attr.quorum: 0: there are");
	REFUSED("lag", a.lag_psns = 9, "attr.policy: strict removes nobody");
	REFUSED("lag in time", a.lag_ms = 9, "attr.policy: strict removes nobody");
	REFUSED("sender timeout", a.sender_timeout = 32, "attr.sender_timeout: 32 is not in 1 to 31");
	REFUSED("sender retries", a.sender_retries = 256, "attr.sender_retries: 255 is not in 1 to 7");

	FAILS(gleam_join(NULL, &qp, NULL, &peer, 1), -EINVAL, "the group is NULL");
	FAILS(gleam_join(bad, &qp, NULL, &peer, 1), -EINVAL, "no such group");
	FAILS(gleam_wait(bad, NULL, 1), -EINVAL, "no such group");
	FAILS(gleam_connected(bad, NULL), -EINVAL, "no such group");
	FAILS(gleam_next_event(bad, &e, 1), -EINVAL, "no such group");
	FAILS(gleam_fd(bad), -EINVAL, "no such group");
	FAILS(gleam_leave(bad, 1), -EINVAL, "no such group");
	FAILS(gleam_destroy(bad), -EINVAL, "no such group");
	FAILS(gleam_destroy(NULL), 0, "");

	g = gleam_create(&good);
	if (!g)
		return say_failure("create", 0);
	FAILS(gleam_join(g, NULL, NULL, &peer, 1), -EINVAL, "qp is NULL");
	FAILS(gleam_join(g, &qp, NULL, NULL, 1), -EINVAL, "peer is NULL");
	FAILS(gleam_join(g, &qp, &mr, &peer, 1), -EINVAL, "passes the end");
	qp.qp_num = 1;
	FAILS(gleam_join(g, &qp, NULL, &peer, 1), -EINVAL, "qp.qp_num is 0x1");
	qp = ok;
	qp.sq_psn = 1 << 24;
	FAILS(gleam_join(g, &qp, NULL, &peer, 1), -EINVAL, "24 bits");
	qp = ok;
	memset(qp.gid, 0, 16);
	FAILS(gleam_join(g, &qp, NULL, &peer, 1), -EINVAL, "RoCE v2 GID");
	qp.gid[0] = 0xfe, qp.gid[1] = 0x80;
	FAILS(gleam_join(g, &qp, NULL, &peer, 1), -EINVAL, "link-local");
	memset(qp.gid, 0, 15);
	qp.gid[15] = 1;
	FAILS(gleam_join(g, &qp, NULL, &peer, 1), -EINVAL, "loopback");
	FAILS(gleam_connected(g, NULL), -EINVAL, "join first");
	FAILS(gleam_wait(g, NULL, 1), -EINVAL, "join first");
	FAILS(gleam_leave(g, 1), -EINVAL, "join first");
	FAILS(gleam_next_event(g, NULL, 1), -EINVAL, "event is NULL");
	FAILS(gleam_next_event(g, &e, 1), 0, "");

	/* Of a join that is given up nothing is left, and it may be tried again. */
	for (int i = 0; i < 3; i++) {
		FAILS(gleam_join(g, &ok, NULL, &peer, 1000), 0, "");
		FAILS(gleam_join(g, &ok, NULL, &peer, 1000), -EINVAL, "a join is going on");
		FAILS(gleam_connected(g, NULL), 0, "");
		FAILS(gleam_connected(g, NULL), -EINVAL, "was reported as connected already");
		if (i == 1) {
			FAILS(gleam_leave(g, 1000), 0, "");
			FAILS(gleam_connected(g, NULL), -EIO, "it left before");
		} else
			FAILS(gleam_wait(g, NULL, 20), -ETIMEDOUT, "0 of 1 members have connected to");
		FAILS(gleam_next_event(g, &e, -1), 1, "");
		if (e.kind != GLEAM_FAILED || !strstr(e.text, "0 of 1 members"))
			printf("wrong: event %u %s\n", e.kind, e.text), wrong = 1;
		FAILS(gleam_next_event(g, &e, -1), -ENODATA, "the group is over");
	}
	if (pthread_create(&t, NULL, other_thread, NULL) || pthread_join(t, &length) || length)
		printf("wrong: another thread sees this one's error\n"), wrong = 1;
	FAILS(gleam_destroy(g), 0, "");
	FAILS(gleam_destroy(g), -EINVAL, "destroyed already");
	if (!wrong)
		printf("all as it should be\n");
	return wrong;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "arguments"))
		return arguments(argv[2]);
	if (argc < 7 || (!strcmp(argv[1], "master") && argc != 9)) {
		fprintf(stderr, "see the beginning of participant.c\n");
		return 2;
	}
	return participate(argc, argv);
}
