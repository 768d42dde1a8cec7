/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The life of a participation: from the numbers of a queue pair over the
 * registration to the end, and its events.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "group.h"

static uint64_t random_number(void)
{
	uint64_t n = gl_now();

	if (getrandom(&n, sizeof n, 0) < 0)
		return n; /* it spreads hosts, and is no secret */
	return n;
}

#define EVENT_SLOTS 256

struct gleam_event *gl_report(struct gleam_group *g, enum gleam_event_kind kind)
{
	static _Thread_local struct gleam_event nowhere;
	struct gl_waiting_event *w = NULL;

	if (g->num_events == EVENT_SLOTS) { /* the oldest gives way */
		w = g->first;
		g->first = w->next;
		g->num_events--;
	} else
		w = malloc(sizeof *w);
	if (!w)
		return &nowhere;
	memset(w, 0, sizeof *w);
	w->event.kind = kind;
	if (g->num_events)
		g->last->next = w;
	else
		g->first = w;
	g->last = w;
	g->num_events++;
	gl_signal_events(g);
	return &w->event;
}

static void forget_events(struct gleam_group *g)
{
	while (g->num_events) {
		struct gl_waiting_event *w = g->first;

		g->first = w->next;
		free(w);
		g->num_events--;
	}
	gl_signal_events(g);
}

/* Says what happened in words: kind (member): reason; psn; cause. */
static void describe(struct gleam_event *e, const struct gl_event *m)
{
	static const char *const kinds[] = {"", "joined", "member left", "evicted", "failed", "ended"};
	bool about = e->kind == GLEAM_LEFT || e->kind == GLEAM_EVICTED || e->kind == GLEAM_FAILED;
	char psn[100] = "", cause[300] = "";

	if (about && m->member.ip.len)
		snprintf(e->member, sizeof e->member, "%s", gl_addr_text(&m->member.ip));
	if (m->end_reason == GL_END_EVICTED || m->end_reason == GL_GROUP_FAILED) {
		gl_cause_text(m->code, cause, sizeof cause);
		snprintf(psn, sizeof psn, m->end_reason == GL_END_EVICTED ? "; it had everything up to PSN 0x%06x" : ", for PSN 0x%06x", m->psn);
	}
	e->psn = m->psn;
	snprintf(e->text, sizeof e->text, "%s%s%s%s%s%s%s%s%s%s%.400s", kinds[e->kind], *e->member ? " (" : "", e->member, *e->member ? ")" : "",
	         m->end_reason ? ": " : "", m->end_reason ? gl_end_reason_text(m->end_reason) : "", *cause ? ", " : "", cause, psn,
	         *m->text ? ": " : "", m->text);
}

void gl_release(struct gleam_group *g)
{
	gl_exchange_end(g, NULL);
	if (g->member_fd >= 0)
		close(g->member_fd);
	if (g->master_fd >= 0)
		close(g->master_fd);
	g->member_fd = g->master_fd = -1;
	if (g->has_mas)
		gl_master_free(&g->mas);
	g->has_mas = false;
	g->mem.joined = false;
	free(g->peers);
	g->peers = NULL;
	g->num_peers = g->room_peers = 0;
}

/* The final event of a group that was joined. */
static void over(struct gleam_group *g, const struct gl_event *m)
{
	enum gleam_event_kind kind = GLEAM_ENDED;
	struct gl_event e = *m;
	struct gleam_event *report;

	if (g->stage == GL_ENDED_STAGE)
		return;
	if (m->end_reason == GL_GROUP_FAILED)
		kind = GLEAM_FAILED;
	else if (m->end_reason == GL_END_EVICTED)
		kind = GLEAM_EVICTED;
	else if (m->end_reason == GL_SWITCH_LOST) {
		kind = GLEAM_FAILED;
		e.member.ip.len = 0;
	}
	report = gl_report(g, kind);
	describe(report, &e);
	g->stage = GL_ENDED_STAGE;
	if (g->leaving == GL_UNDER_WAY)
		g->leaving = GL_DONE;
	if (g->changing == GL_UNDER_WAY) {
		g->changing = GL_REFUSED;
		snprintf(g->outcome, sizeof g->outcome, "the group has ended: %s", report->text);
	}
	gl_changed(g);
}

void gl_fail(struct gleam_group *g, int number, const char *format, ...)
{
	va_list args;
	char why[GL_FAILURE - 100];

	if (g->stage == GL_ENDED_STAGE)
		return;
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	if (g->master)
		snprintf(g->failure, sizeof g->failure, "make group %s: %s", gl_addr_text(&g->group_ip), why);
	else
		snprintf(g->failure, sizeof g->failure, "join as member: %s", why);
	g->failed_by = number;
	snprintf(gl_report(g, GLEAM_FAILED)->text, sizeof(((struct gleam_event *)0)->text), "failed: %.500s", g->failure);
	g->stage = GL_ENDED_STAGE;
	if (g->has_mas && g->mas.phase != GL_OVER && g->mas.phase != GL_CREATED) {
		gl_master_delete(&g->mas, gl_now(), &g->out); /* the lease would end it as well */
		g->out.num_events = 0;
		gl_flush(g, g->master_fd);
	}
	gl_exchange_end(g, why);
	gl_release(g);
	gl_changed(g);
}

void gl_give_up(struct gleam_group *g, int number, const char *cause)
{
	char text[GL_FAILURE - 200];
	const char *sending = "";

	if (g->stage == GL_REGISTERS && g->has_mas && gl_master_unfinished(&g->mas, gl_now(), text, sizeof text)) {
		sending = g->send_errno ? strerror(g->send_errno) : "";
		gl_fail(g, number, "register: %s (%s)%s%s%s", text, cause, *sending ? " (last error on sending: " : "", sending, *sending ? ")" : "");
		return;
	}
	if (g->exchange)
		gl_exchange_missing(g, cause, text, sizeof text);
	else if (!g->connected)
		snprintf(text, sizeof text, "the application had not connected its queue pair: %s", cause);
	else if (gl_member_problem(&g->mem, text, sizeof text))
		snprintf(text + strlen(text), sizeof text - strlen(text), " (%s)", cause);
	else
		snprintf(text, sizeof text, "the switch has not registered this member: %s", cause);
	gl_fail(g, number, "%s", text);
}

bool gl_add_peer(struct gleam_group *g, const struct gl_record *r)
{
	if (g->num_peers == g->room_peers) {
		size_t room = 2 * g->room_peers + 8;
		struct gl_record *more = realloc(g->peers, room * sizeof *more);

		if (!more)
			return false;
		g->peers = more;
		g->room_peers = room;
	}
	g->peers[g->num_peers++] = *r;
	return true;
}

int gl_begin(struct gleam_group *g, const struct gl_record *self)
{
	struct gl_endpoint at = {.ip = self->ip, .port = g->cfg.port};
	char text[400];

	if (g->stage != GL_IDLE && g->stage != GL_ENDED_STAGE) {
		if (g->stage == GL_JOINED_STAGE)
			return gl_error(EINVAL, "called out of order: it is in group %s already; leave first", gl_addr_text(&g->info.ip));
		return gl_error(EINVAL, "called out of order: a join is going on; leave first");
	}
	if (g->master && self->ip.len != g->group_ip.len)
		return gl_error(EINVAL, "invalid argument: qp.gid is %s, of another IP family than attr.group_ip", gl_addr_text(&self->ip));
	gl_release(g);
	forget_events(g);
	g->connected = g->joined = false;
	g->failed_by = g->send_errno = 0;
	g->failure[0] = 0;
	g->changing = g->leaving = GL_NOTHING;
	g->self = *self;
	g->self.receive_only = g->flags & GLEAM_RECEIVE_ONLY;
	memset(&g->info, 0, sizeof g->info);
	if (!gl_bind(&at, &g->member_fd, text, sizeof text))
		return gl_error(EIO, g->master ? "make group: %s" : "join as member: %s", text);
	if (!gl_watch(g, g->member_fd, EPOLLIN, GL_TAG_MEMBER))
		return gl_error(EIO, "watch a socket: %s", strerror(errno));
	g->cfg.local = at;
	g->cfg.seed = random_number();
	gl_member_init(&g->mem, &g->cfg);
	g->stage = GL_MEETING;
	if (g->master) {
		g->info = (struct gl_info){.ip = g->group_ip, .qpn = g->params.qpn, .path_mtu = g->params.path_mtu};
		gl_connect_member(g);
	}
	return 0;
}

/* The group is known. */
void gl_described(struct gleam_group *g)
{
	if (!g->master)
		gl_connect_member(g);
	g->stage = GL_DESCRIBED;
	gl_changed(g);
}

/* Determines the WRITE window: at most one member may do without memory. */
static bool choose_window(struct gleam_group *g, char *text, size_t n)
{
	uint64_t least = 0;
	size_t lacking = 0;

	for (size_t i = 0; i <= g->num_peers; i++) {
		const struct gl_mem *w = &(i ? &g->peers[i - 1] : &g->self)->window;

		lacking += !gl_has_window(w);
		if (gl_has_window(w) && (!least || w->len < least))
			least = w->len;
	}
	if (!least && !g->window.len)
		return true; /* a group for SEND */
	if (lacking > 1)
		snprintf(text, n, "no WRITE window is possible: %zu members have no memory for it, and only the member that always sends can do without", lacking);
	else if (g->window.len > least)
		snprintf(text, n, "a WRITE window of %llu bytes does not fit: the smallest memory of a member has %llu", (unsigned long long)g->window.len,
		         (unsigned long long)least);
	else {
		g->info.window = g->window;
		if (!g->window.len)
			g->info.window.len = least;
		g->info.window.rkey = (uint32_t)random_number() | 1;
		if (gl_valid_window(&g->info.window))
			return true;
		snprintf(text, n, "a WRITE window of %llu bytes at 0x%llx passes the end of the address space", (unsigned long long)g->info.window.len,
		         (unsigned long long)g->window.base);
	}
	return false;
}

/* At the master, which knows all members: checks the registration and makes the machine. */
bool gl_prepare(struct gleam_group *g, char *text, size_t n)
{
	struct gl_endpoint at = {.ip = g->self.ip};
	struct gl_registration reg = {.group = g->group_ip, .params = g->params};
	struct gl_config cfg = g->cfg;
	struct gl_record *all;
	bool fine;

	g->info.members = (uint32_t)g->num_peers + 1;
	if (!choose_window(g, text, n))
		return false;
	if (g->flags & GLEAM_TARGETS)
		g->info.target_key = ((uint32_t)random_number() & ~1u) | 2; /* even and not 0: never the window's */
	if (!gl_check_loopback(text, n) || !gl_bind(&at, &g->master_fd, text, n))
		return false;
	if (!gl_watch(g, g->master_fd, EPOLLIN, GL_TAG_MASTER)) {
		snprintf(text, n, "watch a socket: %s", strerror(errno));
		return false;
	}
	cfg.local = gl_local_of(g->master_fd);
	cfg.seed = random_number();
	reg.params.window = g->info.window;
	reg.params.target_key = g->info.target_key;
	all = calloc(g->num_peers + 1, sizeof *all);
	if (!all) {
		snprintf(text, n, "no memory");
		return false;
	}
	all[0] = g->self;
	if (g->num_peers)
		memcpy(all + 1, g->peers, g->num_peers * sizeof *all);
	reg.records = all;
	reg.num = g->num_peers + 1;
	fine = gl_master_init(&g->mas, &cfg, &reg, text, n);
	free(all);
	g->has_mas = fine;
	return fine;
}

/* From now on this member confirms. */
static void answer_notify(struct gleam_group *g)
{
	struct gl_membership is = {.group = g->info.ip, .virtual_qpn = g->info.qpn, .qpn = g->self.qpn, .sq_psn = g->self.sq_psn,
		.rq_psn = g->self.rq_psn, .path_mtu = g->info.path_mtu, .window = g->self.window};

	gl_member_join(&g->mem, &is);
}

void gl_register(struct gleam_group *g)
{
	g->stage = GL_REGISTERS;
	answer_notify(g);
	if (!g->has_mas)
		return;
	gl_master_start(&g->mas, gl_now(), &g->out);
	gl_take_output(g, true);
}

void gl_is_joined(struct gleam_group *g)
{
	struct gl_event none = {0};

	if (g->stage != GL_REGISTERS)
		return;
	g->stage = GL_JOINED_STAGE;
	g->joined = true;
	describe(gl_report(g, GLEAM_JOINED), &none);
	gl_exchange_joined(g);
	gl_changed(g);
}

static void member_event(struct gleam_group *g, const struct gl_event *e)
{
	if (e->kind == GL_REGISTERED && !g->master && !g->exchange)
		gl_is_joined(g); /* by the exchange, the master's word counts: all have confirmed */
	else if (e->kind == GL_LEAVE_FAILED && g->leaving == GL_UNDER_WAY) {
		g->leaving = GL_REFUSED;
		snprintf(g->outcome, sizeof g->outcome, "%s", e->text);
	} else if (e->kind == GL_GROUP_GONE && !g->master) {
		if (g->joined || e->end_reason == GL_LEFT_BY_REQUEST)
			over(g, e);
		else
			gl_fail(g, EIO, "the group has ended: %s", gl_end_reason_text(e->end_reason));
	}
}

/* Forgets the blobs of members that are in the group no more and, after an update that
 * did not come about, those of members that are not in it. */
static void forget_peers(struct gleam_group *g, bool failed)
{
	const struct gl_registration *reg = &g->mas.reg;
	size_t kept = 0;

	if (!g->has_mas)
		return;
	for (size_t p = 0; p < g->num_peers; p++) {
		size_t i;

		for (i = 0; i < reg->num; i++)
			if (gl_same_record(&reg->records[i], &g->peers[p]))
				break;
		if (i < reg->num ? !g->mas.gone[i] : !failed)
			g->peers[kept++] = g->peers[p];
	}
	g->num_peers = kept;
}

static void changed(struct gleam_group *g, bool fine, const struct gl_event *e)
{
	struct gleam_event *report;

	if (g->changing == GL_UNDER_WAY) {
		g->changing = fine ? GL_DONE : GL_REFUSED;
		snprintf(g->outcome, sizeof g->outcome, "%s", e->text);
	}
	if (fine && e->kind == GL_MEMBER_GONE)
		return; /* reported as that */
	report = gl_report(g, fine ? GLEAM_UPDATED : GLEAM_UPDATE_FAILED);
	if (e->member.ip.len)
		snprintf(report->member, sizeof report->member, "%s", gl_addr_text(&e->member.ip));
	snprintf(report->text, sizeof report->text, "%s%.500s", fine ? "updated" : "", e->text);
}

static void master_event(struct gleam_group *g, const struct gl_event *e)
{
	switch (e->kind) {
	case GL_REGISTERED:
		gl_is_joined(g);
		break;
	case GL_REGISTRATION_FAILED:
		gl_fail(g, EIO, "register: %s%s%s%s", e->text, g->send_errno ? " (last error on sending: " : "", g->send_errno ? strerror(g->send_errno) : "",
		        g->send_errno ? ")" : "");
		break;
	case GL_MEMBER_GONE:
		describe(gl_report(g, e->end_reason == GL_END_EVICTED ? GLEAM_EVICTED : GLEAM_LEFT), e);
		forget_peers(g, false);
		if (g->changing == GL_UNDER_WAY && !g->mas.update.on && !g->mas.joiners && gl_same(&e->member.ip, &g->removing))
			changed(g, true, e);
		break;
	case GL_UPDATED:
		changed(g, true, e);
		break;
	case GL_UPDATE_FAILED: case GL_LEAVE_FAILED:
		forget_peers(g, e->kind == GL_UPDATE_FAILED);
		changed(g, false, e);
		break;
	case GL_GROUP_GONE:
		if (g->joined)
			over(g, e);
		else
			gl_fail(g, EIO, "register: the group has ended: %s%s%s", gl_end_reason_text(e->end_reason), *e->text ? ": " : "", e->text);
		break;
	default:
		break;
	}
}

/* Sends what a machine wants sent, and acts upon its events. */
void gl_take_output(struct gleam_group *g, bool master)
{
	struct gl_event *events = g->out.events;
	size_t n = g->out.num_events;

	gl_flush(g, master ? g->master_fd : g->member_fd);
	if (!n)
		return;
	/* An event may lead to further output. */
	g->out.events = NULL;
	g->out.num_events = g->out.room_events = 0;
	for (size_t i = 0; i < n; i++) {
		if (!gl_delayed(g, master, &events[i]))
			(master ? master_event : member_event)(g, &events[i]);
	}
	free(events);
	gl_changed(g);
}
