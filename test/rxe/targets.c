// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0
//
// targets GROUP_IP IP... makes a group of one queue pair at the RDMA device of each IP by libgleam's
// blobs, which it passes on by itself, as MPI would. The first is the master. Two of them send in
// turn: each message goes to memory of its own at every receiver, in one of two regions, which
// gleam_targets() names before. Then all memory is compared. GLEAM_KEY has 64 hexadecimal
// digits.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gleam_verbs.h"

enum { MOST = 8, REGIONS = 2, ROOM = 1 << 18, MESSAGES = 12, PLACE = 1 << 14, PAYLOAD = 1024, SOURCES = 2, PATIENCE = 60 };

struct member {
	struct gleam_verbs verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	unsigned char *memory[REGIONS], *want[REGIONS], *out; // out: what it sends, and target messages
	struct ibv_mr *mr[REGIONS], *out_mr;
	struct gleam_qp own;
	struct gleam_group *group;
};

static struct member all[MOST];
static int members;

static void check(int ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "targets: %s: %s\n", what, why);
	exit(1);
}
#define VERB(call) do { int rc_ = (call); check(rc_ == 0, #call, strerror(rc_ > 0 ? rc_ : errno)); } while (0)
#define MAKE(call) check((call) != NULL, #call, strerror(errno))
#define GLEAM(call) check((call) >= 0, #call, gleam_error())

static void make_qp(struct member *m, const char *ip)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_qp_init_attr make = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = SOURCES * MESSAGES, .max_send_sge = 1, .max_recv_sge = 1}};

	VERB(-gleam_verbs_open(&m->verbs, ip));
	m->verbs.timeout = 18;
	MAKE(m->pd = ibv_alloc_pd(m->verbs.context));
	MAKE(m->cq = ibv_create_cq(m->verbs.context, 2 * SOURCES * MESSAGES, NULL, NULL, 0));
	for (int r = 0; r < REGIONS; r++) {
		MAKE(m->memory[r] = calloc(1, ROOM));
		MAKE(m->want[r] = calloc(1, ROOM));
		MAKE(m->mr[r] = ibv_reg_mr(m->pd, m->memory[r], ROOM, access));
	}
	MAKE(m->out = calloc(1, PLACE + PAYLOAD));
	MAKE(m->out_mr = ibv_reg_mr(m->pd, m->out, PLACE + PAYLOAD, IBV_ACCESS_LOCAL_WRITE));
	make.send_cq = make.recv_cq = m->cq;
	MAKE(m->qp = ibv_create_qp(m->pd, &make));
	VERB(-gleam_verbs_init(&m->verbs, m->qp, &m->own));
}

static void connect_qp(struct member *m)
{
	struct gleam_peer peer;
	char why[200] = "";

	GLEAM(gleam_peer(m->group, &peer));
	check(!gleam_verbs_rts(&m->verbs, m->qp, &m->own, &peer, why, sizeof why), "connecting", why);
	for (int i = 0; i < SOURCES * MESSAGES; i++) {
		struct ibv_recv_wr *bad, wr = {.wr_id = i};
		VERB(ibv_post_recv(m->qp, &wr, &bad));
	}
}

static void post(struct member *m, int opcode, void *at, int length, uint64_t to, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = length, .lkey = m->out_mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .wr.rdma = {.remote_addr = to, .rkey = rkey}};

	VERB(ibv_post_send(m->qp, &wr, &bad));
}

static void complete(struct member *m, int completions, const char *what)
{
	struct ibv_wc wc;

	for (time_t end = time(NULL) + PATIENCE; completions > 0;) {
		int n = ibv_poll_cq(m->cq, 1, &wc);
		check(n >= 0 && time(NULL) < end, what, "no completion in time");
		check(n == 0 || wc.status == IBV_WC_SUCCESS, what, ibv_wc_status_str(wc.status));
		completions -= n;
	}
}

// send_one sends message i of a source: 1 to PLACE - 100 bytes, 60 bytes behind the target.
static void send_one(int source, int i)
{
	struct member *m = &all[source];
	struct gleam_target to[MOST];
	int n = 0, number = source * MESSAGES + i, length = 1 + number * 1361 % (PLACE - 100);
	uint32_t rkey;

	for (int b = 0; b < length; b++)
		m->out[b] = number * 37 + b * 5 + b / 253;
	for (int k = 0; k < members; k++) {
		struct member *x = &all[k];
		int r = (i + k + source) % REGIONS, place = (number * (2 * k + 1) % (ROOM / PLACE)) * PLACE;
		if (k == source)
			continue;
		memcpy(to[n].gid, x->own.gid, 16);
		to[n].addr = (uintptr_t)x->memory[r] + place;
		to[n++].rkey = x->mr[r]->rkey;
		memcpy(x->want[r] + place + 60, m->out, length);
	}
	int bytes = gleam_targets(m->group, to, n, m->out + PLACE, PAYLOAD, &rkey);
	GLEAM(bytes);
	post(m, IBV_WR_RDMA_WRITE, m->out + PLACE, bytes, UINT64_MAX, rkey);
	post(m, IBV_WR_RDMA_WRITE_WITH_IMM, m->out, length, 60, rkey);
	complete(m, 2, "send");
}

int main(int argc, char **argv)
{
	unsigned char key[32], blob[MOST][GLEAM_BLOB_MAX], described[GLEAM_BLOB_MAX];
	const char *hex = getenv("GLEAM_KEY");
	int length[MOST], described_length;

	members = argc - 2;
	check(members >= 3 && members <= MOST, "arguments", "see the beginning of targets.c");
	for (int i = 0; i < 32; i++)
		check(hex && strlen(hex) == 64 && sscanf(hex + 2 * i, "%2hhx", &key[i]) == 1, "GLEAM_KEY", "want 64 hexadecimal digits");
	for (int k = 0; k < members; k++) {
		struct gleam_attr attr = {.size = sizeof attr, .role = k ? GLEAM_MEMBER : GLEAM_MASTER, .key = key, .key_len = sizeof key, .key_id = 1,
			.group_ip = k ? NULL : argv[1], .members = k ? 0 : members - 1, .flags = k ? 0 : GLEAM_TARGETS};
		make_qp(&all[k], argv[2 + k]);
		check((all[k].group = gleam_create(&attr)) != NULL, "gleam_create", gleam_error());
		struct gleam_mr window = {.addr = (uintptr_t)all[k].memory[0], .length = ROOM, .rkey = all[k].mr[0]->rkey};
		length[k] = gleam_export(all[k].group, &all[k].own, &window, blob[k], sizeof blob[k]);
		GLEAM(length[k]);
		GLEAM(gleam_import(all[0].group, blob[k], length[k]));
	}
	described_length = gleam_describe(all[0].group, described, sizeof described);
	GLEAM(described_length);
	for (int k = members - 1; k >= 0; k--) { // the master last
		if (k)
			GLEAM(gleam_import(all[k].group, described, described_length));
		connect_qp(&all[k]);
		GLEAM(gleam_connected(all[k].group, NULL));
	}
	int joined = 0;
	for (time_t end = time(NULL) + PATIENCE; joined < members;)
		for (int k = 0; k < members; k++) {
			struct gleam_event e;
			check(time(NULL) < end, "join", "not all have joined in time");
			GLEAM(gleam_progress(all[k].group));
			int n = gleam_next_event(all[k].group, &e, 0);
			GLEAM(n);
			check(n == 0 || e.kind == GLEAM_JOINED, "join", e.text);
			joined += n;
		}

	for (int source = 0; source < SOURCES; source++) {
		for (int i = 0; i < MESSAGES; i++)
			send_one(source, i);
		for (int k = 0; k < members; k++)
			if (k != source)
				complete(&all[k], MESSAGES, "receive");
	}
	for (int k = 0; k < members; k++)
		for (int r = 0; r < REGIONS; r++)
			check(!memcmp(all[k].memory[r], all[k].want[r], ROOM), argv[2 + k], r ? "its second region differs" : "its first region differs");
	printf("%d messages by %d sources, each to memory of its own at %d receivers in %d regions: compared\n", SOURCES * MESSAGES, SOURCES, members - 1, REGIONS);
	for (int k = members - 1; k >= 0; k--) {
		GLEAM(gleam_leave(all[k].group, PATIENCE * 1000));
		GLEAM(gleam_destroy(all[k].group));
	}
	return 0;
}
