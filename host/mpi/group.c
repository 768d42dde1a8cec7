/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "addresses.h"
#include "clock.h"
#include "queue.h"
#include "registry.h"

enum { PATIENCE = 30 /* seconds for a group to come about */, LEAVING = 5000 /* ms */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is below */
static struct device device;
static int cached; /* registrations stay */
static struct group *groups;

/* What a rank tells the others of itself. */
struct offer {
	unsigned char gid[16];
	uint32_t mtu, max_msg;
};

struct blob {
	char why[WHY];
	unsigned char bytes[GLEAM_BLOB_MAX];
	int length;
};

int group_over(struct group *g, char *why, size_t room)
{
	struct gleam_event e;

	if (gleam_next_event(g->gleam, &e, 0) != 1 || (e.kind != GLEAM_FAILED && e.kind != GLEAM_ENDED))
		return 0;
	snprintf(why, room, "the group is over: %s", e.text);
	return -1;
}

/* Progress of the MPI: what this rank has sent to others goes on. */
static void progress(struct group *g)
{
	int flag;

	PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, g->private, &flag, MPI_STATUS_IGNORE);
}

/* Between polls the MPI has its progress at every eighth call, and another process the CPU. */
static int idle(void *arg, int slept, char *why, size_t room)
{
	struct group *g = arg;

	if (slept || ++g->waits % 8 == 0)
		progress(g);
	if (slept)
		return group_over(g, why, room);
	sched_yield();
	return 0;
}

/* Has the group back from the queue's thread. */
static void take_back(struct group *g)
{
	while (queue_busy(g->queue, NAP))
		progress(g);
}

static int leads(const struct group *g)
{
	return g->places[g->rank].leader == g->rank;
}

/* This rank's device. */
static void begin(struct offer *o, char *why)
{
	const struct settings *set = settings();
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!device.verbs.context) {
		rc = device_open(&device, set->device, set->gid_index, range_is_ipv4(&set->groups), why, WHY);
		cached = !rc && registry_open(set->cache);
	}
	pthread_mutex_unlock(&lock);
	if (rc)
		return;
	memcpy(o->gid, device.verbs.gid.raw, 16);
	o->mtu = set->mtu ? set->mtu : device.mtu;
	o->max_msg = set->segment < device.max_msg ? set->segment : device.max_msg;
}

/* The same at every rank, from the same offers: the number of hosts. */
static int consider(struct group *g, const struct offer *all, uint32_t *mtu, uint32_t *max_msg)
{
	*mtu = all[0].mtu;
	*max_msg = all[0].max_msg;
	for (int i = 0; i < g->size; i++) {
		if (all[i].mtu < *mtu)
			*mtu = all[i].mtu;
		if (all[i].max_msg < *max_msg)
			*max_msg = all[i].max_msg;
	}
	return place_ranks(g->places, all, sizeof *all, g->size);
}

/* A leader's queue pair, and its participation in the group. */
static void create(struct group *g, int hosts, uint32_t mtu, uint32_t max_msg, struct blob *mine)
{
	const struct settings *set = settings();
	struct gleam_attr attr = {.size = sizeof attr, .role = g->rank ? GLEAM_MEMBER : GLEAM_MASTER,
		.key = set->key_len ? set->key : NULL, .key_len = set->key_len, .key_id = set->key_len ? set->key_id : 0,
		.flags = GLEAM_THREAD | (set->key_len ? 0 : GLEAM_INSECURE)};
	char ip[64] = "";

	if (stream_open(&g->stream, &device, mine->why, WHY))
		return;
	g->stream.max_msg = max_msg;
	if (!g->rank) {
		g->address = address_take();
		if (g->address < 0) {
			snprintf(mine->why, WHY, "GLEAM_MPI_GROUPS has no address left for groups of this rank");
			return;
		}
		range_address(&set->groups, g->address, ip, sizeof ip);
		attr.group_ip = ip;
		attr.members = hosts - 1;
		attr.path_mtu = mtu;
		attr.sender_timeout = set->timeout;
	}
	g->gleam = gleam_create(&attr);
	mine->length = g->gleam ? gleam_export(g->gleam, &g->stream.numbers, NULL, mine->bytes, sizeof mine->bytes) : -1;
	if (mine->length < 0)
		snprintf(mine->why, WHY, "%s", gleam_error());
}

/* The master's: of the members' blobs the group's. */
static void assemble(struct group *g, const struct blob *all, struct blob *group)
{
	int rc = 0;

	for (int i = 1; i < g->size && rc >= 0; i++)
		if (g->places[i].leader == i)
			rc = gleam_import(g->gleam, all[i].bytes, all[i].length);
	if (rc >= 0)
		rc = group->length = gleam_describe(g->gleam, group->bytes, sizeof group->bytes);
	if (rc < 0)
		snprintf(group->why, WHY, "%s", gleam_error());
}

static void connect_stream(struct group *g, const struct blob *group, char *why)
{
	if ((g->rank && gleam_import(g->gleam, group->bytes, group->length) < 0) || gleam_peer(g->gleam, &g->peer) < 0)
		snprintf(why, WHY, "%s", gleam_error());
	else
		stream_connect(&g->stream, &g->peer, settings()->timeout, why, WHY);
}

static void connected(struct group *g, char *why)
{
	if (!*why && gleam_connected(g->gleam, NULL) < 0)
		snprintf(why, WHY, "%s", gleam_error());
}

static void wait_joined(struct group *g, char *why)
{
	struct timespec now, begin;
	struct gleam_event e;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		if (gleam_next_event(g->gleam, &e, 1) == 1) {
			if (e.kind == GLEAM_JOINED)
				return;
			snprintf(why, WHY, "%.*s", WHY - 1, e.text);
			if (e.kind == GLEAM_FAILED || e.kind == GLEAM_ENDED)
				return;
		}
		progress(g);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > PATIENCE) {
			snprintf(why, WHY, "the switch has not registered the group within %d s", PATIENCE);
			return;
		}
	}
}

/* 1, 0 with the reason, or negative, as agree(). all and blobs have room for every rank. */
static int make(struct group *g, struct offer *all, struct blob *blobs, char why[WHY])
{
	struct offer o = {{0}, 0, 0};
	struct blob mine = {"", {0}, 0}, group = {"", {0}, 0};
	uint32_t mtu, max_msg;
	int rc, hosts;

	begin(&o, why);
	rc = agree(g->private, why);
	if (rc != 1)
		return rc;
	if (PMPI_Allgather(&o, sizeof o, MPI_BYTE, all, sizeof o, MPI_BYTE, g->private))
		return -1;
	hosts = consider(g, all, &mtu, &max_msg);
	if (hosts == 1) {
		snprintf(why, WHY, "all ranks have one address: they are on one host");
		return 0;
	}
	if (hosts < g->size && PMPI_Comm_split(g->private, g->places[g->rank].leader, g->rank, &g->local))
		return -1;
	if (leads(g))
		create(g, hosts, mtu, max_msg, &mine);
	rc = agree(g->private, mine.why);
	memcpy(why, mine.why, WHY);
	if (rc != 1)
		return rc;
	if (PMPI_Gather(&mine, sizeof mine, MPI_BYTE, blobs, sizeof mine, MPI_BYTE, 0, g->private))
		return -1;
	if (!g->rank)
		assemble(g, blobs, &group);
	if (PMPI_Bcast(&group, sizeof group, MPI_BYTE, 0, g->private))
		return -1;
	memcpy(why, group.why, WHY);
	if (*why)
		return 0;
	if (leads(g))
		connect_stream(g, &group, why);
	if (leads(g) && g->rank)
		connected(g, why);
	rc = agree(g->private, why);
	if (rc != 1)
		return rc;
	if (!g->rank) /* last: it registers */
		connected(g, why);
	if (!*why && leads(g))
		wait_joined(g, why);
	return agree(g->private, why);
}

static void free_group(struct group *g)
{
	if (g->gleam)
		gleam_destroy(g->gleam);
	stream_close(&g->stream);
	address_give(g->address);
	if (g->local != MPI_COMM_NULL)
		PMPI_Comm_free(&g->local);
	PMPI_Comm_free(&g->private);
	free(g->places);
	free(g);
}

void group_make(struct group **owner, MPI_Comm comm, char why[WHY])
{
	struct group *g = calloc(1, sizeof *g);
	struct offer *all;
	struct blob *blobs;
	int rc, size, rank;

	PMPI_Comm_size(comm, &size);
	PMPI_Comm_rank(comm, &rank);
	all = calloc(size, sizeof *all);
	blobs = rank ? NULL : calloc(size, sizeof *blobs);
	if (g)
		g->places = calloc(size, sizeof *g->places);
	if (!g || !g->places || !all || (!rank && !blobs))
		snprintf(why, WHY, "no memory");
	rc = agree(comm, why);
	/* Not PMPI_Comm_dup: that runs copy callbacks of attributes that are not ours. */
	if (rc == 1)
		rc = PMPI_Comm_split(comm, 0, rank, &g->private) ? -1 : 1;
	if (rc == 1) {
		g->size = size;
		g->rank = rank;
		g->address = -1;
		g->local = MPI_COMM_NULL;
		g->stream.wait_policy = (struct wait_policy){.spin = settings()->spin, .nap = NAP, .idle = idle, .arg = g};
		PMPI_Comm_set_errhandler(g->private, MPI_ERRORS_RETURN);
		rc = make(g, all, blobs, why);
		if (rc != 1)
			free_group(g);
	} else if (g) {
		free(g->places);
		free(g);
	}
	if (rc == 1) {
		g->owner = owner;
		*owner = g;
		pthread_mutex_lock(&lock);
		g->next = groups;
		groups = g;
		pthread_mutex_unlock(&lock);
	} else if (!*why) {
		snprintf(why, WHY, "MPI failed");
	}
	free(all);
	free(blobs);
}

/* Tells the ranks of this host how its leader fared. */
static int share_result(struct group *g, int rc)
{
	if (PMPI_Bcast(&rc, 1, MPI_INT, 0, g->local) || (rc && PMPI_Bcast(g->why, WHY, MPI_CHAR, 0, g->local))) {
		snprintf(g->why, WHY, "MPI failed among the ranks of a host");
		return -1;
	}
	return rc;
}

/* Whether a rank is on this rank's host. */
static int is_here(const struct group *g, int rank)
{
	return g->places[rank].leader == g->places[g->rank].leader;
}

int group_carry(struct group *g, void *buffer, uint64_t bytes, int root)
{
	int rc;

	if (g->failed)
		return -1;
	rc = is_here(g, root) ? stream_send(&g->stream, buffer, bytes, root, g->why, WHY) : stream_receive(&g->stream, buffer, bytes, root, g->why, WHY);
	g->failed = rc < 0;
	if (rc)
		stream_abort(&g->stream);
	return rc;
}

/* The root's host has the data at all its ranks before the leader sends it, another host after
 * its leader has received it. */
static int broadcast_shared(struct group *g, void *buffer, uint64_t bytes, int root)
{
	int rc = 0, here = is_here(g, root);

	if (here && PMPI_Bcast(buffer, bytes, MPI_BYTE, g->places[root].local, g->local)) {
		snprintf(g->why, WHY, "MPI failed among the ranks of the root's host");
		rc = -1;
	}
	if (!rc && leads(g))
		rc = group_carry(g, buffer, bytes, root);
	rc = share_result(g, rc);
	if (!rc && !here && PMPI_Bcast(buffer, bytes, MPI_BYTE, 0, g->local)) {
		snprintf(g->why, WHY, "MPI failed among the ranks of a host");
		rc = -1;
	}
	return rc;
}

int group_broadcast(struct group *g, void *buffer, uint64_t bytes, int root)
{
	int rc;

	take_back(g);
	if (g->failed)
		return -1;
	rc = g->local == MPI_COMM_NULL ? group_carry(g, buffer, bytes, root) : broadcast_shared(g, buffer, bytes, root);
	g->failed = rc < 0;
	return rc;
}

/* Waits for all ranks, of which each has drained its stream. */
static void meet(struct group *g)
{
	MPI_Request request;
	int done = 0;

	take_back(g);
	queue_close(g->queue);
	g->queue = NULL;
	if (!g->failed && leads(g) && stream_drain(&g->stream, g->why, WHY))
		g->failed = 1;
	if (PMPI_Ibarrier(g->private, &request))
		return;
	while (!done && !PMPI_Test(&request, &done, MPI_STATUS_IGNORE))
		sched_yield();
}

static void unlink_group(struct group *g)
{
	pthread_mutex_lock(&lock);
	for (struct group **p = &groups; *p; p = &(*p)->next)
		if (*p == g) {
			*p = g->next;
			break;
		}
	pthread_mutex_unlock(&lock);
}

void group_end(struct group *g)
{
	meet(g);
	unlink_group(g);
	if (settings()->verbose && !g->rank)
		fprintf(stderr, "gleam-mpi: group %s of %d ranks: %llu broadcasts, %llu bytes; %llu by MPI_Ibcast\n", g->peer.ip, g->size,
		        (unsigned long long)g->stream.broadcasts, (unsigned long long)g->stream.bytes, (unsigned long long)g->begun);
	if (leads(g))
		gleam_leave(g->gleam, LEAVING);
	*g->owner = NULL;
	free_group(g);
}

/* Says what the cache of registrations was worth at rank 0. */
static void report_registry(void)
{
	struct registry_counts c;
	int rank;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!settings()->verbose || rank || !device.verbs.context)
		return;
	registry_count(&c);
	if (cached)
		fprintf(stderr, "gleam-mpi: buffers of rank 0: %llu registered, %llu found registered, %llu returned to the kernel\n", (unsigned long long)c.made,
		        (unsigned long long)c.found, (unsigned long long)c.returned);
	else
		fprintf(stderr, "gleam-mpi: buffers are registered for each broadcast: GLEAM_MPI_CACHE is 0, or UCX (libucs.so.0) is missing\n");
}

void group_end_all(void)
{
	while (groups)
		group_end(groups);
	report_registry();
	registry_close();
	pthread_mutex_lock(&lock);
	device_close(&device);
	pthread_mutex_unlock(&lock);
	addresses_close();
}
