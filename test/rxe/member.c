// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0
//
// member GROUP PORT OWN-ADDRESS send|receive MESSAGES BYTES [wait] joins a group by librdmacm
// alone, sends messages or compares those that come, and leaves. It knows nothing of Gleam: it
// would do the same with a program that listens at that address. With wait it then waits
// until the other end disconnects. Exit codes: 0 done, 1 an error, 3 rejected (the
// reason is printed).

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define DEPTH 32

static int fail(const char *what)
{
	fprintf(stderr, "member: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned char byte_at(long message, long i) { return message * 31 + i * 7 + i / 251; }

static void complete(struct rdma_cm_id *id, int sends)
{
	struct ibv_wc wc;

	if ((sends ? rdma_get_send_comp(id, &wc) : rdma_get_recv_comp(id, &wc)) <= 0)
		fail("completion");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "member: completion with status %d, %s\n", wc.status, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc < 7)
		return fprintf(stderr, "member GROUP PORT OWN-ADDRESS send|receive MESSAGES BYTES [wait]\n"), 2;
	int sends = !strcmp(argv[4], "send");
	long messages = atol(argv[5]), bytes = atol(argv[6]);
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, own = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *to, *from;
	struct ibv_qp_init_attr attr = {.cap = {DEPTH, DEPTH, 1, 1, 0}, .sq_sig_all = 1, .qp_type = IBV_QPT_RC};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(argv[3], NULL, &own, &from))
		fail(argv[3]);
	hints.ai_src_addr = from->ai_src_addr;
	hints.ai_src_len = from->ai_src_len;
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &to))
		fail("resolve the group");
	for (int tries = 0; rdma_create_ep(&id, to, NULL, &attr); tries++) // librdmacm gives ARP 2 s: two packets
		if (errno != ETIMEDOUT || tries == 5)
			fail("resolve the group");
	char *memory = malloc(DEPTH * bytes);
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, DEPTH * bytes);
	if (!mr)
		fail("register memory");
	for (long i = 0; i < DEPTH && !sends; i++) // before the first message can come
		if (rdma_post_recv(id, (void *)i, memory + i * bytes, bytes, mr))
			fail("post a receive");
	if (rdma_connect(id, &param)) {
		if (!id->event || id->event->event != RDMA_CM_EVENT_REJECTED)
			fail("connect");
		const unsigned char *data = id->event->param.conn.private_data;
		int length = id->event->param.conn.private_data_len;
		printf("rejected: reason %d, code %d, %.*s\n", id->event->status, length > 1 ? data[1] : 0, length > 3 ? length - 3 : 0, (const char *)data + 3);
		return 3;
	}
	printf("connected\n");
	fflush(stdout);
	for (long n = 0; n < messages; n++) {
		char *at = memory + n % DEPTH * bytes;
		if (sends) {
			for (long i = 0; i < bytes; i++)
				at[i] = byte_at(n, i);
			if (rdma_post_send(id, (void *)n, at, bytes, mr, 0))
				fail("post a send");
			complete(id, 1);
			continue;
		}
		complete(id, 0);
		for (long i = 0; i < bytes; i++)
			if ((unsigned char)at[i] != byte_at(n, i))
				return fprintf(stderr, "member: message %ld differs at byte %ld\n", n, i), 1;
		if (rdma_post_recv(id, (void *)n, at, bytes, mr))
			fail("post a receive");
	}
	printf("%ld messages of %ld bytes %s\n", messages, bytes, sends ? "sent" : "received and compared");
	fflush(stdout);
	struct rdma_cm_event *event;
	if (argc > 7 && !rdma_get_cm_event(id->channel, &event))
		printf("%s\n", rdma_event_str(event->event));
	rdma_disconnect(id);
	return 0;
}
