/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A master: what it receives. Package envelope's master_input.go and master_update.go.
 */
#include <stdio.h>
#include <stdlib.h>

#include "master.h"

void gl_check_confirmed(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	struct gl_event *e;

	if (m->phase != GL_CONFIRMING || gl_num_waiting(m))
		return;
	m->phase = GL_IN_GROUP;
	m->renewing = false;
	gl_schedule_renew(m, now, m->lease);
	e = gl_master_event(m, m->joiners ? GL_UPDATED : GL_REGISTERED, o);
	m->joiners = false;
	e->done = e->total = gl_num_confirmed(m);
	e->lease = m->lease;
}

/* The next Renew is due a third into the lease, so that two more may be lost, or earlier by renew_within. */
void gl_schedule_renew(struct gl_master *m, uint64_t now, uint64_t lease)
{
	uint64_t wait = lease / 3, at;

	if (m->cfg.renew_within && m->cfg.renew_within < wait)
		wait = m->cfg.renew_within;
	at = m->lease_until - lease + wait;
	m->retry.wait = m->cfg.retry_min;
	m->retry.next = at > now ? at : now;
}

void gl_master_fail(struct gl_master *m, uint64_t now, const char *text, const struct gl_problem *p, bool clean_up, struct gl_output *o)
{
	struct gl_event *e = gl_master_event(m, GL_REGISTRATION_FAILED, o);

	snprintf(e->text, sizeof e->text, "%s", text);
	if (p)
		e->problem = *p;
	if (clean_up && m->instance)
		gl_master_end(m, now, true, o);
	else
		gl_master_stop(m);
}

/* An event about a request that the switch rejects. */
static struct gl_event *rejected(struct gl_master *m, enum gl_event_kind kind, const char *action, const struct gl_problem *p, struct gl_output *o)
{
	struct gl_event *e = gl_master_event(m, kind, o);

	gl_rejected_text(m, action, p, e->text, sizeof e->text);
	e->problem = *p;
	return e;
}

static void forget_confirmed(struct gl_master *m)
{
	memset(m->confirmed, 0, m->reg.num);
}

/* Takes the epoch after known, if that is one; false if there is none. */
static bool next_epoch(uint64_t *epoch, uint64_t known)
{
	if (known < *epoch || known + 1 == 0)
		return false;
	*epoch = known + 1;
	return true;
}

static bool is_update(const struct gl_master *m, const struct gl_message *msg)
{
	return m->update.on && msg->epoch == m->update.reg.epoch && msg->transaction == m->update.transaction;
}

static void member_gone(struct gl_master *m, uint64_t now, const struct gl_member_key *k, const struct gl_message *g, struct gl_output *o)
{
	size_t at = gl_find(&m->reg, k);
	struct gl_event *e;

	if (at == m->reg.num || m->gone[at]) {
		gl_master_drop(m, GL_DUPLICATE, o);
		return;
	}
	m->gone[at] = true;
	m->confirmed[at] = false;
	e = gl_master_event(m, GL_MEMBER_GONE, o);
	e->member = *k;
	e->end_reason = g ? g->reason : GL_REMOVED;
	e->code = g ? g->code : 0;
	e->psn = g ? g->psn : 0;
	gl_check_confirmed(m, now, o);
}

/* The members of an update are those of the group from now on. */
void gl_updated(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_registration old = m->reg;
	uint8_t *old_flags = m->confirmed, *old_gone = m->gone, *flags = calloc(2, m->update.reg.num);
	uint64_t until = m->update.sent + msg->lease;

	if (!flags) {
		o->lost++; /* the update is repeated, and accepted again */
		return;
	}
	m->update.on = false;
	m->reg = m->update.reg;
	m->update.reg.records = NULL;
	m->reg.params.base = 0;
	m->lease = msg->lease;
	m->instance = msg->instance;
	if (until > m->lease_until) /* it was renewed while the switch located the new members */
		m->lease_until = until;
	m->confirmed = flags;
	m->gone = flags + m->reg.num;
	for (size_t i = 0; i < old.num; i++) {
		struct gl_member_key k = gl_key_of(&old.records[i]);
		size_t at = gl_find(&m->reg, &k);
		struct gl_event *e;

		if (old_gone[i])
			continue;
		if (at < m->reg.num && gl_same_record(&m->reg.records[at], &old.records[i])) {
			m->confirmed[at] = true;
			continue;
		}
		e = gl_master_event(m, GL_MEMBER_GONE, o);
		e->member = k;
		e->end_reason = GL_REMOVED;
	}
	free(old.records);
	free(old_flags);
	m->phase = GL_CONFIRMING;
	m->joiners = true;
	m->renewing = false;
	m->deadline = now + m->cfg.deadline;
	gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);
	gl_check_confirmed(m, now, o);
}

void gl_drop_joiners(struct gl_master *m, uint64_t now, size_t which, const char *text, struct gl_output *o)
{
	struct gl_event *e;

	for (size_t i = 0; i < m->reg.num; i++) {
		struct gl_member_key k = gl_key_of(&m->reg.records[i]);

		if (which < m->reg.num ? which != i : m->confirmed[i] || m->gone[i])
			continue;
		m->gone[i] = true;
		gl_add_request(m, now, GL_LEAVE, &k, true, o);
	}
	if (!gl_num_waiting(m)) {
		m->phase = GL_IN_GROUP;
		m->joiners = m->renewing = false;
		gl_schedule_renew(m, now, m->lease);
	}
	e = gl_master_event(m, GL_UPDATE_FAILED, o);
	snprintf(e->text, sizeof e->text, "%s", text);
}

static void accepted(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_request r;

	if (msg->request == GL_REGISTER && is_update(m, msg))
		gl_updated(m, now, msg, o);
	else if (msg->epoch != m->reg.epoch)
		gl_master_drop(m, GL_STALE, o);
	else if (msg->request == GL_REGISTER && msg->transaction == m->register_tx && m->phase == GL_REGISTERING) {
		m->phase = GL_CONFIRMING;
		m->instance = msg->instance;
		m->lease_until = m->register_sent + msg->lease; /* from the sending: the switch's own ends later */
		m->lease = msg->lease;
		gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);
		gl_master_event(m, GL_SWITCH_ACCEPTED, o)->lease = msg->lease;
		gl_check_confirmed(m, now, o);
	} else if (msg->request == GL_RENEW && msg->transaction == m->renew_tx && m->renewing) {
		m->renewing = false;
		m->instance = msg->instance;
		m->lease_until = m->renew_sent + msg->lease;
		if (m->phase == GL_IN_GROUP)
			gl_schedule_renew(m, now, msg->lease);
	} else if (msg->request == GL_LEAVE || msg->request == GL_DELETE) {
		if (!gl_take_request(m, msg->transaction, msg->request, &r))
			gl_master_drop(m, GL_UNSOLICITED, o);
		else if (r.unreported)
			return;
		else if (msg->request == GL_DELETE)
			gl_master_event(m, GL_GROUP_GONE, o)->end_reason = GL_DELETED;
		else
			member_gone(m, now, &r.member, NULL, o);
	} else
		gl_master_drop(m, GL_DUPLICATE, o);
}

static void request_rejected(struct gl_master *m, uint64_t now, const struct gl_message *msg, const struct gl_problem *p, struct gl_output *o)
{
	struct gl_request r;

	if (!gl_take_request(m, msg->transaction, msg->request, &r))
		gl_master_drop(m, GL_UNSOLICITED, o);
	else if (r.type == GL_DELETE && p->reason == GL_PROBLEM_STALE_EPOCH && p->value == m->used_epoch && m->reg.epoch < p->value) {
		m->reg.epoch = p->value; /* the switch accepted the update that the master had given up */
		gl_add_request(m, now, GL_DELETE, NULL, r.unreported, o);
	} else if (r.unreported)
		return;
	else if (r.type == GL_LEAVE)
		rejected(m, GL_LEAVE_FAILED, "leave", p, o)->member = r.member;
	else
		rejected(m, GL_GROUP_GONE, "delete", p, o)->end_reason = GL_DELETED;
}

static bool epoch_is_old(const struct gl_problem *p)
{
	return p->reason == GL_PROBLEM_STALE_EPOCH || p->reason == GL_PROBLEM_EPOCH_CONFLICT;
}

/* Tries again under a newer epoch, if the epoch was the only fault. */
static void update_rejected(struct gl_master *m, uint64_t now, const struct gl_problem *p, struct gl_output *o)
{
	if (p->reason == GL_PROBLEM_STALE_TRANSACTION) {
		m->last_transaction = (uint32_t)p->value;
		gl_new_update(m, now, o);
		return;
	}
	m->used_epoch = m->update.reg.epoch;
	if (epoch_is_old(p) && next_epoch(&m->update.reg.epoch, p->value)) {
		gl_new_update(m, now, o);
		return;
	}
	m->update.on = false;
	rejected(m, GL_UPDATE_FAILED, "update", p, o);
}

static void on_reject(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_problem p = {.reason = msg->reason, .member = msg->member, .value = msg->value};
	bool registers = msg->request == GL_REGISTER && msg->transaction == m->register_tx && m->phase == GL_REGISTERING;
	bool renews = msg->request == GL_RENEW && msg->transaction == m->renew_tx && m->renewing;
	char text[GL_TEXT];

	if (msg->request == GL_LEAVE || msg->request == GL_DELETE)
		request_rejected(m, now, msg, &p, o);
	else if (msg->request == GL_REGISTER && is_update(m, msg))
		update_rejected(m, now, &p, o);
	else if (msg->epoch != m->reg.epoch)
		gl_master_drop(m, GL_STALE, o);
	else if (msg->request == GL_RENEW && m->update.on && p.reason == GL_PROBLEM_STALE_EPOCH)
		gl_master_drop(m, GL_STALE, o); /* the switch has this update already; its Accept will follow */
	else if (registers && p.reason == GL_PROBLEM_STALE_TRANSACTION) {
		m->last_transaction = (uint32_t)p.value;
		gl_new_register(m, now, o);
	} else if (renews && p.reason == GL_PROBLEM_STALE_TRANSACTION) {
		m->last_transaction = (uint32_t)p.value; /* an earlier master had this group */
		gl_send_renew(m, now, o);
	} else if (registers && epoch_is_old(&p) && m->auto_epoch && next_epoch(&m->reg.epoch, p.value)) {
		forget_confirmed(m); /* another master registered first */
		gl_new_register(m, now, o);
	} else if (registers) {
		gl_rejected_text(m, "register", &p, text, sizeof text);
		gl_master_fail(m, now, text, &p, false, o);
	} else if (renews) {
		gl_master_stop(m);
		rejected(m, GL_GROUP_GONE, "renew", &p, o)->end_reason = p.reason == GL_PROBLEM_UNKNOWN_GROUP ? GL_FORGOTTEN : GL_EXPIRED;
	} else
		gl_master_drop(m, GL_UNSOLICITED, o);
}

/* Only the answer to a transaction under way counts: a replayed one changes nothing. The epoch stays if the switch may
 * know it from this request: it has installed that, and its Accept is lost or waits for the state file. */
static void challenged(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	if (!msg->instance || (msg->instance == m->instance && m->reg.epoch)) {
		gl_master_drop(m, GL_DUPLICATE, o);
		return;
	}
	if (msg->request == GL_REGISTER && msg->transaction == m->register_tx && m->phase == GL_REGISTERING) {
		m->instance = msg->instance;
		if (m->auto_epoch && (!m->reg.epoch || msg->value > m->reg.epoch) && next_epoch(&m->reg.epoch, msg->value))
			forget_confirmed(m);
		gl_new_register(m, now, o);
		return;
	}
	if (msg->request == GL_REGISTER && m->update.on && msg->transaction == m->update.transaction) {
		m->instance = msg->instance;
		gl_new_update(m, now, o);
		return;
	}
	if (msg->request == GL_RENEW && msg->transaction == m->renew_tx && m->renewing) {
		m->instance = msg->instance;
		gl_send_renew(m, now, o);
		return;
	}
	for (size_t i = 0; i < m->num_requests; i++) {
		if (m->requests[i].transaction != msg->transaction || m->requests[i].type != msg->request)
			continue;
		m->instance = msg->instance;
		gl_send_request(m, &m->requests[i], o);
		return;
	}
	gl_master_drop(m, GL_UNSOLICITED, o);
}

static void confirmed(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	size_t at = gl_find(&m->reg, &msg->member), gone = 0;
	struct gl_event *e;
	char text[GL_TEXT];

	if (msg->epoch != m->reg.epoch)
		gl_master_drop(m, GL_STALE, o);
	else if ((m->phase != GL_REGISTERING && m->phase != GL_CONFIRMING) || (at < m->reg.num && (m->gone[at] || m->confirmed[at])))
		gl_master_drop(m, GL_DUPLICATE, o);
	else if (at == m->reg.num)
		gl_master_drop(m, GL_NOT_FOR_US, o);
	else if (msg->status != GL_CONFIRMED) {
		gl_refused_text(m, m->joiners ? "update" : "register", msg, &m->reg.records[at], text, sizeof text);
		if (m->joiners)
			gl_drop_joiners(m, now, at, text, o);
		else
			gl_master_fail(m, now, text, NULL, true, o);
	} else {
		m->confirmed[at] = true;
		for (size_t i = 0; i < m->reg.num; i++)
			gone += m->gone[i];
		e = gl_master_event(m, GL_MEMBER_CONFIRMED, o);
		e->member = msg->member;
		e->done = gl_num_confirmed(m);
		e->total = m->reg.num - gone;
		gl_check_confirmed(m, now, o);
	}
}

static void acknowledge(struct gl_master *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_message ack = {.type = GL_ACK, .epoch = msg->epoch, .instance = msg->instance, .transaction = msg->transaction,
		.group = m->reg.group, .reply_to = m->cfg.local};

	gl_send(&m->cfg, &m->switch_addr, &ack, o);
}

/* Applies what the switch has removed once, and acknowledges each copy of the message. */
static void member_or_group_gone(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	bool group = !msg->member.ip.len;
	bool asked = msg->epoch > m->reg.epoch && (msg->epoch == m->used_epoch || (m->update.on && msg->epoch == m->update.reg.epoch));
	struct gl_event *e;

	if (asked && (group || msg->reason == GL_GROUP_FAILED))
		m->reg.epoch = msg->epoch; /* the switch has installed the update, and the group has ended before all of its tree had */
	if (msg->epoch > m->reg.epoch || m->phase == GL_CREATED) {
		gl_master_drop(m, GL_STALE, o);
		return;
	}
	acknowledge(m, msg, o);
	if (msg->epoch < m->reg.epoch)
		gl_master_drop(m, GL_STALE, o);
	else if (m->phase == GL_OVER)
		gl_master_drop(m, GL_DUPLICATE, o);
	else if (msg->reason == GL_GROUP_FAILED) {
		e = gl_master_event(m, GL_GROUP_GONE, o);
		e->end_reason = GL_GROUP_FAILED;
		e->member = msg->member;
		e->code = msg->code;
		e->psn = msg->psn;
		gl_master_end(m, now, true, o); /* a failed group serves no member: delete it at the switch */
	} else if (group) {
		gl_master_stop(m);
		e = gl_master_event(m, GL_GROUP_GONE, o);
		e->end_reason = msg->reason;
		if (msg->reason == GL_SWITCH_LOST && (msg->lost.at || msg->lost.to || msg->lost.port[0]))
			snprintf(e->text, sizeof e->text, "switch %016llx lost switch %016llx at port %s", (unsigned long long)msg->lost.at,
			         (unsigned long long)msg->lost.to, msg->lost.port);
	} else
		member_gone(m, now, &msg->member, msg, o);
}

static void notice(struct gl_master *m, const struct gl_message *msg, struct gl_output *o)
{
	acknowledge(m, msg, o);
	if (msg->epoch != m->reg.epoch || (m->phase != GL_IN_GROUP && m->phase != GL_CONFIRMING) || msg->reason == GL_NOTICE_FAILED)
		gl_master_drop(m, GL_STALE, o);
	else if (msg->value <= m->notice)
		gl_master_drop(m, GL_DUPLICATE, o);
	else {
		struct gl_event *e = gl_master_event(m, msg->reason == GL_NOTICE_RESUMED ? GL_RESUMED : GL_STALLED, o);

		m->notice = msg->value;
		e->member = msg->member;
		e->psn = msg->psn;
	}
}

/* A Reject without MAC: any host can send one, so it changes only the text of a later failure. */
static void note_hint(struct gl_master *m, const uint8_t *b, size_t n)
{
	struct gl_message msg;

	if (gl_parse(b, n, &msg) == GL_NO_DROP && msg.type == GL_REJECT && msg.reason == GL_PROBLEM_AUTHENTICATION &&
	    gl_same(&msg.group, &m->reg.group) && msg.transaction == m->register_tx)
		m->auth_hint = true;
	gl_free_records(&msg);
}

/* Whether a message came from the address that it speaks for. */
static bool right_source(const struct gl_master *m, const struct gl_endpoint *from, const struct gl_message *msg)
{
	if (msg->type == GL_CONFIRM)
		return gl_same(&from->ip, &msg->member.ip);
	return gl_same(&from->ip, &msg->group) && from->port == m->cfg.port;
}

void gl_master_input(struct gl_master *m, uint64_t now, const struct gl_endpoint *from, const uint8_t *b, size_t n, struct gl_output *o)
{
	struct gl_message msg;
	enum gl_drop d;

	gl_output_reset(o);
	d = gl_decode(b, n, &m->cfg.key, &msg);
	if (d == GL_UNAUTHENTICATED)
		note_hint(m, b, n);
	if (d)
		gl_master_drop(m, d, o);
	else if (!gl_same(&msg.group, &m->reg.group))
		gl_master_drop(m, GL_UNKNOWN_GROUP, o);
	else if (gl_direction(msg.type) == GL_TO_SWITCH)
		gl_master_drop(m, GL_WRONG_ROLE, o);
	else if (!right_source(m, from, &msg))
		gl_master_drop(m, GL_WRONG_SOURCE, o);
	else if (msg.type == GL_ACCEPT)
		accepted(m, now, &msg, o);
	else if (msg.type == GL_REJECT)
		on_reject(m, now, &msg, o);
	else if (msg.type == GL_CHALLENGE)
		challenged(m, now, &msg, o);
	else if (msg.type == GL_CONFIRM)
		confirmed(m, now, &msg, o);
	else if (msg.type == GL_NOTICE)
		notice(m, &msg, o);
	else if (msg.type == GL_GONE)
		member_or_group_gone(m, now, &msg, o);
	else
		gl_master_drop(m, GL_WRONG_ROLE, o);
	gl_free_records(&msg);
}
