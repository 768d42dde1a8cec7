/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs libgleam's state machines for a test in another process: a command a line
 * on standard input, what came of it on standard output, ended by a line of ".".
 */
#include <stdio.h>
#include <stdlib.h>

#include "machine.h"
#include "private.h"
#include "sha256.h"

#define MACHINES 64

static struct gl_secret key;
static struct gl_member members[MACHINES];
static struct gl_master masters[MACHINES];
static bool is_master[MACHINES];
static struct gl_record records[2000];
static size_t num_records;
static struct gl_output out;
static char *next;

static const char *word(void)
{
	char *w = next;

	if (!w)
		return "";
	next = strchr(w, ' ');
	if (next)
		*next++ = 0;
	return w;
}

static uint64_t number(void)
{
	return strtoull(word(), NULL, 0);
}

static struct gl_addr address(void)
{
	struct gl_addr a;

	gl_parse_addr(word(), &a);
	return a;
}

static size_t bytes(uint8_t *b, size_t room)
{
	const char *hex = word();
	size_t n = 0;

	for (; hex[0] && hex[1] && n < room && sscanf(hex, "%2hhx", &b[n]) == 1; hex += 2)
		n++;
	return n;
}

static void print_hex(const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", b[i]);
	printf("\n");
}

static void print_out(void)
{
	for (size_t i = 0; i < out.num_packets; i++) {
		printf("P %s %u ", gl_addr_text(&out.packets[i].to.ip), out.packets[i].to.port);
		print_hex(out.packets[i].b, out.packets[i].n);
	}
	for (size_t i = 0; i < out.num_events; i++) {
		const struct gl_event *e = &out.events[i];

		printf("E %d %llu %s %u %u %u %u %u %zu %zu %llu|%s\n", e->kind, (unsigned long long)e->epoch,
		       e->member.ip.len ? gl_addr_text(&e->member.ip) : "-", e->member.qpn, e->end_reason, e->status, e->code, e->psn,
		       e->done, e->total, (unsigned long long)e->lease, e->text);
	}
	printf("D %d\n", out.drop);
	if (out.lost)
		printf("lost %zu\n", out.lost);
}

static void print_deadline(unsigned i)
{
	uint64_t t = is_master[i] ? gl_master_deadline(&masters[i]) : gl_member_deadline(&members[i]);

	if (t == GL_NEVER)
		printf("T never\n");
	else
		printf("T %llu\n", (unsigned long long)t);
}

static struct gl_config config(void)
{
	struct gl_config c = {.key = key};

	c.local.ip = address();
	c.local.port = (uint16_t)number();
	c.port = (uint16_t)number();
	c.seed = number();
	c.mtu = number();
	c.deadline = number();
	c.ask_every = number();
	c.renew_within = number();
	return c;
}

static struct gl_mem window(void)
{
	struct gl_mem w;

	w.base = number();
	w.len = number();
	w.rkey = (uint32_t)number();
	return w;
}

static void new_master(unsigned i)
{
	struct gl_config c = config();
	struct gl_registration r = {.records = records, .num = num_records};
	struct gl_params *p = &r.params;
	char text[GL_TEXT];

	r.group = address();
	r.epoch = number();
	p->qpn = (uint32_t)number();
	p->path_mtu = (uint16_t)number();
	p->policy = (uint8_t)number();
	p->quorum = (uint16_t)number();
	p->dead_after = number();
	p->lag_psns = (uint32_t)number();
	p->lag_time = number();
	p->sender_timeout = (uint8_t)number();
	p->sender_retries = (uint8_t)number();
	p->lease = number();
	p->window = window();
	p->target_key = (uint32_t)number();
	p->no_repair = number();
	gl_master_free(&masters[i]);
	is_master[i] = true;
	if (!gl_master_init(&masters[i], &c, &r, text, sizeof text)) {
		gl_master_free(&masters[i]);
		printf("F %s\n", text);
	}
	num_records = 0;
}

static void new_member(unsigned i)
{
	struct gl_config c = config();

	is_master[i] = false;
	gl_member_init(&members[i], &c);
}

static void join(unsigned i)
{
	struct gl_membership is = {.group = address()};

	is.virtual_qpn = (uint32_t)number();
	is.qpn = (uint32_t)number();
	is.sq_psn = (uint32_t)number();
	is.rq_psn = (uint32_t)number();
	is.path_mtu = (uint16_t)number();
	is.window = window();
	gl_member_join(&members[i], &is);
}

static void record(void)
{
	struct gl_record r = {.ip = address()};

	r.qpn = (uint32_t)number();
	r.sq_psn = (uint32_t)number();
	r.rq_psn = (uint32_t)number();
	r.window = window();
	r.receive_only = number();
	records[num_records++] = r;
}

static void input(unsigned i, uint64_t now)
{
	static uint8_t b[1 << 16];
	struct gl_endpoint from = {.ip = address()};
	uint8_t *exact;
	size_t n;

	from.port = (uint16_t)number();
	n = bytes(b, sizeof b);
	exact = malloc(n + !n); /* so that a sanitizer sees each byte read too far */
	memcpy(exact, b, n);
	if (is_master[i])
		gl_master_input(&masters[i], now, &from, exact, n, &out);
	else
		gl_member_input(&members[i], now, &from, exact, n, &out);
	free(exact);
}

static void leave(unsigned i, uint64_t now)
{
	struct gl_member_key k;
	char text[GL_TEXT];

	if (!is_master[i]) {
		gl_member_leave(&members[i], now, &out);
		return;
	}
	k.ip = address();
	k.qpn = (uint32_t)number();
	if (!gl_master_leave(&masters[i], now, &k, &out, text, sizeof text))
		printf("F %s\n", text);
}

static void update(unsigned i, uint64_t now)
{
	char text[GL_TEXT];

	if (!gl_master_update(&masters[i], now, records, num_records, &out, text, sizeof text))
		printf("F %s\n", text);
	num_records = 0;
}

/* What a machine can do, by name. */
static bool act(const char *what, unsigned i, uint64_t now)
{
	if (!strcmp(what, "start"))
		gl_master_start(&masters[i], now, &out);
	else if (!strcmp(what, "in"))
		input(i, now);
	else if (!strcmp(what, "advance") && is_master[i])
		gl_master_advance(&masters[i], now, &out);
	else if (!strcmp(what, "advance"))
		gl_member_advance(&members[i], now, &out);
	else if (!strcmp(what, "leave"))
		leave(i, now);
	else if (!strcmp(what, "update"))
		update(i, now);
	else if (!strcmp(what, "delete"))
		gl_master_delete(&masters[i], now, &out);
	else
		return false;
	print_out();
	return true;
}

static void codec(void)
{
	static uint8_t b[1 << 16], again[1 << 16];
	size_t n = bytes(b, sizeof b);
	struct gl_message m;
	enum gl_drop d = gl_decode(b, n, &key, &m);

	printf("D %d\n", d);
	if (!d)
		print_hex(again, gl_encode(again, sizeof again, &m, &key));
	gl_free_records(&m);
}

static void words(const char *of)
{
	char text[GL_TEXT] = "";
	struct gl_problem p = {0};
	uint64_t n = number();

	if (!strcmp(of, "problem")) {
		p = (struct gl_problem){.reason = (uint8_t)n, .member.ip = address()};
		p.member.qpn = (uint32_t)number();
		p.value = number();
		gl_problem_text(&p, text, sizeof text);
	} else if (!strcmp(of, "cause"))
		gl_cause_text((uint8_t)n, text, sizeof text);
	else if (!strcmp(of, "end"))
		snprintf(text, sizeof text, "%s", gl_end_reason_text((uint8_t)n));
	else if (!strcmp(of, "status"))
		snprintf(text, sizeof text, "%s", gl_status_text((uint8_t)n));
	else if (!strcmp(of, "duration"))
		gl_duration_text(n, text, sizeof text);
	printf("%s\n", text);
}

static void mac(void)
{
	uint8_t k[1024], b[4096], sum[GL_SHA256_LEN];
	size_t n = bytes(k, sizeof k), m = bytes(b, sizeof b);
	struct gl_hmac h;

	gl_hmac_begin(&h, k, n);
	gl_hmac_add(&h, b, m / 3); /* in two parts */
	gl_hmac_add(&h, b + m / 3, m - m / 3);
	gl_hmac_end(&h, sum);
	print_hex(sum, sizeof sum);
	gl_hkdf(k, n, "gleam out-of-band exchange 2, Ed25519 seed", sum);
	print_hex(sum, sizeof sum);
}

/* Private data of RDMA-CM: GROUP IP PORT QPN NONCE FLAGS BASE LENGTH RKEY EXPECT, under the key. */
static void private_data(void)
{
	struct gl_addr group = address(), ip = address();
	struct gleam_cm_member m = {.size = sizeof m, .key_id = key.id};
	struct gleam_mr mr;
	struct gl_mem w;
	uint8_t b[GLEAM_CM_PRIVATE];

	gl_to_gid(&group, m.group_gid);
	gl_to_gid(&ip, m.gid);
	m.port = (uint16_t)number();
	m.qp_num = (uint32_t)number();
	m.nonce = number();
	m.flags = (uint32_t)number();
	w = window();
	mr = (struct gleam_mr){.addr = w.base, .length = w.len, .rkey = w.rkey};
	m.mr = w.len ? &mr : NULL;
	m.expect = (uint32_t)number();
	m.key = key.length ? key.bytes : NULL;
	m.key_len = key.length;
	gl_private_write(&m, b);
	print_hex(b, sizeof b);
}

static void say_trouble(unsigned i, uint64_t now)
{
	char text[GL_TEXT] = "";

	if (is_master[i])
		gl_master_unfinished(&masters[i], now, text, sizeof text);
	else
		gl_member_problem(&members[i], text, sizeof text);
	printf("%s\n", text);
}

int main(void)
{
	static char line[1 << 18];

	while (fgets(line, sizeof line, stdin)) {
		const char *what;
		unsigned i;

		line[strcspn(line, "\n")] = 0;
		next = line;
		what = word();
		if (!strcmp(what, "key")) {
			key.id = (uint16_t)number();
			key.length = (uint16_t)bytes(key.bytes, sizeof key.bytes);
		} else if (!strcmp(what, "record"))
			record();
		else if (!strcmp(what, "codec"))
			codec();
		else if (!strcmp(what, "words"))
			words(word());
		else if (!strcmp(what, "private"))
			private_data();
		else if (!strcmp(what, "mac"))
			mac();
		else {
			uint64_t now;

			i = (unsigned)number() % MACHINES;
			if (!strcmp(what, "master"))
				new_master(i);
			else if (!strcmp(what, "member"))
				new_member(i);
			else if (!strcmp(what, "join"))
				join(i);
			else if (now = number(), !strcmp(what, "trouble"))
				say_trouble(i, now);
			else if (!act(what, i, now))
				printf("no such command: %s\n", what);
			print_deadline(i);
		}
		printf(".\n");
		fflush(stdout);
	}
	for (unsigned i = 0; i < MACHINES; i++)
		gl_master_free(&masters[i]);
	gl_output_free(&out);
	return 0;
}
