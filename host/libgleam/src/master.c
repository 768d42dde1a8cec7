/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A master: what it is told to do, and what it sends. Package envelope's master.go.
 */
#include "master.h"

#include <stdio.h>
#include <stdlib.h>

size_t gl_find(const struct gl_registration *r, const struct gl_member_key *k)
{
	size_t i;

	for (i = 0; i < r->num; i++)
		if (r->records[i].qpn == k->qpn && gl_same(&r->records[i].ip, &k->ip))
			break;
	return i;
}

bool gl_registration_copy(struct gl_registration *to, const struct gl_registration *from)
{
	*to = *from;
	to->records = malloc((from->num + !from->num) * sizeof *to->records);
	if (!to->records)
		return false;
	if (from->num)
		memcpy(to->records, from->records, from->num * sizeof *to->records);
	return true;
}

/* Whether r can be cut into packets of mtu bytes. */
static bool fits(const struct gl_registration *r, size_t mtu)
{
	bool v6 = r->group.len == 16;
	size_t room = gl_payload_room(mtu, v6), fixed = gl_params_size(&r->params);

	for (size_t i = 0; i < r->num; i++)
		if (room <= fixed || !gl_records_fit(r->records + i, 1, v6, room - fixed))
			return false;
	return r->num <= 0xffff;
}

static bool check(const struct gl_registration *r, size_t mtu, const char *what, char *text, size_t n)
{
	struct gl_problem p = gl_validate(r);
	char why[500];

	if (p.reason) {
		gl_problem_text(&p, why, sizeof why);
		snprintf(text, n, "%s group %s: %s", what, gl_addr_text(&r->group), why);
		return false;
	}
	if (!fits(r, mtu)) {
		snprintf(text, n, "%s group %s: no member fits into a packet of %zu bytes; use a larger one", what, gl_addr_text(&r->group), mtu);
		return false;
	}
	return true;
}

bool gl_master_init(struct gl_master *m, const struct gl_config *cfg, const struct gl_registration *reg, char *text, size_t n)
{
	memset(m, 0, sizeof *m);
	m->cfg = *cfg;
	gl_config_defaults(&m->cfg);
	if (!check(reg, m->cfg.mtu, "register", text, n))
		return false;
	if (reg->group.len != cfg->local.ip.len) {
		snprintf(text, n, "register group %s: our address %s is of another IP family", gl_addr_text(&reg->group), gl_addr_text(&cfg->local.ip));
		return false;
	}
	m->confirmed = calloc(2, reg->num);
	if (!m->confirmed || !gl_registration_copy(&m->reg, reg)) {
		free(m->confirmed);
		snprintf(text, n, "register group %s: no memory", gl_addr_text(&reg->group));
		return false;
	}
	m->gone = m->confirmed + reg->num;
	m->auto_epoch = !reg->epoch;
	m->random = cfg->seed;
	m->switch_addr = (struct gl_endpoint){.ip = reg->group, .port = m->cfg.port};
	m->last_transaction = (uint32_t)gl_random(&m->random);
	return true;
}

void gl_master_free(struct gl_master *m)
{
	free(m->reg.records);
	free(m->update.reg.records);
	free(m->confirmed);
	free(m->requests);
	explicit_bzero(m, sizeof *m);
}

struct gl_event *gl_master_event(const struct gl_master *m, enum gl_event_kind kind, struct gl_output *o)
{
	struct gl_event *e = gl_add_event(o, kind);

	e->epoch = m->reg.epoch;
	return e;
}

void gl_master_drop(struct gl_master *m, enum gl_drop d, struct gl_output *o)
{
	m->drops[d]++;
	o->drop = d;
}

static void send_as(struct gl_master *m, uint64_t epoch, uint32_t transaction, struct gl_message *msg, struct gl_output *o)
{
	msg->epoch = epoch;
	msg->instance = m->instance;
	msg->transaction = transaction;
	msg->group = m->reg.group;
	msg->reply_to = m->cfg.local;
	gl_send(&m->cfg, &m->switch_addr, msg, o);
}

/* Sends the segments of r, or its first one. */
static void send_segments(struct gl_master *m, const struct gl_registration *r, uint32_t transaction, bool first, struct gl_output *o)
{
	bool v6 = r->group.len == 16;
	size_t room = gl_payload_room(m->cfg.mtu, v6) - gl_params_size(&r->params);
	uint16_t total = 0;

	for (size_t at = 0; at < r->num; total++)
		at += gl_records_fit(r->records + at, r->num - at, v6, room);
	for (size_t at = 0, seq = 0; at < r->num; seq++) {
		size_t n = gl_records_fit(r->records + at, r->num - at, v6, room);
		struct gl_message msg = {.type = GL_REGISTER, .seq = (uint16_t)seq, .total = total, .params = r->params,
			.records = r->records + at, .num_records = n};

		msg.params.members = (uint16_t)r->num;
		send_as(m, r->epoch, transaction, &msg, o);
		if (first)
			return;
		at += n;
	}
}

void gl_new_register(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	m->register_tx = ++m->last_transaction;
	m->register_sent = now;
	gl_backoff_start(&m->retry, now, m->cfg.retry_min, &m->random);
	gl_send_register(m, o);
}

/* While the switch's instance is unknown, the first segment alone is sent, which is
 * answered with a Challenge. */
void gl_send_register(struct gl_master *m, struct gl_output *o)
{
	send_segments(m, &m->reg, m->register_tx, !m->instance || !m->reg.epoch, o);
}

void gl_new_update(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	m->update.transaction = ++m->last_transaction;
	m->update.sent = now;
	gl_backoff_start(&m->update.retry, now, m->cfg.retry_min, &m->random);
	gl_send_update(m, o);
}

void gl_send_update(struct gl_master *m, struct gl_output *o)
{
	send_segments(m, &m->update.reg, m->update.transaction, false, o);
}

/* A Renew has a transaction of its own: the switch takes each once. It lists members that
 * have not confirmed, from where the last list stopped. */
void gl_send_renew(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	struct gl_message msg = {.type = GL_RENEW, .lease = m->reg.params.lease};
	bool v6 = m->reg.group.len == 16;
	size_t waiting = gl_num_waiting(m), n = 0;

	m->renew_tx = ++m->last_transaction;
	m->renew_sent = now;
	m->renewing = true;
	if (m->phase == GL_CONFIRMING && waiting) {
		msg.records = calloc(waiting, sizeof *msg.records);
		for (size_t i = 0; msg.records && i < m->reg.num; i++) {
			if (m->confirmed[i] || m->gone[i])
				continue;
			msg.records[(n + waiting - m->next_record % waiting) % waiting] = (struct gl_record){.ip = m->reg.records[i].ip, .qpn = m->reg.records[i].qpn};
			n++;
		}
		if (msg.records)
			msg.num_records = gl_records_fit(msg.records, waiting, v6, gl_payload_room(m->cfg.mtu, v6) - 8);
		m->next_record = (m->next_record + msg.num_records) % waiting;
	}
	send_as(m, m->reg.epoch, m->renew_tx, &msg, o);
	free(msg.records);
}

void gl_send_request(struct gl_master *m, const struct gl_request *r, struct gl_output *o)
{
	struct gl_message msg = {.type = r->type, .member = r->member};

	send_as(m, m->reg.epoch, r->transaction, &msg, o);
}

void gl_add_request(struct gl_master *m, uint64_t now, uint8_t type, const struct gl_member_key *k, bool unreported, struct gl_output *o)
{
	struct gl_request *r;

	if (m->num_requests == m->room_requests) {
		size_t room = 2 * m->room_requests + 4;

		r = realloc(m->requests, room * sizeof *r);
		if (!r) {
			o->lost++;
			return;
		}
		m->requests = r;
		m->room_requests = room;
	}
	r = &m->requests[m->num_requests++];
	*r = (struct gl_request){.type = type, .transaction = ++m->last_transaction, .deadline = now + m->cfg.deadline, .unreported = unreported};
	if (k)
		r->member = *k;
	gl_backoff_start(&r->retry, now, m->cfg.retry_min, &m->random);
	gl_send_request(m, r, o);
}

bool gl_take_request(struct gl_master *m, uint32_t transaction, uint8_t type, struct gl_request *r)
{
	for (size_t i = 0; i < m->num_requests; i++) {
		if (m->requests[i].transaction != transaction || m->requests[i].type != type)
			continue;
		*r = m->requests[i];
		m->num_requests--;
		memmove(m->requests + i, m->requests + i + 1, (m->num_requests - i) * sizeof *r);
		return true;
	}
	return false;
}

void gl_master_start(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	gl_output_reset(o);
	if (m->phase != GL_CREATED)
		return;
	m->phase = GL_REGISTERING;
	m->deadline = now + m->cfg.deadline;
	gl_new_register(m, now, o);
}

bool gl_master_leave(struct gl_master *m, uint64_t now, const struct gl_member_key *k, struct gl_output *o, char *text, size_t n)
{
	size_t at = gl_find(&m->reg, k);
	const char *group = gl_addr_text(&m->reg.group);
	char name[80];

	gl_output_reset(o);
	gl_key_text(k, name, sizeof name);
	if (at == m->reg.num || m->gone[at]) {
		snprintf(text, n, "group %s: %s is not a member", group, name);
		return false;
	}
	if (m->phase != GL_CONFIRMING && m->phase != GL_IN_GROUP) {
		snprintf(text, n, "group %s is not registered: nothing to leave", group);
		return false;
	}
	if (m->update.on) {
		snprintf(text, n, "group %s: an update is under way, which says who the members are", group);
		return false;
	}
	for (size_t i = 0; i < m->num_requests; i++)
		if (gl_same_key(&m->requests[i].member, k))
			return true;
	gl_add_request(m, now, GL_LEAVE, k, false, o);
	return true;
}

bool gl_master_update(struct gl_master *m, uint64_t now, const struct gl_record *rs, size_t num, struct gl_output *o, char *text, size_t n)
{
	struct gl_registration reg = m->reg;
	uint64_t newest = m->reg.epoch > m->used_epoch ? m->reg.epoch : m->used_epoch;

	gl_output_reset(o);
	if (m->joiners || m->update.on || m->phase != GL_IN_GROUP) {
		snprintf(text, n, "update group %s: %s", gl_addr_text(&m->reg.group),
		         m->phase == GL_IN_GROUP || m->joiners ? "another update is under way" : "it is not registered");
		return false;
	}
	reg.records = (struct gl_record *)(uintptr_t)rs;
	reg.num = num;
	reg.params.base = m->reg.epoch;
	reg.epoch = newest + 1;
	if (!check(&reg, m->cfg.mtu, "update", text, n))
		return false;
	free(m->update.reg.records);
	if (!gl_registration_copy(&m->update.reg, &reg)) {
		snprintf(text, n, "update group %s: no memory", gl_addr_text(&m->reg.group));
		return false;
	}
	m->update.on = true;
	m->update.started = now;
	gl_new_update(m, now, o);
	return true;
}

void gl_master_delete(struct gl_master *m, uint64_t now, struct gl_output *o)
{
	gl_output_reset(o);
	if (m->phase == GL_CREATED || (m->phase == GL_REGISTERING && !m->instance)) {
		m->phase = GL_OVER; /* the switch cannot have accepted any request yet */
		gl_add_event(o, GL_GROUP_GONE)->end_reason = GL_DELETED;
	}
	if (m->phase != GL_OVER)
		gl_master_end(m, now, false, o);
}

void gl_master_stop(struct gl_master *m)
{
	m->phase = GL_OVER;
	m->num_requests = 0;
	m->update.on = m->joiners = m->renewing = false;
}

void gl_master_end(struct gl_master *m, uint64_t now, bool unreported, struct gl_output *o)
{
	if (m->update.on)
		m->used_epoch = m->update.reg.epoch;
	gl_master_stop(m);
	gl_add_request(m, now, GL_DELETE, NULL, unreported, o);
}

bool gl_master_ended(const struct gl_master *m)
{
	return m->phase == GL_OVER && !m->num_requests;
}

size_t gl_master_members(const struct gl_master *m, struct gl_record *rs, size_t num)
{
	size_t n = 0;

	for (size_t i = 0; i < m->reg.num && n < num; i++)
		if (!m->gone[i])
			rs[n++] = m->reg.records[i];
	return n;
}
