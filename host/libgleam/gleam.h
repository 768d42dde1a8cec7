/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libgleam: join an RDMA multicast group with a queue pair of your own.
 *
 * The library exchanges connection states between the members of a group and
 * registers the group with the switch. It does not touch RDMA devices: the
 * application creates its reliable connected queue pair, and modifies it to RTR
 * and RTS toward the peer that gleam_join() names.
 *
 *     g = gleam_create(&attr);             describe the group, or where its master is
 *     gleam_join(g, &qp, &mr, &peer, ms);  exchange: learn what to connect to
 *     ibv_modify_qp(RTR), (RTS)            the application's part
 *     gleam_connected(g, NULL);
 *     gleam_wait(g, &window, ms);          registered: data may flow
 *     ...
 *     gleam_leave(g, ms); gleam_destroy(g);
 *
 * A program that has an exchange of its own, as MPI does, gives no address for one
 * and passes on blobs instead; the library then has no thread:
 *
 *     gleam_export(g, &qp, &mr, blob, n);  everybody: my numbers, for the master
 *     gleam_import(g, blob, n);            master: each member's; then
 *     gleam_describe(g, blob, n);          the group's numbers, for the members
 *     gleam_import(g, blob, n);            members
 *     gleam_peer(g, &peer);                what to connect to
 *     gleam_connected(g, NULL);            the master last: when all the others have
 *     gleam_wait(g, &window, ms);          or gleam_fd(), gleam_progress(), gleam_next_event()
 *
 * See gleam(3) and docs/APPLICATIONS.md.
 */
#ifndef GLEAM_H
#define GLEAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A participation in one group. Functions may be called from any thread. */
struct gleam_group;

/* Functions that return int return 0 or a positive number if all is well, and a
 * negative errno value if not; gleam_error() then has the cause and what to do:
 *   -EINVAL     an argument, or the state, is not fit for the call
 *   -ETIMEDOUT  the time given is over; the text says what was missing
 *   -ENODATA    gleam_next_event: the group is over and all events are read
 *   -EIO        everything else, such as a switch or a member that says no
 */

enum gleam_role {
	GLEAM_MASTER = 1, /* makes the group; exactly one per group */
	GLEAM_MEMBER = 2,
};

enum gleam_policy {
	GLEAM_STRICT = 0, /* one member's fatal error ends the group */
	GLEAM_EVICT  = 1, /* the switch removes such a member, and the group goes on */
	GLEAM_QUORUM = 2, /* .quorum receivers have what is acknowledged; the others follow, or are removed */
};

#define GLEAM_FOREVER 0xffffffffu /* for .dead_after_ms */

enum gleam_flags {
	GLEAM_INSECURE  = 1, /* no key: the exchange is plain text and open to all, and the switch must allow it */
	GLEAM_NO_REPAIR = 2, /* master: losses are repaired by the senders alone, not by the switch */
	GLEAM_OTHER_NETWORK = 4, /* master: members connect over another network than the group's; else
	                          * a member must be connected from the address of its queue pair */
	GLEAM_RECEIVE_ONLY = 8, /* this queue pair never sends to the group: the switch passes on nothing of it */
	GLEAM_THREAD = 16,    /* a thread of the library makes progress [with .exchange: yes, without: no] */
	GLEAM_NO_THREAD = 32, /* the program does, by gleam_progress() or a call that waits */
	GLEAM_TARGETS = 64,   /* master: sources name the memory of their WRITEs, by gleam_targets() */
};

/* What gleam_create() takes. Set it to zero, then .size and what is needed: 0 and
 * NULL are the defaults in brackets. Nothing of it is kept by reference. */
struct gleam_attr {
	uint32_t    size;     /* sizeof(struct gleam_attr) */
	uint32_t    role;     /* enum gleam_role */
	const char *exchange; /* TCP host:port; the master listens there, members connect to it. NULL: blobs */
	const void *key;      /* secret shared with the switch and all hosts, 32 to 256 bytes, not text */
	uint32_t    key_len;
	uint16_t    key_id;   /* its id in gleamd's configuration, 1 to 65535 */
	uint16_t    port;     /* UDP port of the registration protocol [that of gleamd] */
	uint32_t    flags;    /* of enum gleam_flags */
	uint32_t    register_timeout_ms; /* for the switch to answer, in registering and leaving [10 s] */

	/* The group's descriptor: for GLEAM_MASTER only. */
	uint32_t    members;  /* how many will come, without the master itself */
	const char *group_ip; /* unicast address in the switch's group_prefixes */
	uint32_t    virtual_qpn;      /* [0x676c6d] */
	uint32_t    path_mtu;         /* bytes: 256, 512, 1024, 2048, 4096 [1024] */
	uint32_t    policy;           /* enum gleam_policy */
	uint32_t    quorum;           /* GLEAM_QUORUM: receivers, 1 to .members */
	uint32_t    dead_after_ms;    /* how long a silent member is waited for while others move, or GLEAM_FOREVER
	                               * [100; GLEAM_STRICT: the switch's, 10 s or more] */
	uint32_t    lag_psns;         /* not GLEAM_STRICT: packets that a member may be behind another before it is removed [any number] */
	uint32_t    lag_ms;           /* the same as a time [any time] */
	uint32_t    sender_timeout;   /* .timeout of the members' queue pairs, 4.096 us * 2^n; dead_after_ms has to be longer [14] */
	uint32_t    sender_retries;   /* their .retry_cnt; dead_after_ms has to be shorter than all of them [7] */
	uint32_t    lease_ms;         /* renewed in the background [the switch's own] */
	uint32_t    ready_timeout_ms; /* for the members to connect their queue pairs [10 s] */
	uint64_t    window_base;      /* first address of the group's WRITE window [0] */
	uint64_t    window_len;       /* [the smallest of the members' regions] */
};

/* A queue pair in state INIT. The first PSNs are chosen before the exchange and
 * must be those that ibv_modify_qp() is given later. */
struct gleam_qp {
	uint8_t  gid[16]; /* union ibv_gid, raw, of the RoCE v2 GID in use; ::ffff:a.b.c.d for IPv4 */
	uint32_t qp_num;
	uint32_t sq_psn;
	uint32_t rq_psn;
};

/* A memory region with IBV_ACCESS_REMOTE_WRITE, in which WRITEs to the group land. */
struct gleam_mr {
	uint64_t addr;   /* its first address, or the iova given to ibv_reg_mr_iova() */
	uint64_t length; /* bytes */
	uint32_t rkey;
};

/* What the queue pair connects to. */
struct gleam_peer {
	uint8_t  gid[16];        /* ah_attr.grh.dgid.raw: the GroupIP */
	char     ip[48];         /* the same as text */
	uint32_t qp_num;         /* dest_qp_num: the virtual QPN */
	uint32_t path_mtu_bytes;
	uint32_t path_mtu;       /* enum ibv_mtu */
};

/* What WRITEs to the group address; the switch translates to every member's own
 * region. length is 0 if the group has none: SEND only. */
struct gleam_window {
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t members; /* of the group when it was registered, with the master */
};

enum gleam_event_kind {
	GLEAM_JOINED  = 1, /* registered */
	GLEAM_LEFT    = 2, /* at the master: a member left or was removed */
	GLEAM_EVICTED = 3, /* the switch cut a member off; to a member: itself, and final */
	GLEAM_FAILED  = 4, /* the join did not come about, a switch was lost, or the group is dead; final */
	GLEAM_ENDED   = 5, /* deleted, replaced, its lease ran out, or we left; final */
	GLEAM_UPDATED = 6, /* master: the members are those of gleam_update(), and the new ones have confirmed */
	GLEAM_UPDATE_FAILED = 7, /* master: an update, or the removal of .member, did not come about; the group goes on */
	GLEAM_STALLED = 8, /* at the source and the master: nothing has been acknowledged for a second; .member is waited for */
	GLEAM_RESUMED = 9, /* there: completions come again; .member was waited for */
};

struct gleam_event {
	uint32_t kind;       /* enum gleam_event_kind */
	uint32_t psn;        /* GLEAM_EVICTED: the member had everything up to here; GLEAM_FAILED: it refused this one; GLEAM_STALLED: it lacks this one */
	char     member[48]; /* GLEAM_LEFT, GLEAM_EVICTED, GLEAM_FAILED, GLEAM_STALLED,
	                      * GLEAM_RESUMED: address of the member, if it was due to one, else "" */
	char     text[512];  /* all of it in words */
};

/* The memory of one member for the next WRITEs. */
struct gleam_target {
	uint8_t  gid[16]; /* of the member's queue pair */
	uint64_t addr;
	uint32_t rkey;
};

#define GLEAM_BLOB_MAX 160 /* the longest blob */

/* Makes a group's descriptor; NULL on failure. Nothing is sent yet. */
struct gleam_group *gleam_create(const struct gleam_attr *attr);

/* Begins to join with a queue pair, and returns as soon as it is known what to
 * connect it to: at the master at once, at a member when the master has met all
 * members. mr may be NULL for a member that takes no WRITEs. After a failure it
 * may be called again. timeout_ms < 0 waits for ever. */
int gleam_join(struct gleam_group *g, const struct gleam_qp *qp, const struct gleam_mr *mr,
               struct gleam_peer *peer, int timeout_ms);

/* Says that the queue pair is in RTS (failure == NULL) and receives are posted,
 * or why not: the join then fails everywhere with that text. */
int gleam_connected(struct gleam_group *g, const char *failure);

/* Waits until the switch has the group and all members have confirmed. When the
 * time is over it gives the join up and says what was missing. A program that
 * rather polls waits for GLEAM_JOINED or GLEAM_FAILED. window may be NULL. */
int gleam_wait(struct gleam_group *g, struct gleam_window *window, int timeout_ms);

/* Takes the next event: 1 if there was one, 0 if not within timeout_ms. If nobody
 * reads, the oldest of 256 give way to new ones. */
int gleam_next_event(struct gleam_group *g, struct gleam_event *event, int timeout_ms);

/* A descriptor that polls readable (POLLIN) while an event waits or, without a thread,
 * while gleam_progress() has something to do. It belongs to the group: do not read or
 * close it. */
int gleam_fd(struct gleam_group *g);

/* Leaves the group and waits for the switch to confirm; the master's leaving
 * deletes it. Before registration it gives up the join, and tells the others. With
 * timeout_ms 0 it only begins; GLEAM_ENDED tells the end. */
int gleam_leave(struct gleam_group *g, int timeout_ms);

/* Leaves, for at most two seconds, if that is not done, and frees g. NULL does
 * nothing. */
int gleam_destroy(struct gleam_group *g);

/* Since GLEAM_1.1. */

/* Begins to join by blobs: writes this host's for the master, at the master too, and
 * returns its length. R_Keys are in it, and a MAC under the key. mr may be NULL. */
int gleam_export(struct gleam_group *g, const struct gleam_qp *qp, const struct gleam_mr *mr, void *blob, size_t room);

/* Takes another host's blob: at the master a member's, at a member the group's. The
 * master's own does nothing. In a group that is registered, a member's blob is taken
 * for the next gleam_update(); it replaces the member with its address. */
int gleam_import(struct gleam_group *g, const void *blob, size_t length);

/* At the master, when all .members blobs are imported: writes the group's, for the
 * members, and returns its length. Members that join later get it too. */
int gleam_describe(struct gleam_group *g, void *blob, size_t room);

/* What to connect to, as soon as that is known. */
int gleam_peer(struct gleam_group *g, struct gleam_peer *peer);

/* What gleam_wait() gives, without waiting; -EINVAL before the group is registered. */
int gleam_window(struct gleam_group *g, struct gleam_window *window);

/* Does what is due, without waiting: 1 if an event waits, else 0. Call it when gleam_fd()
 * polls readable, and often enough for the lease, if the library has no thread. */
int gleam_progress(struct gleam_group *g);

/* At the master: the members that were imported since join the group, while data flows,
 * once they are connected. Waits for their confirmations; with timeout_ms 0 it only
 * begins, and GLEAM_UPDATED or GLEAM_UPDATE_FAILED tells the end. Under GLEAM_QUORUM a new
 * member, also of the first registration, may miss messages that are posted right after. */
int gleam_update(struct gleam_group *g, int timeout_ms);

/* At the master: removes the member with an address. With timeout_ms 0 it only begins, and
 * GLEAM_LEFT or GLEAM_UPDATE_FAILED tells the end. One that was imported and is not in the
 * group yet is forgotten, without an event. */
int gleam_remove(struct gleam_group *g, const char *ip, int timeout_ms);

/* With GLEAM_TARGETS: writes the payload of a message that names each member's memory for
 * the WRITEs after it, and returns its length. The program posts it as one WRITE to
 * address UINT64_MAX under the R_Key *rkey, and its WRITEs to offsets from 0 under the
 * same one. What does not fit one packet of the path MTU takes several. */
int gleam_targets(struct gleam_group *g, const struct gleam_target *targets, uint32_t num, void *payload, size_t room, uint32_t *rkey);

/* A member of a group by RDMA-CM (docs/CM.md): what the switch knows it by. */
struct gleam_cm_member {
	uint32_t    size;          /* sizeof(struct gleam_cm_member) */
	uint32_t    qp_num;
	uint8_t     group_gid[16]; /* of the address that it connects to */
	uint8_t     gid[16];       /* of its own address */
	const void *key;           /* as in struct gleam_attr; NULL: none */
	uint32_t    key_len;
	uint16_t    key_id;
	uint16_t    port;          /* that it connects to */
	uint32_t    flags;         /* GLEAM_RECEIVE_ONLY */
	const struct gleam_mr *mr; /* NULL: none */
	uint32_t    expect;        /* members of the group that the first of them makes; 0: the group is there */
	uint64_t    nonce;         /* with a key: the switch's, by gleam_cm_nonce(); 0: the switch's REJ has it */
};

#define GLEAM_CM_PRIVATE 56

/* Writes the private data of its rdma_connect(), and returns the length, which is
 * GLEAM_CM_PRIVATE. gleam_cm.h has a function that does both. */
int gleam_cm_private(const struct gleam_cm_member *m, void *private_data);

/* The text of the calling thread's last failure; "" if there was none. It stays
 * valid until this thread's next call of a gleam function. */
const char *gleam_error(void);

/* The release that the library was built from. */
const char *gleam_version(void);

#ifdef __cplusplus
}
#endif
#endif
