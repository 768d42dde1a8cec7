/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions of gleam.h: one participation from its beginning to its end.
 */
#include "api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEFT_BEFORE "it left before the group was registered"
#define NEXT "start what is missing, or allow more time"

uint64_t gl_after(int timeout_ms)
{
	return timeout_ms < 0 ? GL_NEVER : gl_now() + (uint64_t)timeout_ms * GL_MS;
}

static void cause_text(char *text, size_t n, int timeout_ms, const char *next)
{
	char took[32];

	gl_duration_text((uint64_t)timeout_ms * GL_MS, took, sizeof took);
	snprintf(text, n, "timed out after %s%s%s", took, *next ? "; " : "", next);
}

API const char *gleam_version(void)
{
	return GLEAM_RELEASE;
}

API struct gleam_group *gleam_create(const struct gleam_attr *attr)
{
	struct gleam_group *g;

	gl_clear_error();
	g = gl_group_new(attr);
	return g ? (struct gleam_group *)gl_handle_add(g) : NULL; /* a number in disguise: never dereferenced */
}

static void put_peer(const struct gleam_group *g, struct gleam_peer *peer)
{
	*peer = (struct gleam_peer){.qp_num = g->info.qpn, .path_mtu_bytes = g->info.path_mtu, .path_mtu = gl_path_mtu_code(g->info.path_mtu)};
	gl_to_gid(&g->info.ip, peer->gid);
	snprintf(peer->ip, sizeof peer->ip, "%s", gl_addr_text(&g->info.ip));
}

static int failed(const struct gleam_group *g)
{
	if (g->destroyed)
		return gl_error(EIO, "the group was destroyed meanwhile");
	if (*g->failure)
		return gl_error(g->failed_by, "%s", g->failure);
	return gl_error(EIO, "the group is over");
}

static bool is_known(const struct gleam_group *g)
{
	return g->master || g->stage != GL_MEETING;
}

API int gleam_join(struct gleam_group *handle, const struct gleam_qp *qp, const struct gleam_mr *mr, struct gleam_peer *peer, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_record self;
	char cause[200];
	int rc;

	if (!g)
		return -EINVAL;
	if (!peer)
		rc = gl_error(EINVAL, "invalid argument: peer is NULL: it takes what to connect the queue pair to");
	else if (!g->exchange_addr)
		rc = gl_error(EINVAL, "attr.exchange is NULL: want the TCP host:port at which the master listens, or gleam_export() in place of gleam_join()");
	else
		rc = gl_check_qp(qp, mr, &self);
	if (rc == 0)
		rc = gl_begin(g, &self);
	if (rc == 0 && (!gl_exchange_start(g) || !gl_start_thread(g)))
		gl_give_up(g, EIO, "no thread for progress");
	if (rc == 0) {
		if (!gl_wait_until(g, is_known, gl_after(timeout_ms))) {
			cause_text(cause, sizeof cause, timeout_ms, "the master describes the group when all its members have come: " NEXT);
			gl_give_up(g, ETIMEDOUT, cause);
		}
		if (g->stage == GL_ENDED_STAGE || g->destroyed)
			rc = failed(g);
		else
			put_peer(g, peer);
	}
	gl_handle_done(g);
	return rc;
}

API int gleam_peer(struct gleam_group *handle, struct gleam_peer *peer)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (!peer)
		rc = gl_error(EINVAL, "invalid argument: peer is NULL");
	else if (!g->info.ip.len)
		rc = gl_error(EINVAL, "called out of order: the group is not known yet");
	else
		put_peer(g, peer);
	gl_handle_done(g);
	return rc;
}

API int gleam_connected(struct gleam_group *handle, const char *failure)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (g->stage == GL_IDLE)
		rc = gl_error(EINVAL, "called out of order: join first");
	else if (g->stage == GL_ENDED_STAGE && g->connected)
		rc = failed(g);
	else if (g->stage == GL_ENDED_STAGE)
		g->connected = true; /* another side was faster to fail: gleam_wait() has the cause */
	else if (g->connected)
		rc = gl_error(EINVAL, "called out of order: the queue pair was reported as connected already");
	else if (failure)
		gl_fail(g, EIO, "the application could not connect its queue pair: %.500s", failure);
	else if (!g->exchange && g->stage == GL_MEETING)
		rc = gl_error(EINVAL, g->master ? "called out of order: gleam_describe() first" : "called out of order: gleam_import() the group first");
	else {
		g->connected = true;
		if (g->exchange)
			gl_exchange_ready(g);
		else
			gl_register(g);
		gl_progress(g);
		gl_changed(g);
	}
	gl_handle_done(g);
	return rc;
}

static void put_window(const struct gleam_group *g, struct gleam_window *window)
{
	*window = (struct gleam_window){.addr = g->info.window.base, .length = g->info.window.len, .rkey = g->info.window.rkey, .members = g->info.members};
}

static bool is_decided(const struct gleam_group *g)
{
	return g->joined || g->stage == GL_ENDED_STAGE;
}

API int gleam_wait(struct gleam_group *handle, struct gleam_window *window, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	char cause[200];
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (g->stage == GL_IDLE) {
		rc = gl_error(EINVAL, "called out of order: join first");
		gl_handle_done(g);
		return rc;
	}
	if (!gl_wait_until(g, is_decided, gl_after(timeout_ms))) {
		cause_text(cause, sizeof cause, timeout_ms, NEXT);
		gl_give_up(g, ETIMEDOUT, cause);
	}
	if (!g->joined || g->destroyed)
		rc = failed(g);
	else if (window)
		put_window(g, window);
	gl_handle_done(g);
	return rc;
}

API int gleam_window(struct gleam_group *handle, struct gleam_window *window)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (!window)
		rc = gl_error(EINVAL, "invalid argument: window is NULL");
	else if (!g->joined)
		rc = gl_error(EINVAL, "called out of order: the group is not registered yet");
	else
		put_window(g, window);
	gl_handle_done(g);
	return rc;
}

API int gleam_progress(struct gleam_group *handle)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int rc;

	if (!g)
		return -EINVAL;
	gl_progress(g);
	rc = g->num_events > 0;
	gl_handle_done(g);
	return rc;
}

static bool has_event(const struct gleam_group *g)
{
	return g->num_events || g->stage == GL_ENDED_STAGE;
}

API int gleam_next_event(struct gleam_group *handle, struct gleam_event *event, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	struct gl_waiting_event *w;
	int rc = 0;

	if (!g)
		return -EINVAL;
	if (!event)
		rc = gl_error(EINVAL, "invalid argument: event is NULL");
	else if (gl_wait_until(g, has_event, gl_after(timeout_ms))) {
		if (g->destroyed)
			rc = failed(g);
		else if (!g->num_events)
			rc = gl_error(ENODATA, "the group is over, and all its events have been read");
		else {
			w = g->first;
			*event = w->event;
			g->first = w->next;
			g->num_events--;
			free(w);
			gl_signal_events(g);
			rc = 1;
		}
	}
	gl_handle_done(g);
	return rc;
}

API int gleam_fd(struct gleam_group *handle)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int fd;

	if (!g)
		return -EINVAL;
	fd = g->poll_fd;
	gl_handle_done(g);
	return fd;
}

static bool has_left(const struct gleam_group *g)
{
	return g->leaving != GL_UNDER_WAY || g->stage == GL_ENDED_STAGE;
}

static int leave(struct gleam_group *g, int timeout_ms)
{
	if (g->stage == GL_IDLE)
		return gl_error(EINVAL, "called out of order: join first");
	if (g->stage != GL_JOINED_STAGE) {
		gl_give_up(g, EIO, LEFT_BEFORE);
		return 0;
	}
	if (g->leaving != GL_UNDER_WAY) {
		g->leaving = GL_UNDER_WAY;
		if (g->master)
			gl_master_delete(&g->mas, gl_now(), &g->out);
		else
			gl_member_leave(&g->mem, gl_now(), &g->out);
		gl_take_output(g, g->master);
	}
	if (!gl_wait_until(g, has_left, gl_after(timeout_ms))) {
		if (!timeout_ms)
			return 0; /* the event tells */
		return gl_error(ETIMEDOUT, "%s group %s: no answer from the switch in %d ms; try again, or destroy the group: the switch drops it when its lease ends",
		                g->master ? "delete" : "leave", gl_addr_text(&g->info.ip), timeout_ms);
	}
	if (g->leaving == GL_REFUSED)
		return gl_error(EIO, "%s", g->outcome);
	return 0;
}

API int gleam_leave(struct gleam_group *handle, int timeout_ms)
{
	struct gleam_group *g = gl_handle_use((uintptr_t)handle);
	int rc;

	if (!g)
		return -EINVAL;
	rc = leave(g, timeout_ms);
	gl_handle_done(g);
	return rc;
}

API int gleam_destroy(struct gleam_group *handle)
{
	struct gleam_group *g;
	int rc = 0;

	gl_clear_error();
	if (!handle)
		return 0;
	g = gl_handle_use((uintptr_t)handle);
	if (!g)
		return -EINVAL;
	if (g->stage != GL_IDLE && g->stage != GL_ENDED_STAGE)
		rc = leave(g, 2000);
	gl_handle_remove(g); /* lets go of the mutex */
	gl_stop_thread(g);
	gl_release(g);
	while (g->num_events) {
		struct gl_waiting_event *w = g->first;

		g->first = w->next;
		g->num_events--;
		free(w);
	}
	gl_loop_close(g);
	gl_output_free(&g->out);
	free(g->exchange_addr);
	pthread_mutex_destroy(&g->mu);
	pthread_cond_destroy(&g->changed);
	explicit_bzero(g, sizeof *g);
	free(g);
	return rc;
}
