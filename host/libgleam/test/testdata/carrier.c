/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A participant whose blobs the test carries: commands come on standard input,
 * blobs and events go to standard output. It has no thread: all progress is made
 * when gleam_fd() polls readable, unless FLAGS have GLEAM_THREAD. It is linked to the library's sources, under the
 * sanitizers.
 *
 *     carrier master IP QPN KEYHEX GROUPIP MEMBERS FLAGS
 *     carrier member IP QPN KEYHEX FLAGS
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gleam.h"

static size_t from_hex(const char *hex, unsigned char *b, size_t room)
{
	size_t n = 0;

	for (; hex[0] && hex[1] && n < room && sscanf(hex, "%2hhx", &b[n]) == 1; hex += 2)
		n++;
	return n;
}

static void print_hex(const char *what, const unsigned char *b, int n)
{
	printf("%s ", what);
	for (int i = 0; i < n; i++)
		printf("%02x", b[i]);
	printf("\n");
}

static void gid_of(const char *ip, unsigned char *gid)
{
	memset(gid, 0, 16);
	if (inet_pton(AF_INET6, ip, gid) == 1)
		return;
	gid[10] = gid[11] = 0xff;
	inet_pton(AF_INET, ip, gid + 12);
}

static void say(const char *what, int rc)
{
	if (rc < 0)
		printf("error %s %d %s\n", what, rc, gleam_error());
	else
		printf("ok %s\n", what);
}

static void print_events(struct gleam_group *g)
{
	static const char *const kinds[] = {"?", "joined", "left", "evicted", "failed", "ended", "updated", "update failed"};
	struct gleam_event e;

	while (gleam_next_event(g, &e, 0) == 1)
		printf("event %s %s| %s\n", kinds[e.kind], e.member, e.text);
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2; /* without . and .. */
}

static void targets(struct gleam_group *g, const char *ip)
{
	struct gleam_target t = {.addr = 0x1122334455667788, .rkey = 0x99};
	unsigned char b[1024];
	uint32_t rkey = 0;
	int rc;

	gid_of(ip, t.gid);
	rc = gleam_targets(g, &t, 1, b, sizeof b, &rkey);
	if (rc < 0)
		say("targets", rc);
	else {
		printf("rkey %s ", rkey ? "set" : "0");
		print_hex("payload", b, rc);
	}
}

/* A child of fork() uses the group, if that has no thread, and execs: that leaves it no descriptor of
 * the library. */
static void fork_here(struct gleam_group *g)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		int used = gleam_progress(g);

		printf("child %d %s\n", used < 0 ? used : 0, gleam_error());
		if (used < 0)
			printf("destroy %d\n", gleam_destroy(g));
		execl("/bin/sh", "sh", "-c", "echo descriptors $(for f in /proc/$$/fd/*; do readlink $f; done | grep -E 'socket|anon')", (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		printf("error fork: status %d\n", status);
	else
		say("fork", 0);
}

static struct gleam_qp qp;
static struct gleam_mr mr;

static void obey(struct gleam_group *g, char *line)
{
	unsigned char b[GLEAM_BLOB_MAX];
	char *arg = strchr(line, ' ');
	struct gleam_peer peer;
	struct gleam_window w;
	int rc;

	if (arg)
		*arg++ = 0;
	if (!strcmp(line, "export")) {
		rc = gleam_export(g, &qp, &mr, b, sizeof b);
		if (rc < 0)
			say(line, rc);
		else
			print_hex("blob", b, rc);
	} else if (!strcmp(line, "import"))
		say(line, gleam_import(g, b, from_hex(arg, b, sizeof b)));
	else if (!strcmp(line, "describe")) {
		rc = gleam_describe(g, b, sizeof b);
		if (rc < 0)
			say(line, rc);
		else
			print_hex("blob", b, rc);
	} else if (!strcmp(line, "peer")) {
		rc = gleam_peer(g, &peer);
		if (rc < 0)
			say(line, rc);
		else
			printf("peer %s 0x%x %u\n", peer.ip, peer.qp_num, peer.path_mtu_bytes);
	} else if (!strcmp(line, "connected"))
		say(line, gleam_connected(g, NULL));
	else if (!strcmp(line, "window")) {
		rc = gleam_window(g, &w);
		if (rc < 0)
			say(line, rc);
		else
			printf("window 0x%llx %llu %u members, %d threads\n", (unsigned long long)w.addr, (unsigned long long)w.length, w.members, threads());
	} else if (!strcmp(line, "update"))
		say(line, gleam_update(g, arg ? atoi(arg) : 0));
	else if (!strcmp(line, "remove"))
		say(line, gleam_remove(g, arg, 10000));
	else if (!strcmp(line, "targets"))
		targets(g, arg);
	else if (!strcmp(line, "fork"))
		fork_here(g);
	else if (!strcmp(line, "psn")) /* a restarted queue pair */
		qp.sq_psn = strtoul(arg, NULL, 0);
	else if (!strcmp(line, "leave"))
		say(line, gleam_leave(g, arg ? atoi(arg) : 10000));
	else
		printf("no such command: %s\n", line);
}

int main(int argc, char **argv)
{
	unsigned char key[256];
	struct gleam_attr attr = {.size = sizeof attr, .key_id = 1, .register_timeout_ms = 3000};
	int master = argc == 8 && !strcmp(argv[1], "master");
	struct gleam_group *g;
	char line[1024];
	size_t n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!master && (argc != 6 || strcmp(argv[1], "member")))
		return 2;
	attr.role = master ? GLEAM_MASTER : GLEAM_MEMBER;
	attr.key = key;
	attr.key_len = from_hex(argv[4], key, sizeof key);
	attr.flags = strtoul(argv[master ? 7 : 5], NULL, 0);
	if (master) {
		attr.group_ip = argv[5];
		attr.members = atoi(argv[6]);
		attr.window_base = 0x5000000;
		attr.policy = GLEAM_EVICT;
		attr.lease_ms = 2000; /* so that it ends if nobody makes progress */
	}
	gid_of(argv[2], qp.gid);
	qp.qp_num = strtoul(argv[3], NULL, 0);
	qp.sq_psn = qp.rq_psn = qp.qp_num;
	mr = (struct gleam_mr){.addr = 0x7f0000000000, .length = 1 << 20, .rkey = qp.qp_num};
	g = gleam_create(&attr);
	if (!g) {
		say("create", -1);
		return 1;
	}
	for (;;) {
		struct pollfd p[2] = {{.fd = 0, .events = POLLIN}, {.fd = gleam_fd(g), .events = POLLIN}};
		char *end;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 1;
		if (p[1].revents && gleam_progress(g) == 1)
			print_events(g);
		if (!p[0].revents)
			continue;
		ssize_t got = read(0, line + n, sizeof line - 1 - n);
		if (got <= 0)
			break;
		n += got;
		line[n] = 0;
		while ((end = strchr(line, '\n'))) {
			*end = 0;
			obey(g, line);
			n -= end + 1 - line;
			memmove(line, end + 1, n + 1);
		}
	}
	gleam_destroy(g);
	return 0;
}
