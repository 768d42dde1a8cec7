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

/* Fetches the entries that are older than the first message. */
static void fetch(int fd)
{
	struct entry e;

	for (;;) {
		check(receive_bytes(fd, &e, sizeof e), "the leader", "has hung up");
		if (e.number == 0)
			return;
		memory[e.number - 1] = e;
	}
}

/* Joins the leader's group with the entries that this host has. */
static void join(char **argv, uint64_t have)
{
	struct gleam_attr attr = {
		.size = sizeof attr,
		.role = GLEAM_MEMBER,
		.flags = GLEAM_RECEIVE_ONLY,
		.key = key(),
		.key_len = 32,
		.key_id = 1,
	};
	struct message request = {.have = have}, answer;
	int fd = tcp(argv[2], argv[3], 0);

	/* The queue pair is ready to receive before the leader hears of it. */
	make_node(&node, argv[1], memory, sizeof memory);
	for (int i = 0; i < DEPTH; i++)
		post_receive(&node);
	group = gleam_create(&attr);
	GLEAM(group ? 0 : -1);

	/* The leader gets this host's numbers, and answers with the group's. */
	snprintf(request.ip, sizeof request.ip, "%s", argv[1]);
	request.length = gleam_export(group, &node.numbers, &node.region, request.data, sizeof request.data);
	GLEAM(request.length);
	check(send_bytes(fd, &request, sizeof request), "the leader", "has hung up");
	check(receive_bytes(fd, &answer, sizeof answer), "the leader", "has hung up");
	check(answer.length > 0, "the leader refuses this host", answer.data);
	GLEAM(gleam_import(group, answer.data, answer.length));
	GLEAM(gleam_verbs_connect(&node.rdma, node.qp, &node.numbers, group));
	check(send_signal(fd), "the leader", "has hung up");

	/* From its first message on this host misses nothing. */
	GLEAM(gleam_wait(group, NULL, PATIENCE));
	check(is_readable(node.channel->fd, PATIENCE), "the leader", "sends nothing");
	check(send_signal(fd), "the leader", "has hung up");
	fetch(fd);
	check(send_signal(fd), "the leader", "has hung up");
	close(fd);
}

/* Prints the entries from applied on that are committed, and returns how many are printed by now. */
static uint64_t apply(uint64_t applied)
{
	struct ibv_wc wc;

	while (next_completion(&node, &wc)) {
		check(wc.status == IBV_WC_SUCCESS, "receive", ibv_wc_status_str(wc.status));
		for (; applied < ntohl(wc.imm_data); applied++) /* RC delivers in order: they are all here */
			say("%" PRIu64 " %s", memory[applied].number, memory[applied].text);
		post_receive(&node);
	}
	return applied;
}

int main(int argc, char **argv)
{
	struct gleam_event event = {0};
	uint64_t applied = 0; /* entries that are committed, and printed */

	check(argc == 4, "arguments", "want log-follower IP LEADER_IP PORT");
	while (event.kind != GLEAM_ENDED) {
		join(argv, applied);
		event.kind = 0;
		while (event.kind != GLEAM_ENDED && event.kind != GLEAM_FAILED && event.kind != GLEAM_EVICTED) {
			struct pollfd wait[] = {
				{.fd = node.channel->fd, .events = POLLIN},
				{.fd = gleam_fd(group), .events = POLLIN},
			};

			poll(wait, 2, 100);
			applied = apply(applied);
			if (gleam_next_event(group, &event, 0) == 1)
				fprintf(stderr, "event: %s\n", event.text);
		}
		gleam_destroy(group);
		free_node(&node);
	}
	return 0;
}
