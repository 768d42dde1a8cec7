/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reasons in words. Package envelope's reason.go has the same; host/libgleam/test compares.
 */
#include <stdio.h>

#include "machine.h"

static const char *const reasons[] = {
	[0] = "none",
	[1] = "unknown member location",
	[2] = "path MTU mismatch",
	[3] = "table full",
	[4] = "bad authentication",
	[5] = "overlapping members",
	[6] = "stale epoch",
	[7] = "same epoch with other content",
	[8] = "bad window",
	[9] = "not a group prefix",
	[10] = "malformed",
	[11] = "too many members",
	[12] = "too few members",
	[13] = "IP family mismatch",
	[14] = "invalid member",
	[15] = "invalid virtual QPN",
	[16] = "unknown group",
	[17] = "not allowed",
	[18] = "update of another epoch",
	[19] = "a member has gone meanwhile; to come back it needs fresh PSNs",
	[20] = "an update cannot change this",
	[21] = "bad policy",
	[22] = "bad dead_after",
	[23] = "quota of the key exceeded",
	[24] = "stale transaction",
	[25] = "a queue pair with these numbers has carried traffic: register the PSNs that it has now (ibv_query_qp), or restart it with other ones",
	[26] = "the group belongs to another key, or to the operator, who can end it (gleam group delete)",
	[27] = "epoch too far ahead",
	[28] = "the key is not for this: its roles in the switch's configuration say what it may ask",
	[29] = "the key is not for this group address: its prefixes in the switch's configuration say for which",
	[30] = "every member is registered to receive only: nobody could send",
	[31] = "the member has not confirmed its location",
	[32] = "no next hop toward the member is a gleamd switch",
	[33] = "a switch of the tree does not answer",
	[34] = "the routes lead to a switch from two sides",
	[35] = "too many switches one behind another",
	[36] = "not possible where members are at several switches",
	[37] = "a switch of the tree does not have the group's key",
	[38] = "the group was registered by way of another switch: its master has to ask there",
	[39] = "another master registers the group at the same time",
	[40] = "the switch serves only groups that can take its fast path (fast_path: require)",
	[41] = "the switch cannot write its state file, and takes no new members until it can: after a restart it would not know them",
	[42] = "the group exists: take another address",
};

static const char *const end_reasons[] = {
	[0] = "not ended",
	[1] = "deleted",
	[2] = "lease expired",
	[3] = "replaced by a newer epoch",
	[4] = "left",
	[5] = "removed by the master",
	[6] = "evicted",
	[7] = "group failed",
	[8] = "a switch of the tree was lost",
	[9] = "its address is in no group prefix of a switch any more",
	[10] = "the switch has started again and does not know it",
};

static const char *const statuses[] = {
	[0] = "confirmed",
	[1] = "has not joined the group",
	[2] = "has another QPN",
	[3] = "has another sq_psn",
	[4] = "has another rq_psn",
	[5] = "is connected to another virtual QPN",
	[6] = "has another path MTU",
	[7] = "has another WRITE window",
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const causes[] = {
	"silent for dead_after: the switch took it for dead",
	"over the lag limit",
	"lacks what will not be sent again",
	"registered with other PSNs than its queue pair has",
	"the source left with data in flight",
	"fewer receivers than the quorum are left",
	"the source stalled: it sent nothing for limits.source_timeout while another member waited; register anew with restarted queue pairs",
	"registered to receive only: it may not send",
	"seen elsewhere, and answered neither from there nor from its old location (unconfirmed_moves: evict)",
};

static const char *const naks[] = {
	"fatal NAK 0x61, invalid request (completion status 9)",
	"fatal NAK 0x62, remote access error (completion status 10)",
	"fatal NAK 0x63, remote operational error (completion status 11)",
};

const char *gl_end_reason_text(uint8_t reason)
{
	return reason < COUNT(end_reasons) ? end_reasons[reason] : "unknown";
}

const char *gl_status_text(uint8_t status)
{
	return status < COUNT(statuses) ? statuses[status] : "gave an unknown status";
}

void gl_cause_text(uint8_t code, char *text, size_t n)
{
	if (code < COUNT(causes))
		snprintf(text, n, "%s", causes[code]);
	else if (code >= 0x61 && code <= 0x63)
		snprintf(text, n, "%s", naks[code - 0x61]);
	else
		snprintf(text, n, "code 0x%02x", code);
}

void gl_key_text(const struct gl_member_key *k, char *text, size_t n)
{
	snprintf(text, n, "%s qpn 0x%x", gl_addr_text(&k->ip), k->qpn);
}

/* As Go writes a time.Duration: "1m30s", "1.5s", "268.435456ms". */
void gl_duration_text(uint64_t ns, char *text, size_t n)
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = {{GL_SECOND, "s"}, {GL_MS, "ms"}, {1000, "\xc2\xb5s"}, {1, "ns"}};
	uint64_t minutes = ns / (60 * GL_SECOND), hours = minutes / 60;
	char fraction[12] = "";
	size_t i = 0, digits;

	if (!ns) {
		snprintf(text, n, "0s");
		return;
	}
	while (ns < units[i].unit)
		i++;
	digits = (size_t)snprintf(fraction, sizeof fraction, "%09llu",
	                          (unsigned long long)(ns % units[i].unit * (GL_SECOND / units[i].unit)));
	while (digits && fraction[digits - 1] == '0')
		fraction[--digits] = 0;
	if (minutes)
		ns %= 60 * GL_SECOND;
	if (hours)
		snprintf(text, n, "%lluh%llum%llu%s%ss", (unsigned long long)hours, (unsigned long long)(minutes % 60),
		         (unsigned long long)(ns / GL_SECOND), *fraction ? "." : "", fraction);
	else if (minutes)
		snprintf(text, n, "%llum%llu%s%ss", (unsigned long long)minutes, (unsigned long long)(ns / GL_SECOND), *fraction ? "." : "", fraction);
	else
		snprintf(text, n, "%llu%s%s%s", (unsigned long long)(ns / units[i].unit), *fraction ? "." : "", fraction, units[i].name);
}

void gl_no_answer_text(const char *action, const struct gl_addr *group, uint64_t after, char *text, size_t n)
{
	const char *ip = gl_addr_text(group);
	char took[32];

	gl_duration_text((after + GL_MS / 2) / GL_MS * GL_MS, took, sizeof took);
	snprintf(text, n, "%s group %s: no answer from the switch in %s; check that it serves this GroupIP and UDP port, and that %s routes to it; "
	         "`gleam events` at the switch names whom it cannot answer", action, ip, took, ip);
}

static const char *one_of(const char *const *texts, size_t n, uint64_t i, const char *unknown)
{
	return i < n && texts[i] ? texts[i] : unknown;
}

/* What the value of a problem means. */
static void value_text(uint8_t reason, uint64_t v, char *text, size_t n)
{
	static const char *const parameters[] = {NULL, "virtual QPN", "path MTU", "WRITE window", "policy"};
	static const char *const trees[] = {NULL, "policy quorum", "registration by hand",
		"a member that has moved to another switch: it has to leave, and to join with another queue pair"};
	static const char *const fasts[] = {NULL, "it needs local repair, and the group is registered without",
		"its packets have to fit a buffer: register a smaller path MTU", "there are too many receivers, of the group or behind one port",
		"the member's port does not run XDP natively, or has frames in several buffers on Linux before 6.6",
		"the group is registered with target messages, by which XDP does not rewrite WRITEs"};
	static const char *const overlaps[] = {NULL, "the registration has this address twice", "this queue pair is in another group, which it has to leave first"};
	static const char *const members[] = {NULL, "not the unicast address of a host", "the group's own address is no host's",
		"an address in a group prefix of the switch is no host's", "no RC queue pair has this number: 0x10 to 0xfffffe are"};
	unsigned long long u = v;
	char took[48];

	switch (reason) {
	case 2:
		snprintf(text, n, " (must be 256, 512, 1024, 2048 or 4096, and at most %llu here)", u);
		break;
	case 3:
		snprintf(text, n, " (room for %llu groups)", u);
		break;
	case 11: case 23: case 35:
		snprintf(text, n, " (at most %llu)", u);
		break;
	case 24:
		snprintf(text, n, " (the newest is %llu)", u);
		break;
	case 5:
		snprintf(text, n, ": %s", one_of(overlaps, COUNT(overlaps), v, "unknown overlap"));
		break;
	case 14:
		snprintf(text, n, ": %s", one_of(members, COUNT(members), v, "unknown fault"));
		break;
	case 6: case 7:
		snprintf(text, n, " (the switch knows epoch %llu)", u);
		break;
	case 27:
		snprintf(text, n, " (at most %llu now; without a number the switch's next one is taken)", u);
		break;
	case 18:
		snprintf(text, n, " (the installed one is %llu)", u);
		break;
	case 31:
		snprintf(text, n, " (the switch's kernel has it at MAC address %02x:%02x:%02x:%02x:%02x:%02x, from where no answer came: a program of the group "
		         "must run there, and nobody else may use the address; gleam events at the switch names the port)", (unsigned)(v >> 40 & 255),
		         (unsigned)(v >> 32 & 255), (unsigned)(v >> 24 & 255), (unsigned)(v >> 16 & 255), (unsigned)(v >> 8 & 255), (unsigned)(v & 255));
		break;
	case 20:
		snprintf(text, n, ": %s; register the group anew to change it", one_of(parameters, COUNT(parameters), v, "unknown parameter"));
		break;
	case 21:
		snprintf(text, n, " (there are %llu receivers)", u);
		break;
	case 32:
		if (v >> 32)
			snprintf(text, n, " (next hop with interface ID %04x:%04x:%04x:%04x)", (unsigned)(v >> 48), (unsigned)(v >> 32 & 0xffff),
			         (unsigned)(v >> 16 & 0xffff), (unsigned)(v & 0xffff));
		else
			snprintf(text, n, " (next hop %u.%u.%u.%u)", (unsigned)(v >> 24), (unsigned)(v >> 16 & 255), (unsigned)(v >> 8 & 255), (unsigned)(v & 255));
		break;
	case 33: case 34: case 37: case 39:
		snprintf(text, n, " (switch %016llx)", u);
		break;
	case 36:
		snprintf(text, n, ": %s", one_of(trees, COUNT(trees), v, "unknown limit"));
		break;
	case 40:
		snprintf(text, n, ": %s", one_of(fasts, COUNT(fasts), v, "unknown limit"));
		break;
	case 22:
		gl_duration_text(v, took, sizeof took);
		snprintf(text, n, " (dead_after must be longer than a sender's timeout, or who lost a last packet is taken for dead, and shorter than timeout "
		         "times retries, or the sender gives up first; it breaks the bound of %s)", took);
		break;
	}
}

void gl_problem_text(const struct gl_problem *p, char *text, size_t n)
{
	char member[80] = "", value[400] = "";

	if (p->member.ip.len)
		gl_key_text(&p->member, member, sizeof member);
	if (p->value)
		value_text(p->reason, p->value, value, sizeof value);
	snprintf(text, n, "%s%s%s%s", one_of(reasons, COUNT(reasons), p->reason, "unknown reason"), *member ? ": " : "", member, value);
}
