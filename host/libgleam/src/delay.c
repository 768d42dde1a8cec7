/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Events of a group that stalls, or goes on.
 */
#include <stdio.h>

#include "group.h"

bool gl_delayed(struct gleam_group *g, bool by_master, const struct gl_event *e)
{
	struct gleam_event *report;

	if (e->kind != GL_STALLED && e->kind != GL_RESUMED)
		return false;
	if (!g->joined || by_master != g->master) /* a master's own member hears the same */
		return true;
	report = gl_report(g, e->kind == GL_STALLED ? GLEAM_STALLED : GLEAM_RESUMED);
	report->psn = e->psn;
	snprintf(report->member, sizeof report->member, "%s", gl_addr_text(&e->member.ip));
	if (e->kind == GL_STALLED)
		snprintf(report->text, sizeof report->text, "stalled: nothing is acknowledged, %s is waited for", report->member);
	else
		snprintf(report->text, sizeof report->text, "resumed: %s was waited for", report->member);
	return true;
}
