/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What can be wrong with a registration before any switch has seen it. Package
 * envelope's registration.go, and mcast's params.go.
 */
#include <stdarg.h>
#include <stdio.h>

#include "machine.h"

enum { STRICT, EVICT, QUORUM };

#define MAX_LAG_PSNS (1u << 22)

bool gl_valid_qpn(uint32_t qpn)
{
	return qpn >= 0x10 && qpn < 0xffffff;
}

unsigned gl_path_mtu_code(uint32_t bytes)
{
	for (unsigned code = 1; code <= 5; code++)
		if (128u << code == bytes)
			return code;
	return 0;
}

bool gl_valid_window(const struct gl_mem *w)
{
	return w->len > 0 && w->base + (w->len - 1) >= w->base;
}

uint64_t gl_ack_timeout(uint8_t exponent)
{
	return exponent < 1 || exponent > 31 ? 0 : 4096ull << exponent;
}

__attribute__((format(printf, 2, 3)))
static struct gl_fault fault(const char *field, const char *format, ...)
{
	struct gl_fault f = {.field = field};
	va_list args;

	va_start(args, format);
	vsnprintf(f.text, sizeof f.text, format, args);
	va_end(args);
	return f;
}

static struct gl_fault conflict(struct gl_fault f, uint64_t bound)
{
	f.conflict = true;
	f.bound = bound;
	return f;
}

static struct gl_fault check_ranges(const struct gl_params *p)
{
	if (!gl_valid_qpn(p->qpn))
		return fault("virtual_qpn", "0x%x is no RC queue pair's number; 0x10 to 0xfffffe are", p->qpn);
	if (!gl_path_mtu_code(p->path_mtu))
		return fault("path_mtu", "%u: want 256, 512, 1024, 2048 or 4096", p->path_mtu);
	if (p->policy > QUORUM)
		return fault("policy", "%u is unknown", p->policy);
	if (p->lag_psns > MAX_LAG_PSNS)
		return conflict(fault("lag_psns", "%u is not in 0 to %u", p->lag_psns, MAX_LAG_PSNS), 0);
	if (p->sender_timeout > 31)
		return fault("sender_timeout", "%u is not in 1 to 31 (4.096 us * 2^n)", p->sender_timeout);
	if (p->sender_retries > 7)
		return fault("sender_retries", "%u is not in 1 to 7", p->sender_retries);
	if (!p->sender_timeout != !p->sender_retries)
		return fault("sender_timeout", "goes with the retries: give both, or neither");
	return (struct gl_fault){0};
}

static struct gl_fault check_dead_after(const struct gl_params *p)
{
	uint64_t once = gl_ack_timeout(p->sender_timeout), all = once * p->sender_retries;
	char dead[48], bound[48];

	if (!p->dead_after || p->dead_after == GL_NEVER_DEAD || !p->sender_timeout)
		return (struct gl_fault){0};
	gl_duration_text(p->dead_after, dead, sizeof dead);
	if (p->dead_after <= once) {
		gl_duration_text(once, bound, sizeof bound);
		return conflict(fault("dead_after_ms", "%s is not longer than a sender's timeout of %s: a receiver that lost a last packet would be taken for dead",
		                      dead, bound), once);
	}
	if (p->dead_after >= all && p->policy != STRICT) {
		gl_duration_text(all, bound, sizeof bound);
		return conflict(fault("dead_after_ms", "%s is not shorter than a sender's timeout times its retries, %s: the sender would give up first",
		                      dead, bound), all);
	}
	return (struct gl_fault){0};
}

struct gl_fault gl_check_params(const struct gl_params *p, size_t receivers)
{
	struct gl_fault f = check_ranges(p);

	if (f.field)
		return f;
	if (p->policy == QUORUM && (p->quorum < 1 || p->quorum > receivers))
		return conflict(fault("quorum", "%u: there are %zu receivers beside the source", p->quorum, receivers), 0);
	if (p->policy != QUORUM && p->quorum)
		return conflict(fault("quorum", "%u: only with the policy quorum", p->quorum), 0);
	if (p->policy == STRICT && (p->lag_psns || p->lag_time))
		return conflict(fault("policy", "strict removes nobody, so a lag limit makes no sense; take evict or quorum"), 0);
	return check_dead_after(p);
}

static struct gl_problem problem(uint8_t reason, uint64_t value)
{
	return (struct gl_problem){.reason = reason, .value = value};
}

static struct gl_problem about(uint8_t reason, const struct gl_record *r, uint64_t value)
{
	return (struct gl_problem){.reason = reason, .member = gl_key_of(r), .value = value};
}

/* What no member of group can have, in the value of a problem (docs/PROTOCOL.md §7). 0: m has nothing of it. */
static uint64_t fault_of(const struct gl_record *m, const struct gl_addr *group)
{
	if (!gl_unicast(&m->ip))
		return GL_FAULT_ADDRESS;
	if (gl_same(&m->ip, group))
		return GL_FAULT_GROUP;
	return gl_valid_qpn(m->qpn) ? 0 : GL_FAULT_QPN;
}

static struct gl_problem validate_params(const struct gl_registration *r)
{
	size_t receivers = r->num - 1;
	struct gl_fault f = gl_check_params(&r->params, receivers);

	if (!f.field)
		return problem(r->params.policy == QUORUM && r->params.target_key ? GL_PROBLEM_POLICY : 0,
		               r->params.policy == QUORUM && r->params.target_key ? receivers : 0);
	if (!strcmp(f.field, "virtual_qpn"))
		return problem(GL_PROBLEM_VIRTUAL_QPN, 0);
	if (!strcmp(f.field, "path_mtu"))
		return problem(GL_PROBLEM_PATH_MTU, 4096);
	if (f.bound)
		return problem(GL_PROBLEM_DEAD_AFTER, f.bound);
	if (!f.conflict)
		return problem(GL_PROBLEM_MALFORMED, 0);
	return problem(GL_PROBLEM_POLICY, receivers);
}

/* One member may lack a window: the one that is always the source. */
static struct gl_problem validate_windows(const struct gl_registration *r)
{
	const struct gl_mem *group = &r->params.window;
	size_t lacking = 0;

	if (gl_has_window(group) && (!gl_valid_window(group) || (r->params.target_key && group->rkey == r->params.target_key)))
		return problem(GL_PROBLEM_WINDOW, 0);
	for (size_t i = 0; i < r->num; i++) {
		const struct gl_mem *w = &r->records[i].window;
		bool bad;

		if (!gl_has_window(w))
			bad = gl_has_window(group) && ++lacking > 1;
		else /* a window that no WRITE can reach is an error as well */
			bad = !gl_has_window(group) || !gl_valid_window(w) || w->len < group->len;
		if (bad)
			return about(GL_PROBLEM_WINDOW, &r->records[i], 0);
	}
	return problem(0, 0);
}

static bool repeated(const struct gl_registration *r, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (gl_same(&r->records[j].ip, &r->records[i].ip))
			return true;
	return false;
}

struct gl_problem gl_validate(const struct gl_registration *r)
{
	bool sender = false;
	struct gl_problem p;

	if (r->params.lease >> 63 || (r->epoch && r->params.base >= r->epoch))
		return problem(GL_PROBLEM_MALFORMED, 0);
	if (!gl_unicast(&r->group))
		return problem(GL_PROBLEM_PREFIX, 0);
	if (r->num < 2)
		return problem(GL_PROBLEM_TOO_FEW, 0);
	for (size_t i = 0; i < r->num; i++) {
		const struct gl_record *m = &r->records[i];

		if (m->ip.len && (m->ip.len != r->group.len || gl_is_mapped(&m->ip)))
			return about(GL_PROBLEM_FAMILY, m, 0);
		if (fault_of(m, &r->group) || m->sq_psn > GL_MASK24 || m->rq_psn > GL_MASK24)
			return about(GL_PROBLEM_MEMBER, m, fault_of(m, &r->group));
		if (repeated(r, i))
			return about(GL_PROBLEM_OVERLAP, m, GL_OVERLAP_HERE);
		sender |= !m->receive_only;
	}
	if (!sender)
		return problem(GL_PROBLEM_NO_SENDER, 0);
	p = validate_params(r);
	return p.reason ? p : validate_windows(r);
}
