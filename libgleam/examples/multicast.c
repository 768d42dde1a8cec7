/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Multicast with plain libibverbs: the master's WRITEs land in the memory of all
 * members. libgleam says what the one queue pair connects to.
 *
 *     multicast master DEVICE GID_INDEX HOST:PORT GROUP_IP MEMBERS
 *     multicast member DEVICE GID_INDEX HOST:PORT
 *
 * HOST:PORT is where the master listens. GLEAM_KEY has the 64 hexadecimal digits
 * of key 1 in gleamd's configuration, PATH_MTU bytes (1024), TIMEOUT the queue
 * pair's timeout exponent (18: 1.07 s). With OTHER_NETWORK set, HOST:PORT is of
 * another network than the group's.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gleam.h"

enum { SIZE = 1 << 20, MESSAGES = 4, MESSAGE = SIZE / MESSAGES, PATIENCE = 60000 };

static void check(int ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "multicast: %s: %s\n", what, why);
	exit(1);
}
#define VERB(call) do { int rc = (call); check(rc == 0, #call, strerror(rc > 0 ? rc : errno)); } while (0)
#define MAKE(call) check((call) != NULL, #call, strerror(errno))
#define GLEAM(call) check((call) >= 0, #call, gleam_error())

static long env(const char *name, long otherwise)
{
	return getenv(name) ? strtol(getenv(name), NULL, 0) : otherwise;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	errno = ENODEV;
	return NULL;
}

/* Takes the queue pair by RTR to RTS toward the group; NULL or why not. */
static const char *connect_qp(struct ibv_qp *qp, const struct gleam_peer *peer, const struct gleam_qp *me, int gid_index)
{
	static char why[200];
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = peer->path_mtu, .dest_qp_num = peer->qp_num, .rq_psn = me->rq_psn,
		.min_rnr_timer = 12, .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .sq_psn = me->sq_psn, .timeout = env("TIMEOUT", 18), .retry_cnt = 7, .rnr_retry = 7,
	};
	int rc;

	memcpy(rtr.ah_attr.grh.dgid.raw, peer->gid, 16);
	rc = ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	snprintf(why, sizeof why, "modify to RTR toward %s: %s%s", peer->ip, strerror(rc),
	         rc == ETIMEDOUT ? " (nobody answers ARP for it: is it in gleamd's group_prefixes?)" : "");
	if (rc)
		return why;
	rc = ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	snprintf(why, sizeof why, "modify to RTS: %s", strerror(rc));
	return rc ? why : NULL;
}

/* Waits for one completion of each message. */
static void complete(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;
	int n, done = 0;

	for (time_t end = time(NULL) + PATIENCE / 1000; done < MESSAGES; done += n) {
		n = ibv_poll_cq(cq, 1, &wc);
		check(n >= 0 && time(NULL) < end, what, "no completion in time");
		check(n == 0 || wc.status == IBV_WC_SUCCESS, what, ibv_wc_status_str(wc.status));
		check(n == 0 || (int)wc.wr_id == done, what, "completions are out of order");
	}
}

int main(int argc, char **argv)
{
	int master = argc == 7 && !strcmp(argv[1], "master");
	check(master || (argc == 5 && !strcmp(argv[1], "member")), "arguments", "see the beginning of multicast.c");
	unsigned char key[32], *memory;
	const char *hex = getenv("GLEAM_KEY");
	for (int i = 0; i < 32; i++)
		check(hex && strlen(hex) == 64 && sscanf(hex + 2 * i, "%2hhx", &key[i]) == 1, "GLEAM_KEY", "want 64 hexadecimal digits");

	/* RDMA as ever, up to INIT. */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	MAKE(ctx = open_device(argv[2]));
	MAKE(pd = ibv_alloc_pd(ctx));
	MAKE(cq = ibv_create_cq(ctx, 2 * MESSAGES, NULL, NULL, 0));
	MAKE(memory = calloc(1, SIZE));
	MAKE(mr = ibv_reg_mr(pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	struct ibv_qp_init_attr make = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1}};
	MAKE(qp = ibv_create_qp(pd, &make));
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	VERB(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	VERB(ibv_query_gid(ctx, 1, atoi(argv[3]), &gid));

	/* The group. */
	srand(time(NULL) ^ qp->qp_num);
	struct gleam_attr attr = {.size = sizeof attr, .role = master ? GLEAM_MASTER : GLEAM_MEMBER, .exchange = argv[4],
		.key = key, .key_len = sizeof key, .key_id = 1, .path_mtu = env("PATH_MTU", 1024),
		.group_ip = master ? argv[5] : NULL, .members = master ? atoi(argv[6]) : 0,
		.flags = getenv("OTHER_NETWORK") ? GLEAM_OTHER_NETWORK : 0};
	struct gleam_qp me = {.qp_num = qp->qp_num, .sq_psn = rand() & 0xffffff, .rq_psn = rand() & 0xffffff};
	struct gleam_mr region = {.addr = (uintptr_t)memory, .length = SIZE, .rkey = mr->rkey};
	struct gleam_peer peer;
	struct gleam_window window;
	struct gleam_group *group;
	memcpy(me.gid, gid.raw, 16);
	check((group = gleam_create(&attr)) != NULL, "gleam_create", gleam_error());
	GLEAM(gleam_join(group, &me, &region, &peer, PATIENCE));
	const char *why = connect_qp(qp, &peer, &me, atoi(argv[3]));
	for (int i = 0; i < MESSAGES && !master && !why; i++) { /* receives before the first message can come */
		struct ibv_recv_wr *bad, wr = {.wr_id = i};
		VERB(ibv_post_recv(qp, &wr, &bad));
	}
	GLEAM(gleam_connected(group, why));
	GLEAM(gleam_wait(group, &window, PATIENCE));

	/* Data: the master's bytes reach the memory of all. */
	for (int i = 0; i < SIZE && master; i++)
		memory[i] = i * 7 + i / 4096;
	for (int i = 0; i < MESSAGES && master; i++) {
		struct ibv_sge sge = {.addr = (uintptr_t)memory + i * MESSAGE, .length = MESSAGE, .lkey = mr->lkey};
		struct ibv_send_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.wr.rdma = {.remote_addr = window.addr + i * MESSAGE, .rkey = window.rkey}};
		VERB(ibv_post_send(qp, &wr, &bad));
	}
	complete(cq, master ? "send (gleam group show GROUP_IP at the switch names the member that the group waits for)" : "receive");
	for (int i = 0; i < SIZE; i++)
		check(memory[i] == (unsigned char)(i * 7 + i / 4096), "compare", "bytes differ");
	printf("%s: %d bytes in %d messages %s %s (group of %u, virtual QPN 0x%x)\n", argv[1], SIZE, MESSAGES,
	       master ? "sent to" : "received and compared from", peer.ip, window.members, peer.qp_num);

	/* Members answer until the master, which has its completions, deletes the group. */
	struct gleam_event e = {0};
	while (!master && e.kind != GLEAM_ENDED && e.kind != GLEAM_FAILED)
		check(gleam_next_event(group, &e, PATIENCE) == 1, "waiting for the master to end the group", gleam_error());
	GLEAM(gleam_leave(group, PATIENCE));
	GLEAM(gleam_destroy(group));
	return ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx);
}
