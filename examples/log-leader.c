/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The leader of a replicated log: an entry is committed when its completion comes, which
 * says that K followers have it.
 *
 *     log-leader IP PORT GROUP_IP FOLLOWERS K    each line of standard input becomes an entry
 *
 * IP is an address of this host's RDMA device; followers connect to PORT by TCP. GLEAM_KEY
 * has the 64 hexadecimal digits of key 1 in gleamd's configuration. See README.md.
 */
#include "log.h"

static struct entry memory[SLOTS]; /* the log: entry n is memory[n - 1] */
static struct node node;
static struct gleam_group *group;
static struct gleam_window window;
static uint64_t appended, committed, told; /* told: the commit index that the followers know */
static unsigned in_flight;

/* Posts one message to all followers: an entry, or none. The immediate is the commit index. */
static void post(struct entry *e)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e, .length = sizeof *e, .lkey = node.mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(committed),
		.wr.rdma = {.remote_addr = window.addr, .rkey = window.rkey}};

	if (e) {
		wr.wr_id = e->number;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma.remote_addr += (e->number - 1) * sizeof *e;
	}
	VERB(ibv_post_send(node.qp, &wr, &bad));
	told = committed;
	in_flight++;
}

static void events(int ms)
{
	for (struct gleam_event e; gleam_next_event(group, &e, ms) == 1;)
		say("event: %s", e.text);
}

/* Completions come in the order of the entries. */
static void commit(void)
{
	for (struct ibv_wc wc; next_completion(&node, &wc); in_flight--) {
		if (wc.status != IBV_WC_SUCCESS)
			events(1000); /* say which followers are gone */
		check(wc.status == IBV_WC_SUCCESS, "not committed", ibv_wc_status_str(wc.status));
		if (wc.wr_id)
			say("committed %" PRIu64, committed = wc.wr_id);
	}
}

/* A follower that asks to join; -1 if it may not. */
static int hear(int listener, struct message *m)
{
	int fd = accept(listener, NULL, NULL);

	*m = (struct message){0};
	if (get(fd, m, sizeof *m) && (uint32_t)m->length <= GLEAM_BLOB_MAX && gleam_import(group, m->data, m->length) >= 0)
		return fd;
	m->length = -1;
	snprintf(m->data, sizeof m->data, "%s", gleam_error());
	say("refused %.47s: %s", m->ip, m->data);
	put(fd, m, sizeof *m);
	close(fd);
	return -1;
}

static int tell(int fd)
{
	struct message m = {0};

	GLEAM(m.length = gleam_describe(group, m.data, sizeof m.data));
	return put(fd, &m, sizeof m);
}

/* A follower counts in the quorum from its first message on, which under a quorum may be a later
 * one than the next. It gets empty ones until it has heard one, and then all entries before. */
static int catch_up(int fd, uint64_t have)
{
	for (struct pollfd p = {fd, POLLIN, 0}; poll(&p, 1, 50) == 0; commit(), events(0))
		if (in_flight < DEPTH)
			post(NULL);
	return get(fd, &(char){0}, 1) && put(fd, memory + have, (appended - have) * sizeof *memory) && put(fd, &(struct entry){0}, sizeof *memory) &&
	       get(fd, &(char){0}, 1);
}

/* One more follower, or one that has been away. Nothing is posted meanwhile. */
static void admit(int listener)
{
	struct message m;
	int fd = hear(listener, &m), ok;

	if (fd < 0)
		return;
	ok = m.have <= appended && tell(fd) && get(fd, &(char){0}, 1) && gleam_update(group, PATIENCE) >= 0 && catch_up(fd, m.have);
	say("%.47s, which had %" PRIu64 " entries, %s %s", m.ip, m.have, ok ? "has joined" : "has not joined:", ok ? "" : gleam_error());
	if (!ok)
		gleam_remove(group, m.ip, PATIENCE);
	close(fd);
}

int main(int argc, char **argv)
{
	check(argc == 6, "arguments", "want log-leader IP PORT GROUP_IP FOLLOWERS K");
	struct gleam_attr attr = {.size = sizeof attr, .role = GLEAM_MASTER, .key = key(), .key_len = 32, .key_id = 1, .group_ip = argv[3],
		.members = atoi(argv[4]), .policy = GLEAM_QUORUM, .quorum = atoi(argv[5]),
		.sender_timeout = TIMEOUT, .dead_after_ms = DEAD_AFTER, .lag_ms = LAG};
	int n = attr.members, fds[n], listener = tcp(argv[1], argv[2], 1), more = 1;
	struct message m;

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() tells of all that fgets() has not taken */
	make_node(&node, argv[1], memory, sizeof memory);
	GLEAM((group = gleam_create(&attr)) ? 0 : -1);
	GLEAM(gleam_export(group, &node.numbers, &node.region, m.data, sizeof m.data));
	for (int i = 0; i < n; i++)
		while ((fds[i] = hear(listener, &m)) < 0)
			;
	for (int i = 0; i < n; i++)
		check(tell(fds[i]), "a follower", "went away before the group was there");
	for (int i = 0; i < n; i++)
		check(get(fds[i], &(char){0}, 1), "a follower", "has not connected its queue pair");
	GLEAM(gleam_verbs_connect(&node.rdma, node.qp, &node.numbers, group));
	GLEAM(gleam_wait(group, &window, PATIENCE));
	for (int i = 0; i < n; close(fds[i++]))
		check(catch_up(fds[i], 0), "a follower", "is gone");
	say("leading %d followers", n);
	while (more || in_flight || told < committed) {
		int room = more && appended - committed < DEPTH && appended < SLOTS;
		struct pollfd p[] = {{room ? 0 : -1, POLLIN, 0}, {listener, POLLIN, 0}, {node.channel->fd, POLLIN, 0}, {gleam_fd(group), POLLIN, 0}};

		poll(p, 4, 100);
		commit();
		events(0);
		if (p[0].revents && (more = fgets(memory[appended].text, sizeof memory->text, stdin) != NULL)) {
			memory[appended].text[strcspn(memory[appended].text, "\n")] = 0;
			memory[appended].number = appended + 1;
			post(&memory[appended++]);
		}
		if (!in_flight && told < committed)
			post(NULL);
		if (p[1].revents)
			admit(listener);
	}
	GLEAM(gleam_leave(group, PATIENCE));
}
