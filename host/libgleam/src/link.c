/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What both machines have in common: output, randomness, waits, sending.
 */
#include <stdlib.h>

#include "machine.h"

void gl_output_reset(struct gl_output *o)
{
	o->num_packets = o->num_events = 0;
	o->drop = GL_NO_DROP;
}

void gl_output_free(struct gl_output *o)
{
	free(o->packets);
	free(o->events);
	memset(o, 0, sizeof *o);
}

/* Makes room for one more in an array; NULL if there is no memory. */
static void *grow(void *array, size_t num, size_t *room, size_t size)
{
	void *more = array;

	if (num == *room) {
		more = realloc(array, (2 * num + 4) * size);
		if (more)
			*room = 2 * num + 4;
	}
	return more;
}

struct gl_event *gl_add_event(struct gl_output *o, enum gl_event_kind kind)
{
	static _Thread_local struct gl_event nowhere;
	struct gl_event *all = grow(o->events, o->num_events, &o->room_events, sizeof *all), *e;

	if (all) {
		o->events = all;
		e = &all[o->num_events++];
	} else {
		o->lost++;
		e = &nowhere;
	}
	memset(e, 0, sizeof *e);
	e->kind = kind;
	return e;
}

uint64_t gl_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t jitter(uint64_t d, uint64_t *random)
{
	return d - d / 4 + gl_random(random) % (d / 2 + 1);
}

void gl_backoff_start(struct gl_backoff *b, uint64_t now, uint64_t min, uint64_t *random)
{
	b->wait = min;
	b->next = now + jitter(b->wait, random);
}

void gl_backoff_retry(struct gl_backoff *b, uint64_t now, uint64_t max, uint64_t *random)
{
	b->wait = b->wait * 2 < max ? b->wait * 2 : max;
	b->next = now + jitter(b->wait, random);
}

void gl_config_defaults(struct gl_config *c)
{
	if (!c->port)
		c->port = GL_DEFAULT_PORT;
	if (!c->mtu)
		c->mtu = 1500;
	if (!c->retry_min)
		c->retry_min = 100 * GL_MS;
	if (!c->retry_max)
		c->retry_max = 2 * GL_SECOND;
	if (!c->deadline)
		c->deadline = 10 * GL_SECOND;
}

void gl_send(const struct gl_config *c, const struct gl_endpoint *to, struct gl_message *m, struct gl_output *o)
{
	struct gl_packet *all = grow(o->packets, o->num_packets, &o->room_packets, sizeof *all), *p;

	if (!all) {
		o->lost++;
		return;
	}
	o->packets = all;
	p = &all[o->num_packets];
	if (!m->total)
		m->total = 1;
	p->to = *to;
	p->n = gl_encode(p->b, sizeof p->b, m, &c->key);
	if (p->n)
		o->num_packets++;
	else
		o->lost++; /* the machines check what they are given: this does not happen */
}
