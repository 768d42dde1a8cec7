/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A member: confirms or refuses what the switch has registered, answers where it is,
 * and leaves. Package envelope's member.go and member_input.go.
 */
#include <stdio.h>

#include "machine.h"

void gl_member_init(struct gl_member *m, const struct gl_config *cfg)
{
	memset(m, 0, sizeof *m);
	m->cfg = *cfg;
	gl_config_defaults(&m->cfg);
	m->random = cfg->seed;
	m->last_transaction = (uint32_t)gl_random(&m->random);
}

static uint64_t unauthentic(const struct gl_member *m)
{
	return m->drops[GL_UNAUTHENTICATED] + m->drops[GL_UNKNOWN_KEY] + m->drops[GL_BAD_MAC];
}

void gl_member_join(struct gl_member *m, const struct gl_membership *is)
{
	bool again = m->joined && gl_same(&m->is.group, &is->group);

	if (!again)
		m->epoch = 0;
	m->is = *is;
	m->ended = again; /* an ended epoch stays ended */
	m->joined = true;
	m->leaving = false;
	m->instance = m->refused = m->notice = 0;
	m->question = (struct gl_question){0};
	m->status = GL_CONFIRMED;
	m->unauthentic_at_join = unauthentic(m);
}

bool gl_member_problem(const struct gl_member *m, char *text, size_t n)
{
	if (!m->joined || (m->epoch && !m->ended))
		return false;
	if (m->status != GL_CONFIRMED) {
		snprintf(text, n, "the switch has another registration of this member, which therefore %s", gl_status_text(m->status));
		return true;
	}
	if (unauthentic(m) == m->unauthentic_at_join)
		return false;
	snprintf(text, n, "%llu messages were dropped because they are not authentic: check key id and key here, at the master and at the switch",
	         (unsigned long long)(unauthentic(m) - m->unauthentic_at_join));
	return true;
}

static void drop(struct gl_member *m, enum gl_drop d, struct gl_output *o)
{
	m->drops[d]++;
	o->drop = d;
}

static struct gl_member_key self(const struct gl_member *m)
{
	return (struct gl_member_key){.ip = m->cfg.local.ip, .qpn = m->is.qpn};
}

static struct gl_event *event(const struct gl_member *m, enum gl_event_kind kind, uint64_t epoch, struct gl_output *o)
{
	struct gl_event *e = gl_add_event(o, kind);

	e->epoch = epoch;
	e->member = self(m);
	return e;
}

/* Sends an answer to msg, or what has its numbers. */
static void answer(const struct gl_member *m, const struct gl_message *msg, const struct gl_endpoint *to, struct gl_message *a,
                   struct gl_output *o)
{
	a->epoch = msg->epoch;
	a->instance = msg->instance;
	a->transaction = msg->transaction;
	a->group = msg->group;
	a->reply_to = m->cfg.local;
	gl_send(&m->cfg, to, a, o);
}

static struct gl_endpoint switch_of(const struct gl_member *m, const struct gl_addr *group)
{
	return (struct gl_endpoint){.ip = *group, .port = m->cfg.port};
}

static void send_leave(const struct gl_member *m, struct gl_output *o)
{
	struct gl_endpoint to = switch_of(m, &m->is.group);
	struct gl_message numbers = {.epoch = m->epoch, .instance = m->instance, .transaction = m->transaction, .group = m->is.group};
	struct gl_message leave = {.type = GL_LEAVE, .member = self(m)};

	answer(m, &numbers, &to, &leave, o);
}

/* Package envelope's question.go. */
#define MEMBERS_PER_QUESTION 256
#define UNKNOWN_TWICE 2

static bool asks(const struct gl_member *m)
{
	return m->joined && m->question.timer.next && m->epoch && !m->ended && !m->leaving;
}

static void send_question(const struct gl_member *m, struct gl_output *o)
{
	struct gl_endpoint to = switch_of(m, &m->is.group);
	struct gl_message numbers = {.epoch = m->epoch, .instance = m->instance, .transaction = m->question.transaction, .group = m->is.group};
	struct gl_message renew = {.type = GL_RENEW};

	answer(m, &numbers, &to, &renew, o);
}

static void start_asking(struct gl_member *m, uint64_t now, uint32_t members)
{
	m->question = (struct gl_question){.every = m->cfg.ask_every * (1 + members / MEMBERS_PER_QUESTION)};
	if (m->cfg.ask_every)
		gl_backoff_start(&m->question.timer, now, m->question.every, &m->random);
}

static void ask(struct gl_member *m, uint64_t now, struct gl_output *o)
{
	m->question.transaction = ++m->last_transaction;
	m->question.asked = true;
	gl_backoff_start(&m->question.timer, now, m->question.every, &m->random);
	send_question(m, o);
}

void gl_member_leave(struct gl_member *m, uint64_t now, struct gl_output *o)
{
	gl_output_reset(o);
	if (!m->joined || m->leaving)
		return;
	if (!m->epoch || m->ended) {
		m->joined = false;
		event(m, GL_GROUP_GONE, m->epoch, o)->end_reason = GL_LEFT_BY_REQUEST;
		return;
	}
	m->leaving = true;
	m->transaction = ++m->last_transaction;
	m->deadline = now + m->cfg.deadline;
	gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);
	send_leave(m, o);
}

uint64_t gl_member_deadline(const struct gl_member *m)
{
	if (asks(m))
		return m->question.timer.next;
	if (!m->joined || !m->leaving)
		return GL_NEVER;
	return m->retry.next < m->deadline ? m->retry.next : m->deadline;
}

void gl_member_advance(struct gl_member *m, uint64_t now, struct gl_output *o)
{
	struct gl_event *e;

	gl_output_reset(o);
	if (asks(m) && now >= m->question.timer.next)
		ask(m, now, o);
	if (!m->joined || !m->leaving)
		return;
	if (now >= m->deadline) {
		m->leaving = false;
		m->ended = true;
		e = event(m, GL_LEAVE_FAILED, m->epoch, o);
		gl_no_answer_text("leave", &m->is.group, m->cfg.deadline, e->text, sizeof e->text);
	} else if (now >= m->retry.next) {
		gl_backoff_retry(&m->retry, now, m->cfg.retry_max, &m->random);
		send_leave(m, o);
	}
}

/* The first difference between the registration and the queue pair. */
static enum gl_status compare(const struct gl_membership *is, const struct gl_params *p, const struct gl_record *r)
{
	if (r->qpn != is->qpn)
		return GL_QPN_MISMATCH;
	if (p->qpn != is->virtual_qpn)
		return GL_VIRTUAL_QPN_MISMATCH;
	if (p->path_mtu != is->path_mtu)
		return GL_PATH_MTU_MISMATCH;
	if (r->sq_psn != is->sq_psn)
		return GL_SQ_PSN_MISMATCH;
	if (r->rq_psn != is->rq_psn)
		return GL_RQ_PSN_MISMATCH;
	/* A member may have a window that a group without one does not use. */
	if (!gl_same_window(&r->window, &is->window) && (gl_has_window(&r->window) || gl_has_window(&p->window)))
		return GL_WINDOW_MISMATCH;
	return GL_CONFIRMED;
}

static void notified(struct gl_member *m, uint64_t now, const struct gl_message *msg, struct gl_output *o)
{
	const struct gl_record *r = NULL;
	struct gl_message confirm = {.type = GL_CONFIRM};
	struct gl_event *e;

	for (size_t i = 0; i < msg->num_records; i++)
		if (gl_same(&msg->records[i].ip, &m->cfg.local.ip))
			r = &msg->records[i];
	if (!r || gl_is_zero(&msg->reply_to.ip) || !msg->reply_to.port) {
		drop(m, GL_NOT_FOR_US, o);
		return;
	}
	confirm.member = gl_key_of(r);
	if (!m->joined) {
		confirm.status = GL_NOT_JOINED;
		answer(m, msg, &msg->reply_to, &confirm, o);
		return;
	}
	if (msg->epoch < m->epoch || (msg->epoch == m->epoch && m->ended) || m->leaving) {
		drop(m, GL_STALE, o);
		return;
	}
	confirm.status = compare(&m->is, &msg->params, r);
	confirm.qpn = m->is.qpn;
	confirm.sq_psn = m->is.sq_psn;
	confirm.rq_psn = m->is.rq_psn;
	answer(m, msg, &msg->reply_to, &confirm, o);
	if (confirm.status != GL_CONFIRMED && m->refused != msg->epoch) {
		m->refused = msg->epoch;
		m->status = confirm.status;
		e = event(m, GL_REGISTRATION_FAILED, msg->epoch, o);
		e->status = confirm.status;
	} else if (confirm.status == GL_CONFIRMED && m->epoch != msg->epoch) {
		m->epoch = msg->epoch;
		m->ended = false;
		m->question = (struct gl_question){0};
		if (!gl_same(&msg->reply_to.ip, &m->cfg.local.ip)) /* else the master is here, and renews */
			start_asking(m, now, msg->params.members);
		event(m, GL_REGISTERED, msg->epoch, o);
	}
	if (confirm.status == GL_CONFIRMED) {
		m->instance = msg->instance;
		m->status = GL_CONFIRMED;
	}
}

static struct gl_event *end(struct gl_member *m, uint64_t epoch, const struct gl_message *gone, struct gl_output *o)
{
	struct gl_event *e;

	m->epoch = epoch;
	m->ended = true;
	m->leaving = false;
	e = event(m, GL_GROUP_GONE, epoch, o);
	e->end_reason = gone ? gone->reason : GL_LEFT_BY_REQUEST;
	if (!gone)
		return e;
	e->psn = gone->psn;
	e->code = gone->code;
	if (gone->reason == GL_SWITCH_LOST && (gone->lost.at || gone->lost.to || gone->lost.port[0]))
		snprintf(e->text, sizeof e->text, "switch %016llx lost switch %016llx at port %s", (unsigned long long)gone->lost.at,
		         (unsigned long long)gone->lost.to, gone->lost.port);
	return e;
}

/* Acknowledges every Gone for this member, so that the switch stops to repeat it. */
static void gone(struct gl_member *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_endpoint to = switch_of(m, &msg->group);
	struct gl_message ack = {.type = GL_ACK};

	if (!gl_same(&msg->member.ip, &m->cfg.local.ip)) {
		drop(m, GL_NOT_FOR_US, o);
		return;
	}
	answer(m, msg, &to, &ack, o);
	if (!m->joined)
		drop(m, GL_UNKNOWN_GROUP, o);
	else if (msg->epoch < m->epoch || msg->member.qpn != m->is.qpn)
		drop(m, GL_STALE, o);
	else if (msg->epoch == m->epoch && m->ended)
		drop(m, GL_DUPLICATE, o);
	else if (!m->epoch) { /* nothing depends on this epoch here; but a delayed Notify of it is void */
		m->epoch = msg->epoch;
		m->ended = true;
		drop(m, GL_STALE, o);
	} else
		end(m, msg->epoch, msg, o);
}

/* Acknowledges each Notice, and reports it once. Package envelope's notice.go. */
static void notice(struct gl_member *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_endpoint to = switch_of(m, &msg->group);
	struct gl_message ack = {.type = GL_ACK};
	struct gl_event *e;

	if (msg->group.len != m->cfg.local.ip.len) {
		drop(m, GL_NOT_FOR_US, o);
		return;
	}
	answer(m, msg, &to, &ack, o);
	if (!m->joined)
		drop(m, GL_UNKNOWN_GROUP, o);
	else if (!m->epoch || msg->epoch < m->epoch || m->ended)
		drop(m, GL_STALE, o);
	else if (msg->reason == GL_NOTICE_FAILED) {
		m->epoch = msg->epoch;
		m->ended = true;
		m->leaving = false;
		e = event(m, GL_GROUP_GONE, msg->epoch, o);
		e->end_reason = GL_GROUP_FAILED;
		e->member = msg->member;
		e->psn = msg->psn;
		e->code = msg->code;
	} else if (msg->value <= m->notice)
		drop(m, GL_DUPLICATE, o);
	else {
		m->notice = msg->value;
		e = event(m, msg->reason == GL_NOTICE_RESUMED ? GL_RESUMED : GL_STALLED, msg->epoch, o);
		e->member = msg->member;
		e->psn = msg->psn;
	}
}

static void where(struct gl_member *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_endpoint to = switch_of(m, &msg->group);
	struct gl_message here = {.type = GL_HERE, .member.ip = m->cfg.local.ip};

	if (!gl_same(&msg->member.ip, &m->cfg.local.ip)) {
		drop(m, GL_NOT_FOR_US, o);
		return;
	}
	memcpy(here.nonce, msg->nonce, sizeof here.nonce);
	answer(m, msg, &to, &here, o);
}

/* Accept, Reject and Challenge: to the question that is under way. */
static void question_answered(struct gl_member *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_question *q = &m->question;

	if (!asks(m) || !q->asked || msg->transaction != q->transaction || msg->epoch != m->epoch)
		drop(m, GL_UNSOLICITED, o);
	else if (msg->type == GL_CHALLENGE && (!msg->instance || msg->instance == m->instance))
		drop(m, GL_DUPLICATE, o);
	else if (msg->type == GL_CHALLENGE) {
		m->instance = msg->instance;
		send_question(m, o);
	} else {
		q->asked = false;
		if (msg->type == GL_ACCEPT || msg->reason != GL_PROBLEM_UNKNOWN_GROUP) {
			q->unknown = 0;
			m->instance = msg->instance;
		} else if (++q->unknown >= UNKNOWN_TWICE)
			end(m, m->epoch, NULL, o)->end_reason = GL_FORGOTTEN;
	}
}

/* Accept, Reject and Challenge: to the Leave that is under way, or to nothing. */
static void answered(struct gl_member *m, const struct gl_message *msg, struct gl_output *o)
{
	struct gl_problem p = {.reason = msg->reason, .member = msg->member, .value = msg->value};
	struct gl_event *e;
	int n;

	if (!m->joined || !m->leaving || msg->request != GL_LEAVE || msg->transaction != m->transaction || msg->epoch != m->epoch)
		drop(m, GL_UNSOLICITED, o);
	else if (msg->type == GL_CHALLENGE && (!msg->instance || msg->instance == m->instance))
		drop(m, GL_DUPLICATE, o);
	else if (msg->type == GL_CHALLENGE) {
		m->instance = msg->instance;
		send_leave(m, o);
	} else if (msg->type == GL_ACCEPT || p.reason == GL_PROBLEM_UNKNOWN_GROUP || p.reason == GL_PROBLEM_STALE_EPOCH)
		end(m, m->epoch, NULL, o);
	else {
		m->leaving = false;
		e = event(m, GL_LEAVE_FAILED, m->epoch, o);
		e->problem = p;
		n = snprintf(e->text, sizeof e->text, "leave group %s: the switch rejects it: ", gl_addr_text(&m->is.group));
		gl_problem_text(&p, e->text + n, sizeof e->text - (size_t)n);
	}
}

void gl_member_input(struct gl_member *m, uint64_t now, const struct gl_endpoint *from, const uint8_t *b, size_t n, struct gl_output *o)
{
	struct gl_message msg;
	enum gl_drop d;

	gl_output_reset(o);
	d = gl_decode(b, n, &m->cfg.key, &msg);
	if (d)
		drop(m, d, o);
	else if (gl_direction(msg.type) != GL_FROM_SWITCH)
		drop(m, GL_WRONG_ROLE, o);
	else if (!gl_same(&from->ip, &msg.group) || from->port != m->cfg.port)
		drop(m, GL_WRONG_SOURCE, o);
	else if (msg.type == GL_WHERE)
		where(m, &msg, o);
	else if (m->joined && !gl_same(&msg.group, &m->is.group))
		/* perhaps another process of this host is in that group */
		drop(m, msg.type == GL_ACCEPT || msg.type == GL_REJECT || msg.type == GL_CHALLENGE ? GL_UNSOLICITED : GL_UNKNOWN_GROUP, o);
	else if (msg.type == GL_NOTIFY)
		notified(m, now, &msg, o);
	else if (msg.type == GL_GONE)
		gone(m, &msg, o);
	else if (msg.type == GL_NOTICE)
		notice(m, &msg, o);
	else if (msg.request == GL_RENEW && (msg.type == GL_ACCEPT || msg.type == GL_REJECT || msg.type == GL_CHALLENGE))
		question_answered(m, &msg, o);
	else
		answered(m, &msg, o);
	gl_free_records(&msg);
}
