// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0
//
// peer connect|listen ADDRESS PORT STEPS BYTES [wait] [ask] [key=HEX [expect=N]] [OWN-ADDRESS] is one end of a connection
// by librdmacm: it connects to an address, or listens at one of its own. Then it does the steps:
// s10 sends ten messages, i10 ten with immediate data, r10 receives ten and compares them, j10 likewise with
// the immediate data; w1 WRITEs a message to address 0x10000 under R_Key 0x1234, v1 message 100 behind it, with
// immediate data, k1 receives that; c0 and c100 compare what was written to its own memory with that message; d5 does nothing
// for 5 s, p1 waits for a line on standard input. With wait it then
// waits until the other end disconnects. With ask it prints its queue pair and its memory before
// it connects, reads private data without a nonce, in hexadecimal, prints the switch's nonce, and reads its private data. With key=HEX it connects by gleam_cm_connect
// under key 1. With expect=N its REQ makes the group for N members, and WRITEs go to address 0 under R_Key 0. Exit codes: 0 done, 1 an error, 3 rejected (the reason
// is printed), 4 refused to accept (step x).

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "gleam_cm.h"

#define DEPTH 32

static int fail(const char *what)
{
	fprintf(stderr, "peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned char byte_at(long message, long i) { return message * 31 + i * 7 + i / 251; }

/* What the steps i, j, v and k have as the immediate data of a message. */
static uint32_t immediate(long message) { return htonl(0x51000000u + message); }

/* The window of the group. */
static uint64_t window_at = 0x10000;
static uint32_t window_rkey = 0x1234;

/* Posts message n of a step. */
static int post(struct rdma_cm_id *id, char what, long n, char *own, long bytes, struct ibv_mr *mr)
{
	struct ibv_sge sge = {.addr = (uintptr_t)own, .length = bytes, .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .imm_data = immediate(n),
		.opcode = what == 's' ? IBV_WR_SEND : what == 'i' ? IBV_WR_SEND_WITH_IMM : what == 'w' ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.wr.rdma = {.remote_addr = window_at + (what == 'v' ? bytes : 0), .rkey = window_rkey},
	};

	return ibv_post_send(id->qp, &wr, &bad);
}

static struct ibv_wc complete(struct rdma_cm_id *id, int sends)
{
	struct ibv_wc wc;

	if ((sends ? rdma_get_send_comp(id, &wc) : rdma_get_recv_comp(id, &wc)) <= 0)
		fail("completion");
	if (wc.status != IBV_WC_SUCCESS) {
		printf("completion with status %d, %s\n", wc.status, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return fprintf(stderr, "peer connect|listen ADDRESS PORT STEPS BYTES [wait] [ask] [key=HEX [expect=N]] [OWN-ADDRESS]\n"), 2;
	int waits = 0, asks = 0;
	char *own_address = NULL;
	unsigned char key[32];
	struct gleam_cm_attr keyed = {.size = sizeof keyed, .key = key, .key_id = 1};
	for (int i = 6; i < argc; i++)
		if (!strcmp(argv[i], "wait"))
			waits = 1;
		else if (!strcmp(argv[i], "ask"))
			asks = 1;
		else if (!strncmp(argv[i], "key=", 4))
			while (keyed.key_len < sizeof key && sscanf(argv[i] + 4 + 2 * keyed.key_len, "%2hhx", &key[keyed.key_len]) == 1)
				keyed.key_len++;
		else if (!strncmp(argv[i], "expect=", 7))
			keyed.expect = atoi(argv[i] + 7), window_at = window_rkey = 0;
		else
			own_address = argv[i];
	int listens = !strcmp(argv[1], "listen");
	long bytes = atol(argv[5]);
	struct rdma_addrinfo hints = {.ai_flags = listens ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, passive = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *to, *from;
	struct ibv_qp_init_attr attr = {.cap = {DEPTH, DEPTH, 1, 1, 0}, .sq_sig_all = 1, .qp_type = IBV_QPT_RC};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id, *listener;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (own_address) {
		if (rdma_getaddrinfo(own_address, NULL, &passive, &from))
			fail(own_address);
		hints.ai_src_addr = from->ai_src_addr;
		hints.ai_src_len = from->ai_src_len;
	}
	if (rdma_getaddrinfo(argv[2], argv[3], &hints, &to))
		fail("resolve the address");
	for (int tries = 0; rdma_create_ep(&id, to, NULL, &attr); tries++) // librdmacm gives ARP 2 s: two packets
		if (errno != ETIMEDOUT || tries == 5)
			fail("resolve the address");
	if (listens) {
		listener = id;
		if (rdma_listen(listener, 4))
			fail("listen");
		printf("listening\n");
		if (rdma_get_request(listener, &id))
			fail("get a request");
		if (argv[4][0] == 'x')
			return rdma_reject(id, "busy", 5), printf("rejected it\n"), 4;
		printf("private data: %.20s\n", (const char *)id->event->param.conn.private_data);
	}
	char *memory = malloc((DEPTH + 1) * bytes), *own = memory + DEPTH * bytes;
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, (DEPTH + 1) * bytes);
	if (!mr)
		fail("register memory");
	for (long i = 0; i < DEPTH; i++) // before the first message can come
		if (rdma_post_recv(id, (void *)i, memory + i * bytes, bytes, mr))
			fail("post a receive");
	char *window = calloc(2, bytes);
	struct ibv_mr *writable = rdma_reg_write(id, window, 2 * bytes);
	if (!writable)
		fail("register the window");
	param.private_data = "hello", param.private_data_len = 6;
	unsigned char data[56];
	if (asks) {
		printf("qpn %u va %llu rkey %u\n", id->qp->qp_num, (unsigned long long)(uintptr_t)window, writable->rkey);
		for (int proven = 0; proven < 2; proven++) {
			for (int i = 0; i < 56; i++)
				if (scanf("%2hhx", &data[i]) != 1)
					fail("private data");
			if (!proven)
				printf("nonce %llu\n", (unsigned long long)gleam_cm_nonce(id, id->qp->qp_num, &param, data));
		}
		param.private_data = data, param.private_data_len = sizeof(data);
	}
	struct gleam_mr region = {.addr = (uintptr_t)window, .length = 2 * bytes, .rkey = writable->rkey};
	keyed.mr = &region;
	if (listens ? rdma_accept(id, &param) : keyed.key_len ? gleam_cm_connect(id, &param, &keyed) : rdma_connect(id, &param)) {
		if (gleam_error()[0])
			printf("%s\n", gleam_error());
		if (!id->event || id->event->event != RDMA_CM_EVENT_REJECTED)
			fail(listens ? "accept" : "connect");
		const unsigned char *data = id->event->param.conn.private_data;
		int length = id->event->param.conn.private_data_len;
		printf("rejected: reason %d, code %d, %.*s\n", id->event->status, length > 1 ? data[1] : 0, length > 3 ? length - 3 : 0, (const char *)data + 3);
		return 3;
	}
	printf("connected\n");
	long received = 0;
	for (char *step = argv[4]; *step;) {
		char what = *step++;
		int sends = strchr("siwv", what) != NULL;
		long messages = strtol(step, &step, 10);
		if (what == 'd') {
			sleep(messages);
			continue;
		}
		if (what == 'p') {
			for (int c; messages && (c = getchar()) != EOF;)
				messages -= c == '\n';
			continue;
		}
		if (what == 'c') {
			for (long i = 0; i < bytes; i++)
				if ((unsigned char)window[i + (messages >= 100 ? bytes : 0)] != byte_at(messages, i))
					return printf("the window differs at byte %ld from message %ld\n", i, messages), 1;
			printf("window of %ld bytes compared\n", bytes);
			continue;
		}
		for (long n = 0; n < messages; n++) {
			if (sends) {
				long message = what == 'v' ? n + 100 : n;
				for (long i = 0; i < bytes; i++)
					own[i] = byte_at(message, i);
				if (post(id, what, message, own, bytes, mr))
					fail("post a send");
				complete(id, 1);
				continue;
			}
			char *at = memory + received++ % DEPTH * bytes;
			struct ibv_wc wc = complete(id, 0);
			if (what != 'r' && (!(wc.wc_flags & IBV_WC_WITH_IMM) || wc.imm_data != immediate(what == 'k' ? n + 100 : n)))
				return printf("message %ld has flags 0x%x, immediate data 0x%x\n", n, wc.wc_flags, ntohl(wc.imm_data)), 1;
			for (long i = 0; i < bytes && what != 'k'; i++)
				if ((unsigned char)at[i] != byte_at(n, i))
					return printf("message %ld differs at byte %ld\n", n, i), 1;
			if (rdma_post_recv(id, (void *)n, at, bytes, mr))
				fail("post a receive");
		}
		printf("%ld messages of %ld bytes %s\n", messages, bytes, sends ? "sent" : "received and compared");
	}
	struct rdma_cm_event *event;
	if (waits && !rdma_get_cm_event(id->channel, &event))
		printf("%s\n", rdma_event_str(event->event));
	rdma_disconnect(id);
	printf("done\n");
	return 0;
}
