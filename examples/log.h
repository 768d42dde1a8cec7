/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What leader and follower of the replicated log share: the entry, a queue pair of
 * libibverbs with its completions, and messages over TCP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gleam_verbs.h>

enum {
	SLOTS = 4096,
	DEPTH = 32,       /* entries in flight, and receives posted */
	PATIENCE = 60000, /* ms: the longest wait for a host or the switch */
	TIMEOUT = 16,     /* of the queue pairs: 268 ms. 14 with RNICs */
	DEAD_AFTER = 800, /* ms: more than TIMEOUT, less than 7 of them. 0 with RNICs: the library's */
	LAG = 5000,       /* ms that a follower may be behind another one before it is removed */
};

struct entry {
	uint64_t number; /* from 1 */
	char     text[248];
};

/* What a follower says on joining, and the leader's answer: a blob, or why not. */
struct message {
	uint64_t have;   /* committed entries that the follower has */
	int32_t  length; /* of the blob; -1: data is a text */
	char     ip[48], data[512];
};

struct node {
	struct gleam_verbs rdma;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct gleam_qp numbers; /* of the queue pair */
	struct gleam_mr region;
};

/* Ends the program, and says what has failed and why, unless all is well. */
static inline void check(int ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

/* A call of libibverbs that returns 0 or an error, one that returns what it has made, and one of libgleam. */
#define VERB(call) do { int rc_ = (call); check(rc_ == 0, #call, strerror(rc_ > 0 ? rc_ : rc_ < -1 ? -rc_ : errno)); } while (0)
#define MAKE(call) check((call) != NULL, #call, strerror(errno))
#define GLEAM(call) check((call) >= 0, #call, gleam_error())

/* Prints a line at once. */
static inline void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* The key of the group, from the environment. */
static inline const void *key(void)
{
	static unsigned char k[32];
	const char *hex = getenv("GLEAM_KEY");

	check(hex && strlen(hex) == 64, "GLEAM_KEY", "want 64 hexadecimal digits");
	for (int i = 0; i < 32; i++)
		check(sscanf(hex + 2 * i, "%2hhx", &k[i]) == 1, "GLEAM_KEY", "want 64 hexadecimal digits");
	return k;
}

/* A queue pair in INIT at the RDMA device that has the address, and memory that the group may write to. */
static inline void make_node(struct node *n, const char *ip, void *memory, size_t size)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH + 1, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
	};

	VERB(gleam_verbs_open(&n->rdma, ip));
	n->rdma.timeout = TIMEOUT;
	MAKE(n->channel = ibv_create_comp_channel(n->rdma.context));
	VERB(fcntl(n->channel->fd, F_SETFL, O_NONBLOCK));
	MAKE(n->cq = ibv_create_cq(n->rdma.context, 2 * DEPTH + 1, NULL, n->channel, 0));
	VERB(ibv_req_notify_cq(n->cq, 0));
	MAKE(n->pd = ibv_alloc_pd(n->rdma.context));
	MAKE(n->mr = ibv_reg_mr(n->pd, memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	init.send_cq = init.recv_cq = n->cq;
	MAKE(n->qp = ibv_create_qp(n->pd, &init));
	VERB(gleam_verbs_init(&n->rdma, n->qp, &n->numbers));
	n->region = (struct gleam_mr){.addr = (uintptr_t)memory, .length = size, .rkey = n->mr->rkey};
}

static inline void free_node(struct node *n)
{
	VERB(ibv_destroy_qp(n->qp));
	VERB(ibv_dereg_mr(n->mr));
	VERB(ibv_dealloc_pd(n->pd));
	VERB(ibv_destroy_cq(n->cq));
	VERB(ibv_destroy_comp_channel(n->channel));
	VERB(ibv_close_device(n->rdma.context));
}

/* The next completion; false if there is none, and then the channel announces it. */
static inline int next_completion(struct node *n, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_poll_cq(n->cq, 1, wc) == 1)
		return 1;
	while (ibv_get_cq_event(n->channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
	VERB(ibv_req_notify_cq(n->cq, 0));
	return ibv_poll_cq(n->cq, 1, wc) == 1;
}

/* Posts a receive without memory: WRITEs need none. */
static inline void post_receive(struct node *n)
{
	struct ibv_recv_wr *bad, wr = {0};

	VERB(ibv_post_recv(n->qp, &wr, &bad));
}

/* Sends bytes over TCP; 0 if the other end has hung up. */
static inline int send_bytes(int fd, const void *data, size_t size)
{
	return send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Receives as many bytes; 0 if the other end has hung up, or sends nothing for too long. */
static inline int receive_bytes(int fd, void *data, size_t size)
{
	struct timeval t = {.tv_sec = PATIENCE / 1000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

/* A signal is one byte: the end that sends it has done its step. */
static inline int send_signal(int fd)
{
	const char step = 0;

	return send_bytes(fd, &step, sizeof step);
}

static inline int receive_signal(int fd)
{
	char step;

	return receive_bytes(fd, &step, sizeof step);
}

/* Waits until there is something to read; 0 if nothing comes within the time. */
static inline int is_readable(int fd, int ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, ms) == 1;
}

/* A TCP socket that listens, or that is connected as soon as somebody listens there. */
static inline int tcp(const char *ip, const char *port, int listens)
{
	struct addrinfo *a, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	int rc = getaddrinfo(ip, port, &hints, &a), fd = -1;

	check(rc == 0, ip, gai_strerror(rc));
	for (int ms = 0; fd < 0 && ms < PATIENCE; ms += 100) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
		if (listens) {
			check(bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 16) == 0, ip, strerror(errno));
			break;
		}
		if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			break;
		close(fd);
		fd = -1;
		poll(NULL, 0, 100);
	}
	check(fd >= 0, ip, "no leader listens there");
	freeaddrinfo(a);
	return fd;
}
