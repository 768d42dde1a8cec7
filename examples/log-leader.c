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
static uint64_t appended;  /* entries that are posted */
static uint64_t committed; /* entries that K followers have */
static uint64_t told;      /* the commit index that the followers know */
static unsigned in_flight; /* messages that are posted and not completed */

/* Posts one message to all followers: an entry, or none. The immediate is the commit index. */
static void post(struct entry *e)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(committed),
		.wr.rdma = {.remote_addr = window.addr, .rkey = window.rkey},
	};
	struct ibv_send_wr *bad;
	struct ibv_sge sge;

	if (e) {
		sge = (struct ibv_sge){.addr = (uintptr_t)e, .length = sizeof *e, .lkey = node.mr->lkey};
		wr.wr_id = e->number;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma.remote_addr += (e->number - 1) * sizeof *e;
	}
	VERB(ibv_post_send(node.qp, &wr, &bad));
	told = committed;
	in_flight++;
}

/* Prints what the library has heard of the group, within a time. */
static void print_events(int ms)
{
	struct gleam_event event;

	while (gleam_next_event(group, &event, ms) == 1)
		say("event: %s", event.text);
}

/* Serves completions, which come in the order of the entries. */
static void commit(void)
{
	struct ibv_wc wc;

	while (next_completion(&node, &wc)) {
		if (wc.status != IBV_WC_SUCCESS) {
			print_events(1000); /* they name the followers that are gone */
			check(0, "not committed", ibv_wc_status_str(wc.status));
		}
		in_flight--;
		if (wc.wr_id == 0)
			continue; /* a message without an entry */
		committed = wc.wr_id;
		say("committed %" PRIu64, committed);
	}
}

/* Accepts a follower that asks to join, and returns its connection; -1 if it may not join. */
static int accept_follower(int listener, struct message *request)
{
	int fd = accept(listener, NULL, NULL);

	*request = (struct message){0};
	if (receive_bytes(fd, request, sizeof *request) && request->length >= 0 && request->length <= GLEAM_BLOB_MAX &&
	    gleam_import(group, request->data, request->length) >= 0)
		return fd;
	request->length = -1;
	snprintf(request->data, sizeof request->data, "%s", gleam_error());
	say("refused %.47s: %s", request->ip, request->data);
	send_bytes(fd, request, sizeof *request);
	close(fd);
	return -1;
}

/* Sends the group's description to a follower. */
static int send_description(int fd)
{
	struct message answer = {0};

	answer.length = gleam_describe(group, answer.data, sizeof answer.data);
	GLEAM(answer.length);
	return send_bytes(fd, &answer, sizeof answer);
}

/* Brings a follower, which has some entries, to the present. It counts in the quorum from its first
 * message on, which under a quorum may be a later one than the next: it gets messages without an entry
 * until it has heard one, and then all entries before. */
static int catch_up(int fd, uint64_t have)
{
	const struct entry end = {0};

	while (!is_readable(fd, 50)) {
		if (in_flight < DEPTH)
			post(NULL);
		commit();
		print_events(0);
	}
	if (!receive_signal(fd))
		return 0; /* it has hung up */
	return send_bytes(fd, &memory[have], (appended - have) * sizeof memory[0]) && send_bytes(fd, &end, sizeof end) && receive_signal(fd);
}

/* Takes a follower into the group. It may be new, or have been away. No entry is posted meanwhile. */
static void admit(int listener)
{
	struct message request;
	int fd = accept_follower(listener, &request);

	if (fd < 0)
		return;
	if (request.have <= appended && send_description(fd) && receive_signal(fd) && gleam_update(group, PATIENCE) >= 0 &&
	    catch_up(fd, request.have)) {
		say("%.47s, which had %" PRIu64 " entries, has joined", request.ip, request.have);
	} else {
		say("%.47s, which had %" PRIu64 " entries, has not joined: %s", request.ip, request.have, gleam_error());
		gleam_remove(group, request.ip, PATIENCE);
	}
	close(fd);
}

/* Waits for all followers, and makes a group of them. */
static void form_group(int listener, int followers)
{
	struct message message;
	int fds[followers];

	GLEAM(gleam_export(group, &node.numbers, &node.region, message.data, sizeof message.data));
	for (int i = 0; i < followers; i++) {
		do
			fds[i] = accept_follower(listener, &message);
		while (fds[i] < 0);
	}
	for (int i = 0; i < followers; i++)
		check(send_description(fds[i]), "a follower", "went away before the group was there");
	for (int i = 0; i < followers; i++)
		check(receive_signal(fds[i]), "a follower", "has not connected its queue pair");
	GLEAM(gleam_verbs_connect(&node.rdma, node.qp, &node.numbers, group));
	GLEAM(gleam_wait(group, &window, PATIENCE));
	for (int i = 0; i < followers; i++) {
		check(catch_up(fds[i], 0), "a follower", "is gone");
		close(fds[i]);
	}
}

/* Appends the next line of standard input to the log; 0 at its end. */
static int append_line(void)
{
	struct entry *e = &memory[appended];

	if (!fgets(e->text, sizeof e->text, stdin))
		return 0;
	e->text[strcspn(e->text, "\n")] = 0;
	appended++;
	e->number = appended;
	post(e);
	return 1;
}

/* Leads until standard input ends and the followers know that all is committed. */
static void lead(int listener)
{
	enum { INPUT, FOLLOWER, COMPLETION, EVENT, NUM };
	struct pollfd wait[NUM] = {
		[FOLLOWER] = {.fd = listener, .events = POLLIN},
		[COMPLETION] = {.fd = node.channel->fd, .events = POLLIN},
		[EVENT] = {.fd = gleam_fd(group), .events = POLLIN},
	};
	int more = 1;

	while (more || in_flight > 0 || told < committed) {
		int room = appended - committed < DEPTH && appended < SLOTS;

		wait[INPUT] = (struct pollfd){.fd = more && room ? STDIN_FILENO : -1, .events = POLLIN};
		poll(wait, NUM, 100);
		commit();
		print_events(0);
		if (wait[INPUT].revents)
			more = append_line();
		if (in_flight == 0 && told < committed)
			post(NULL);
		if (wait[FOLLOWER].revents)
			admit(listener);
	}
}

int main(int argc, char **argv)
{
	check(argc == 6, "arguments", "want log-leader IP PORT GROUP_IP FOLLOWERS K");
	struct gleam_attr attr = {
		.size = sizeof attr,
		.role = GLEAM_MASTER,
		.key = key(),
		.key_len = 32,
		.key_id = 1,
		.group_ip = argv[3],
		.members = atoi(argv[4]),
		.policy = GLEAM_QUORUM,
		.quorum = atoi(argv[5]),
		.sender_timeout = TIMEOUT,
		.dead_after_ms = DEAD_AFTER,
		.lag_ms = LAG,
	};
	int listener = tcp(argv[1], argv[2], 1);

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() tells of all that fgets() has not taken */
	make_node(&node, argv[1], memory, sizeof memory);
	group = gleam_create(&attr);
	GLEAM(group ? 0 : -1);
	form_group(listener, attr.members);
	say("leading %d followers", attr.members);
	lead(listener);
	GLEAM(gleam_leave(group, PATIENCE));
	return 0;
}
