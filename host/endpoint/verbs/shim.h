// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// What cgo cannot call (inline functions and macros of verbs.h), or what would
// cost more than one crossing from Go to C. Structures here have no pointers, so
// Go may allocate them. Functions that return
// an int return 0, a count, or a negative errno.

#ifndef GLEAM_VERBS_SHIM_H
#define GLEAM_VERBS_SHIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

// endpoint.Status is numbered as enum ibv_wc_status.
_Static_assert(IBV_WC_LOC_LEN_ERR == 1 && IBV_WC_LOC_QP_OP_ERR == 2 && IBV_WC_LOC_PROT_ERR == 4 &&
	       IBV_WC_WR_FLUSH_ERR == 5 && IBV_WC_BAD_RESP_ERR == 7 && IBV_WC_LOC_ACCESS_ERR == 8 &&
	       IBV_WC_REM_INV_REQ_ERR == 9 && IBV_WC_REM_ACCESS_ERR == 10 && IBV_WC_REM_OP_ERR == 11 &&
	       IBV_WC_RETRY_EXC_ERR == 12 && IBV_WC_RNR_RETRY_EXC_ERR == 13 && IBV_WC_FATAL_ERR == 19 &&
	       IBV_WC_GENERAL_ERR == 21, "enum ibv_wc_status");

// A work request. op is an enum ibv_wr_opcode; receives do not use it.
struct gleam_wr {
	uint64_t wr_id;
	uint64_t addr, remote_addr;
	uint32_t len, lkey, rkey, imm, op;
};

// A completion.
struct gleam_wc {
	uint64_t wr_id;
	uint32_t status, opcode, byte_len, has_imm, imm;
};

// How a queue pair is to be connected.
struct gleam_path {
	uint8_t dgid[16];
	uint32_t dest_qpn, rq_psn, sq_psn, mtu;
	uint8_t port, sgid_index, hop_limit, traffic_class;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
};

// How far a call came: n work requests or completions, and an errno if it
// stopped there.
struct gleam_result {
	int n, err, armed;
};

enum { GLEAM_BATCH = 32 };

static inline int gleam_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	return -ibv_query_port(ctx, port, attr);
}

// A macro in verbs.h. With the buffer's own address for iova it is ibv_reg_mr.
static inline struct ibv_mr *gleam_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return ibv_reg_mr_iova(pd, addr, len, iova, access);
}

static inline struct ibv_qp *gleam_create_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t sends, uint32_t recvs)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	return ibv_create_qp(pd, &a);
}

static inline int gleam_to_init(struct ibv_qp *qp, uint8_t port)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .pkey_index = 0, .port_num = port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int gleam_to_rtr(struct ibv_qp *qp, const struct gleam_path *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)p->mtu,
		.dest_qp_num = p->dest_qpn, .rq_psn = p->rq_psn,
		// Groups carry no READ; some drivers do not take 0.
		.max_dest_rd_atomic = 1, .min_rnr_timer = p->min_rnr_timer,
		.ah_attr = {
			.is_global = 1, .port_num = p->port,
			.grh = { .sgid_index = p->sgid_index, .hop_limit = p->hop_limit, .traffic_class = p->traffic_class },
		},
	};
	memcpy(a.ah_attr.grh.dgid.raw, p->dgid, sizeof p->dgid);
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static inline int gleam_to_rts(struct ibv_qp *qp, const struct gleam_path *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS, .sq_psn = p->sq_psn, .max_rd_atomic = 1,
		.timeout = p->timeout, .retry_cnt = p->retry_cnt, .rnr_retry = p->rnr_retry,
	};
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
}

static inline int gleam_to_err(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	return -ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

// Posts at most GLEAM_BATCH sends with one doorbell.
static inline struct gleam_result gleam_post_send(struct ibv_qp *qp, const struct gleam_wr *w, int n)
{
	struct ibv_send_wr wr[GLEAM_BATCH], *bad = NULL;
	struct ibv_sge sge[GLEAM_BATCH];
	int i, err;

	memset(wr, 0, n * sizeof wr[0]);
	for (i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ .addr = w[i].addr, .length = w[i].len, .lkey = w[i].lkey };
		wr[i].wr_id = w[i].wr_id;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = w[i].len > 0;
		wr[i].opcode = (enum ibv_wr_opcode)w[i].op;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].imm_data = htonl(w[i].imm);
		wr[i].wr.rdma.remote_addr = w[i].remote_addr;
		wr[i].wr.rdma.rkey = w[i].rkey;
	}
	err = ibv_post_send(qp, wr, &bad);
	if (err)
		n = bad ? (int)(bad - wr) : 0;
	return (struct gleam_result){ .n = n, .err = err };
}

// Likewise for receives.
static inline struct gleam_result gleam_post_recv(struct ibv_qp *qp, const struct gleam_wr *w, int n)
{
	struct ibv_recv_wr wr[GLEAM_BATCH], *bad = NULL;
	struct ibv_sge sge[GLEAM_BATCH];
	int i, err;

	for (i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ .addr = w[i].addr, .length = w[i].len, .lkey = w[i].lkey };
		wr[i] = (struct ibv_recv_wr){
			.wr_id = w[i].wr_id, .next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i], .num_sge = w[i].len > 0,
		};
	}
	err = ibv_post_recv(qp, wr, &bad);
	if (err)
		n = bad ? (int)(bad - wr) : 0;
	return (struct gleam_result){ .n = n, .err = err };
}

// Takes up to GLEAM_BATCH completions. If there is none and arm is set it asks
// for an event, and looks again for what came before the device heard of it.
static inline struct gleam_result gleam_poll(struct ibv_cq *cq, struct gleam_wc *out, int n, int arm)
{
	struct gleam_result r = { 0 };
	struct ibv_wc wc[GLEAM_BATCH];
	int i;

	if (n > GLEAM_BATCH)
		n = GLEAM_BATCH;
	r.n = ibv_poll_cq(cq, n, wc);
	if (r.n == 0 && arm) {
		r.err = ibv_req_notify_cq(cq, 0);
		if (r.err)
			return r;
		r.armed = 1;
		r.n = ibv_poll_cq(cq, n, wc);
	}
	if (r.n < 0)
		return (struct gleam_result){ .err = EIO, .armed = r.armed }; // libibverbs says no more
	for (i = 0; i < r.n; i++) {
		int has_imm = (wc[i].wc_flags & IBV_WC_WITH_IMM) != 0;
		out[i] = (struct gleam_wc){
			.wr_id = wc[i].wr_id, .status = wc[i].status, .opcode = wc[i].opcode, .byte_len = wc[i].byte_len,
			.has_imm = has_imm, .imm = has_imm ? ntohl(wc[i].imm_data) : 0,
		};
	}
	return r;
}

// Takes one event of a channel that does not block: -EAGAIN if there is none.
static inline int gleam_next_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		return -errno;
	ibv_ack_cq_events(cq, 1);
	return 1;
}

#endif
