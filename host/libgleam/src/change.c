/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions of gleam.h for programs with an exchange of their own, and for changes of
 * the members.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "blob.h"

API int gleam_export(struct gleam_group *handle, const struct gleam_qp *qp, const struct gleam_mr *mr, void *blob, size_t room)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_blob x = {.kind = GL_BLOB_MEMBER};
	struct gl_record self;
	uint8_t b[GLEAM_BLOB_MAX];
	size_t n = 0;
	int rc;

	if (!g)
		return -EINVAL;
	rc = gl_check_qp(qp, mr, &self);
	if (rc == 0) {
		x.ip = self.ip;
		x.qpn = self.qpn;
		x.sq_psn = self.sq_psn;
		x.rq_psn = self.rq_psn;
		x.window = self.window;
		x.receive_only = g->flags & GLEAM_RECEIVE_ONLY;
		n = gl_blob_write(&x, &g->cfg.key, b, sizeof b);
		if (!blob || n > room)
			rc = gl_error(EINVAL, "invalid argument: blob has room for %zu bytes: want GLEAM_BLOB_MAX", blob ? room : 0);
	}
	if (rc == 0)
		rc = gl_begin(g, &self);
	if (rc == 0 && !gl_start_thread(g)) {
		rc = gl_error(EIO, "start a thread for progress: %s", strerror(errno));
		gl_give_up(g, EIO, "no thread for progress");
	}
	if (rc == 0) {
		memcpy(blob, b, n);
		rc = (int)n;
	}
	gl_handle_done(g);
	return rc;
}

/* A member's blob, at the master. */
static int import_member(struct gleam_group *g, const struct gl_blob *x)
{
	struct gl_record r = {.ip = x->ip, .qpn = x->qpn, .sq_psn = x->sq_psn, .rq_psn = x->rq_psn, .window = x->window, .receive_only = x->receive_only};
	const struct gl_mem *window = &g->info.window;
	const char *ip = gl_addr_text(&r.ip);
	size_t i;

	if (gl_same_record(&r, &g->self))
		return 0; /* the master's own */
	if (r.ip.len != g->group_ip.len)
		return gl_error(EINVAL, "member %s is not of the IP family of GroupIP %s", ip, gl_addr_text(&g->group_ip));
	if (gl_same(&r.ip, &g->self.ip))
		return gl_error(EINVAL, "member %s has the master's address: one address may be in a group once", ip);
	for (i = 0; i < g->num_peers; i++)
		if (gl_same(&g->peers[i].ip, &r.ip))
			break;
	if (g->stage == GL_JOINED_STAGE) {
		if (gl_has_window(window) && (!gl_has_window(&r.window) || r.window.len < window->len))
			return gl_error(EINVAL, "member %s: the group has a WRITE window of %llu bytes, and it has no memory of that size for it", ip,
			                (unsigned long long)window->len);
		if (!gl_has_window(window))
			memset(&r.window, 0, sizeof r.window); /* no source will write to it */
	} else if (i < g->num_peers && !gl_same_record(&g->peers[i], &r))
		return gl_error(EINVAL, "member %s was imported with other numbers: one address may be in a group once", ip);
	else if (i == g->num_peers && g->num_peers == g->members)
		return gl_error(EINVAL, "attr.members is %u, and %s is one more", g->members, ip);
	if (i < g->num_peers)
		g->peers[i] = r;
	else if (!gl_add_peer(g, &r))
		return gl_error(EIO, "no memory");
	return 0;
}

static int import_group(struct gleam_group *g, const struct gl_blob *x)
{
	if (g->stage != GL_MEETING)
		return gl_error(EINVAL, "called out of order: %s", g->stage == GL_IDLE || g->stage == GL_ENDED_STAGE ? "export first" : "the group is known already");
	if (x->ip.len != g->self.ip.len)
		return gl_error(EINVAL, "GroupIP %s is not of the family of our address %s", gl_addr_text(&x->ip), gl_addr_text(&g->self.ip));
	g->info = (struct gl_info){.ip = x->ip, .qpn = x->qpn, .target_key = x->target_key, .path_mtu = x->path_mtu, .members = x->members, .window = x->window};
	gl_described(g);
	return 0;
}

API int gleam_import(struct gleam_group *handle, const void *blob, size_t length)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_blob x;
	const char *wrong;
	int rc;

	if (!g)
		return -EINVAL;
	wrong = blob ? gl_blob_read(&x, &g->cfg.key, blob, length) : "it is NULL";
	if (wrong)
		rc = gl_error(EINVAL, "invalid argument: blob: %s", wrong);
	else if (x.kind != (g->master ? GL_BLOB_MEMBER : GL_BLOB_GROUP))
		rc = gl_error(EINVAL, "invalid argument: blob: a master takes those of gleam_export(), a member that of gleam_describe()");
	else if (!g->master)
		rc = import_group(g, &x);
	else if (g->exchange || (g->stage != GL_MEETING && g->stage != GL_JOINED_STAGE))
		rc = gl_error(EINVAL, "called out of order: members are imported after gleam_export() and before gleam_describe(), or for gleam_update()");
	else
		rc = import_member(g, &x);
	gl_handle_done(g);
	return rc;
}

API int gleam_describe(struct gleam_group *handle, void *blob, size_t room)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_blob x = {.kind = GL_BLOB_GROUP};
	char text[GL_TEXT];
	size_t n;
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (!g->master || g->exchange || g->stage == GL_IDLE || g->stage == GL_ENDED_STAGE)
		rc = gl_error(EINVAL, "called out of order: a master describes the group after gleam_export() and the import of its members");
	else if (g->stage == GL_MEETING && g->num_peers < g->members)
		rc = gl_error(EINVAL, "%zu of %u members have been imported", g->num_peers, g->members);
	else if (g->stage == GL_MEETING) {
		if (gl_prepare(g, text, sizeof text))
			gl_described(g);
		else {
			rc = gl_error(EIO, "make group %s: %s", gl_addr_text(&g->group_ip), text);
			gl_fail(g, EIO, "%s", text);
		}
	}
	if (rc == 0) {
		x.ip = g->info.ip;
		x.qpn = g->info.qpn;
		x.path_mtu = g->info.path_mtu;
		x.members = g->info.members;
		x.target_key = g->info.target_key;
		x.window = g->info.window;
		n = blob ? gl_blob_write(&x, &g->cfg.key, blob, room) : 0;
		rc = n ? (int)n : gl_error(EINVAL, "invalid argument: blob has room for %zu bytes: want GLEAM_BLOB_MAX", blob ? room : 0);
	}
	gl_handle_done(g);
	return rc;
}

static bool settled(const struct gleam_group *g)
{
	return g->changing != GL_UNDER_WAY;
}

/* Waits for the outcome of a change of the members. */
static int outcome(struct gleam_group *g, int timeout_ms)
{
	if (!gl_wait_until(g, settled, gl_after(timeout_ms))) {
		if (!timeout_ms)
			return 0; /* the event tells */
		g->changing = GL_NOTHING;
		return gl_error(ETIMEDOUT, "the switch or a member has not answered in %d ms; an event tells the end", timeout_ms);
	}
	if (g->destroyed)
		return gl_error(EIO, "the group was destroyed meanwhile");
	return g->changing == GL_DONE ? 0 : gl_error(EIO, "%s", g->outcome);
}

static int may_change(struct gleam_group *g)
{
	if (!g->master)
		return gl_error(EINVAL, "called out of order: only the master of a group changes its members");
	if (g->stage != GL_JOINED_STAGE)
		return gl_error(EINVAL, "called out of order: the group is not registered");
	if (g->changing == GL_UNDER_WAY)
		return gl_error(EINVAL, "called out of order: another change of the members is under way");
	return 0;
}

/* The members of the group now, with those that were imported since. */
static struct gl_record *wanted(const struct gleam_group *g, size_t *n)
{
	struct gl_record *all = calloc(g->mas.reg.num + g->num_peers + 1, sizeof *all);
	size_t live, i;

	if (!all)
		return NULL;
	live = gl_master_members(&g->mas, all, g->mas.reg.num);
	*n = live;
	for (size_t p = 0; p < g->num_peers; p++) {
		for (i = 0; i < live; i++)
			if (gl_same(&all[i].ip, &g->peers[p].ip))
				break;
		all[i] = g->peers[p];
		if (i == live)
			*n = ++live;
	}
	return all;
}

API int gleam_update(struct gleam_group *handle, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_record *all = NULL;
	char text[GL_TEXT];
	size_t n = 0;
	int rc;

	if (!g)
		return -EINVAL;
	rc = may_change(g);
	if (rc == 0) {
		all = wanted(g, &n);
		if (!all)
			rc = gl_error(EIO, "no memory");
		else if (!gl_master_update(&g->mas, gl_now(), all, n, &g->out, text, sizeof text))
			rc = gl_error(EINVAL, "%s", text);
	}
	if (rc == 0) {
		g->changing = GL_UNDER_WAY;
		gl_take_output(g, true);
		rc = outcome(g, timeout_ms);
	}
	free(all);
	gl_handle_done(g);
	return rc;
}

/* Forgets the blob of a member that was to join by the next update; whether there was one. */
static bool forget_import(struct gleam_group *g, const struct gl_addr *ip)
{
	const struct gl_registration *reg = &g->mas.reg;

	for (size_t p = 0; p < g->num_peers; p++) {
		if (!gl_same(&g->peers[p].ip, ip))
			continue;
		for (size_t i = 0; i < reg->num; i++)
			if (!g->mas.gone[i] && gl_same_record(&reg->records[i], &g->peers[p]))
				return false; /* it is in the group */
		memmove(&g->peers[p], &g->peers[p + 1], (g->num_peers - p - 1) * sizeof *g->peers);
		g->num_peers--;
		return true;
	}
	return false;
}

API int gleam_remove(struct gleam_group *handle, const char *ip, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_member_key k = {0};
	bool live = false, forgotten;
	char text[GL_TEXT];
	int rc;

	if (!g)
		return -EINVAL;
	rc = may_change(g);
	if (rc == 0 && (!ip || !gl_parse_addr(ip, &k.ip)))
		rc = gl_error(EINVAL, "invalid argument: ip is no IP address");
	if (rc == 0) {
		forgotten = forget_import(g, &k.ip);
		for (size_t i = 0; i < g->mas.reg.num; i++)
			if (gl_same(&g->mas.reg.records[i].ip, &k.ip)) {
				k.qpn = g->mas.reg.records[i].qpn;
				live = !g->mas.gone[i];
			}
		if (forgotten && !live) {
			gl_handle_done(g);
			return 0;
		}
		if (!gl_master_leave(&g->mas, gl_now(), &k, &g->out, text, sizeof text))
			rc = gl_error(EINVAL, "%s", text);
	}
	if (rc == 0) {
		g->changing = GL_UNDER_WAY;
		g->removing = k.ip;
		gl_take_output(g, true);
		rc = outcome(g, timeout_ms);
	}
	gl_handle_done(g);
	return rc;
}

API int gleam_targets(struct gleam_group *handle, const struct gleam_target *targets, uint32_t num, void *payload, size_t room, uint32_t *rkey)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_writer w = {.p = payload};
	bool v6;
	int rc = 0;

	if (!g)
		return -EINVAL;
	v6 = g->info.ip.len == 16;
	w.room = room < g->info.path_mtu ? room : g->info.path_mtu;
	gl_write(&w, 0x4754, 2); /* "GT" */
	gl_write(&w, 1, 1);
	gl_write(&w, v6 ? 6 : 4, 1);
	for (uint32_t i = 0; targets && i < num && !w.bad; i++) {
		struct gl_addr ip = gl_from_gid(targets[i].gid);

		if (ip.len != g->info.ip.len)
			rc = gl_error(EINVAL, "invalid argument: targets[%u].gid is %s, of another IP family than the group", i, gl_addr_text(&ip));
		gl_write_bytes(&w, ip.b, ip.len);
		gl_write(&w, targets[i].addr, 8);
		gl_write(&w, targets[i].rkey, 4);
	}
	if (!g->info.target_key)
		rc = gl_error(EINVAL, "called out of order: the group is not known yet, or its master did not set GLEAM_TARGETS");
	else if (!targets || !num || !payload || !rkey)
		rc = gl_error(EINVAL, "invalid argument: want targets, a payload and an rkey");
	else if (rc == 0 && w.bad)
		rc = gl_error(EINVAL, "invalid argument: %u targets do not fit a packet of %u bytes, or payload has no room: at most %u at once", num, g->info.path_mtu,
		              (g->info.path_mtu - 4) / (v6 ? 28 : 16));
	if (rc == 0) {
		*rkey = g->info.target_key;
		rc = (int)w.n;
	}
	gl_handle_done(g);
	return rc;
}
