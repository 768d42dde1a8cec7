/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions of gleam.h. Each calls the Go function named alike with this
 * thread's buffer for the text of a failure: only C has variables per thread.
 */
#include "gleam.h"

#include "_cgo_export.h"

#define API __attribute__((visibility("default")))

static __thread char failure[4096];

API struct gleam_group *gleam_create(const struct gleam_attr *attr)
{
	uintptr_t g = 0;

	failure[0] = 0;
	if (goCreate((struct gleam_attr *)attr, &g, failure, sizeof failure) < 0)
		return NULL;
	return (struct gleam_group *)g; /* a number in disguise: never dereferenced */
}

API int gleam_join(struct gleam_group *g, const struct gleam_qp *qp, const struct gleam_mr *mr,
                   struct gleam_peer *peer, int timeout_ms)
{
	failure[0] = 0;
	return goJoin((uintptr_t)g, (struct gleam_qp *)qp, (struct gleam_mr *)mr, peer, timeout_ms,
	              failure, sizeof failure);
}

API int gleam_connected(struct gleam_group *g, const char *why_not)
{
	failure[0] = 0;
	return goConnected((uintptr_t)g, (char *)why_not, failure, sizeof failure);
}

API int gleam_wait(struct gleam_group *g, struct gleam_window *window, int timeout_ms)
{
	failure[0] = 0;
	return goWait((uintptr_t)g, window, timeout_ms, failure, sizeof failure);
}

API int gleam_next_event(struct gleam_group *g, struct gleam_event *event, int timeout_ms)
{
	failure[0] = 0;
	return goNextEvent((uintptr_t)g, event, timeout_ms, failure, sizeof failure);
}

API int gleam_fd(struct gleam_group *g)
{
	failure[0] = 0;
	return goFD((uintptr_t)g, failure, sizeof failure);
}

API int gleam_leave(struct gleam_group *g, int timeout_ms)
{
	failure[0] = 0;
	return goLeave((uintptr_t)g, timeout_ms, failure, sizeof failure);
}

API int gleam_destroy(struct gleam_group *g)
{
	failure[0] = 0;
	return goDestroy((uintptr_t)g, failure, sizeof failure);
}

API const char *gleam_error(void)
{
	return failure;
}

API const char *gleam_version(void)
{
	static __thread char text[64];

	goVersion(text, sizeof text);
	return text;
}
