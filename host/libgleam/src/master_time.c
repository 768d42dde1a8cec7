/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A master: deadlines, and the texts of failures. Package envelope's master_timers.go.
 */
#include <stdio.h>

#include "master.h"

static void earliest(uint64_t *d, uint64_t at)
{
	if (at < *d)
		*d = at;
}

uint64_t gl_master_deadline(const struct gl_master *m)
{
	uint64_t d = GL_NEVER;

	if (m->phase == GL_REGISTERING || m->phase == GL_CONFIRMING)
		earliest(&d, m->deadline);
	if (m->phase == GL_REGISTERING || m->phase == GL_CONFIRMING || m->phase == GL_IN_GROUP)
		earliest(&d, m->retry.next);
	if (m->phase == GL_CONFIRMING || m->phase == GL_IN_GROUP)
		earliest(&d, m->lease_until);
	if (m->update.on)
		earliest(&d, m->update.retry.next);
	for (size_t i = 0; i < m->num_requests; i++) {
		earliest(&d, m->requests[i].retry.next);
		earliest(&d, m->requests[i].deadline);
	}
	return d;
}

size_t gl_num_waiting(const struct gl_master *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->reg.num; i++)
		n += !m->confirmed[i] && !m->gone[i];
	return n;
}

size_t gl_num_confirmed(const struct gl_master *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->reg.num; i++)
		n += m->confirmed[i];
	return n;
}

static const char *doing(const struct gl_request *r)
{
	return r->type == GL_DELETE ? "delete" : "leave";
}

void gl_rejected_text(const struct gl_master *m, const char *action, const struct gl_problem *p, char *text, size_t n)
{
	char why[600];

	gl_problem_text(p, why, sizeof why);
	snprintf(text, n, "%s group %s: the switch rejects it: %s", action, gl_addr_text(&m->reg.group), why);
}

void gl_silent_text(const struct gl_master *m, const char *action, uint64_t after, char *text, size_t n)
{
	const char *group = gl_addr_text(&m->reg.group);
	bool registers = m->phase == GL_REGISTERING;
	char took[32];

	gl_duration_text((after + GL_MS / 2) / GL_MS * GL_MS, took, sizeof took);
	if (registers && m->auth_hint)
		snprintf(text, n, "%s group %s: no authentic answer from the switch in %s, but an unauthenticated one that it does not accept our key; "
		         "check key id and key on both sides", action, group, took);
	else if (registers && m->instance)
		snprintf(text, n, "%s group %s: the switch is there, but has neither accepted nor rejected it in %s; it may be looking for a member, or packets "
		         "are lost on the way (long ones, where the path's MTU is smaller than the master's)", action, group, took);
	else
		gl_no_answer_text(action, &m->reg.group, after, text, n);
}

void gl_refused_text(const struct gl_master *m, const char *action, const struct gl_message *c, const struct gl_record *r, char *text, size_t n)
{
	char member[80], detail[80] = "";

	gl_key_text(&c->member, member, sizeof member);
	if (c->status == GL_QPN_MISMATCH)
		snprintf(detail, sizeof detail, ": 0x%x", c->qpn);
	else if (c->status == GL_SQ_PSN_MISMATCH)
		snprintf(detail, sizeof detail, ": 0x%x, registered was 0x%x", c->sq_psn, r->sq_psn);
	else if (c->status == GL_RQ_PSN_MISMATCH)
		snprintf(detail, sizeof detail, ": 0x%x, registered was 0x%x", c->rq_psn, r->rq_psn);
	snprintf(text, n, "%s group %s: member %s %s%s", action, gl_addr_text(&m->reg.group), member, gl_status_text(c->status), detail);
}

#define MOST_NAMED 8

/* Names the members that have not confirmed. */
static void waiting_text(const struct gl_master *m, const char *action, uint64_t after, char *text, size_t n)
{
	size_t waiting = gl_num_waiting(m), named = 0, at = 0;
	char list[700] = "", took[32], name[80];

	for (size_t i = 0; i < m->reg.num && named <= MOST_NAMED; i++) {
		struct gl_member_key k = gl_key_of(&m->reg.records[i]);

		if (m->confirmed[i] || m->gone[i])
			continue;
		gl_key_text(&k, name, sizeof name);
		if (named == MOST_NAMED)
			snprintf(name, sizeof name, "and %zu more", waiting - MOST_NAMED);
		at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", named++ ? ", " : "", name);
	}
	gl_duration_text((after + GL_MS / 2) / GL_MS * GL_MS, took, sizeof took);
	snprintf(text, n, "%s group %s: %zu members have not confirmed in %s: %s; check that they have joined, and that they hold the same key", action,
	         gl_addr_text(&m->reg.group), waiting, took, list);
}

bool gl_master_unfinished(const struct gl_master *m, uint64_t now, char *text, size_t n)
{
	uint64_t spent = now + m->cfg.deadline - m->deadline;

	if (m->phase == GL_REGISTERING)
		gl_silent_text(m, "register", spent, text, n);
	else if (m->phase == GL_CONFIRMING)
		waiting_text(m, m->joiners ? "update" : "register", spent, text, n);
	else if (m->update.on)
		gl_silent_text(m, "update", now - m->update.started, text, n);
	else if (m->num_requests && !m->requests[0].unreported)
		gl_silent_text(m, doing(&m->requests[0]), now + m->cfg.deadline - m->requests[0].deadline, text, n);
	else
		return false;
	return true;
}

void gl_lease_lost(struct gl_master *m, struct gl_output *o)
{
	struct gl_event *e;

	gl_master_stop(m);
	e = gl_master_event(m, GL_GROUP_GONE, o);
	e->end_reason = GL_EXPIRED;
	gl_silent_text(m, "renew", m->lease, e->text, sizeof e->text);
}

static void timed_out(struct gl_master *m, const struct gl_request *r, struct gl_output *o)
{
	struct gl_event *e = gl_master_event(m, r->type == GL_DELETE ? GL_GROUP_GONE : GL_LEAVE_FAILED, o);

	if (r->type == GL_DELETE)
		e->end_reason = GL_DELETED;
	else
		e->member = r->member;
	gl_silent_text(m, doing(r), m->cfg.deadline, e->text, sizeof e->text);
}

static void advance_requests(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->num_requests; i++) {
		struct gl_request r = m->requests[i];

		if (now >= r.deadline) {
			if (!r.unreported)
				timed_out(m, &r, o);
			continue;
		}
		if (now >= r.retry.next) {
			gl_backoff_retry(&r.retry, now, m->cfg.retry_max, &m->random);
			gl_send_request(m, &r, o);
		}
		m->requests[kept++] = r;
	}
	m->num_requests = kept;
}

static void advance_registering(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	char text[GL_TEXT];

	if (now >= m->deadline) {
		gl_master_unfinished(m, m->deadline, text, sizeof text);
		gl_master_fail(m, now, text, NULL, true, o);
	} else if (now >= m->retry.next) {
		gl_backoff_retry(&m->retry, now, m->cfg.retry_max, &m->random);
		gl_send_register(m, o);
	}
}

static void advance_confirming(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	char text[GL_TEXT];

	if (now >= m->deadline) {
		gl_master_unfinished(m, m->deadline, text, sizeof text);
		if (m->joiners)
			gl_drop_joiners(m, now, m->reg.num, text, o);
		else
			gl_master_fail(m, now, text, NULL, true, o);
	} else if (now >= m->lease_until)
		gl_lease_lost(m, o);
	else if (now >= m->retry.next) {
		gl_backoff_retry(&m->retry, now, m->cfg.retry_max, &m->random);
		gl_send_renew(m, now, o);
	}
}

static void advance_in_group(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	if (now >= m->lease_until)
		gl_lease_lost(m, o);
	else if (now >= m->retry.next) {
		if (m->renewing)
			gl_backoff_retry(&m->retry, now, m->cfg.retry_max, &m->random);
		else
			gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);
		gl_send_renew(m, now, o);
	}
}

void gl_master_advance(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	gl_output_reset(o);
	advance_requests(m, now, o);
	if (m->update.on && now >= m->update.retry.next) {
		gl_backoff_retry(&m->update.retry, now, m->cfg.retry_max, &m->random);
		gl_send_update(m, o);
	}
	if (m->phase == GL_REGISTERING)
		advance_registering(m, now, o);
	else if (m->phase == GL_CONFIRMING)
		advance_confirming(m, now, o);
	else if (m->phase == GL_IN_GROUP)
		advance_in_group(m, now, o);
}
