/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A follower of a replicated log: prints each entry that is committed. When the switch
 * has removed it, because it was too slow or silent, it joins again with what it has.
 *
 *     log-follower IP LEADER_IP PORT
 *
 * IP is an address of this host's RDMA device. GLEAM_KEY is the leader's. See README.md.
 */
#include "log.h"

static struct entry memory[SLOTS]; /* the log, which the leader writes: entry n is memory[n - 1] */
static struct node node;
static struct gleam_group *group;

/* Joins, and when the first message has come fetches the entries before it. */
static void join(char **argv, uint64_t have)
{
	struct gleam_attr attr = {.size = sizeof attr, .role = GLEAM_MEMBER, .flags = GLEAM_RECEIVE_ONLY, .key = key(), .key_len = 32, .key_id = 1};
	struct message m = {.have = have};
	int fd = tcp(argv[2], argv[3], 0);

	make_node(&node, argv[1], memory, sizeof memory);
	for (int i = 0; i < DEPTH; i++)
		receive(&node);
	snprintf(m.ip, sizeof m.ip, "%s", argv[1]);
	GLEAM((group = gleam_create(&attr)) ? 0 : -1);
	GLEAM(m.length = gleam_export(group, &node.numbers, &node.region, m.data, sizeof m.data));
	check(put(fd, &m, sizeof m) && get(fd, &m, sizeof m), "the leader", "has hung up");
	check(m.length > 0, "the leader refuses this host", m.data);
	GLEAM(gleam_import(group, m.data, m.length));
	GLEAM(gleam_verbs_connect(&node.rdma, node.qp, &node.numbers, group));
	check(put(fd, "", 1), "the leader", "has hung up");
	GLEAM(gleam_wait(group, NULL, PATIENCE));
	check(poll(&(struct pollfd){node.channel->fd, POLLIN, 0}, 1, PATIENCE) == 1, "the leader", "sends nothing");
	check(put(fd, "", 1), "the leader", "has hung up"); /* no message from here on is missed */
	for (struct entry e = {.number = 1}; e.number;) {
		check(get(fd, &e, sizeof e), "the leader", "has hung up");
		if (e.number)
			memory[e.number - 1] = e;
	}
	check(put(fd, "", 1), "the leader", "has hung up");
	close(fd);
}

int main(int argc, char **argv)
{
	struct gleam_event e = {0};
	uint64_t applied = 0; /* entries that are committed, and printed */
	struct ibv_wc wc;

	check(argc == 4, "arguments", "want log-follower IP LEADER_IP PORT");
	while (e.kind != GLEAM_ENDED) {
		join(argv, applied);
		for (e.kind = 0; e.kind != GLEAM_ENDED && e.kind != GLEAM_FAILED && e.kind != GLEAM_EVICTED;) {
			struct pollfd p[] = {{node.channel->fd, POLLIN, 0}, {gleam_fd(group), POLLIN, 0}};

			poll(p, 2, 100);
			for (; next_completion(&node, &wc); receive(&node)) {
				check(wc.status == IBV_WC_SUCCESS, "receive", ibv_wc_status_str(wc.status));
				for (; applied < ntohl(wc.imm_data); applied++) /* RC delivers in order: they are all here */
					say("%" PRIu64 " %s", memory[applied].number, memory[applied].text);
			}
			if (gleam_next_event(group, &e, 0) == 1)
				fprintf(stderr, "event: %s\n", e.text);
		}
		gleam_destroy(group);
		free_node(&node);
	}
	return 0;
}
