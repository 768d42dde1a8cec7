/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing JSON.
 */
#include "json.h"

#include <stdio.h>
#include <string.h>

#define DEPTH 32

struct cursor {
	const char *p, *end;
};

static void space(struct cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
}

static bool is(struct cursor *c, char x)
{
	if (c->p == c->end || *c->p != x)
		return false;
	c->p++;
	return true;
}

static bool string(struct cursor *c)
{
	if (!is(c, '"'))
		return false;
	while (c->p < c->end && *c->p != '"') {
		if ((unsigned char)*c->p < ' ')
			return false;
		if (*c->p == '\\')
			c->p++;
		if (c->p < c->end)
			c->p++;
	}
	return is(c, '"');
}

static bool scalar(struct cursor *c)
{
	const char *start = c->p;

	while (c->p < c->end && (strchr("+-.", *c->p) ? *c->p != 0 : (*c->p >= '0' && *c->p <= '9') || (*c->p >= 'a' && *c->p <= 'z') || *c->p == 'E'))
		c->p++;
	return c->p > start;
}

static bool value(struct cursor *c, int depth);

/* The members of an object, or the elements of an array, after the bracket. */
static bool list(struct cursor *c, char end, int depth)
{
	space(c);
	if (is(c, end))
		return true;
	do {
		space(c);
		if (end == '}') {
			if (!string(c))
				return false;
			space(c);
			if (!is(c, ':'))
				return false;
		}
		if (!value(c, depth + 1))
			return false;
		space(c);
	} while (is(c, ','));
	return is(c, end);
}

static bool value(struct cursor *c, int depth)
{
	space(c);
	if (depth > DEPTH || c->p == c->end)
		return false;
	if (*c->p == '"')
		return string(c);
	if (is(c, '{'))
		return list(c, '}', depth);
	if (is(c, '['))
		return list(c, ']', depth);
	return scalar(c);
}

bool gl_json_object(const char *p, size_t n, struct gl_json *v)
{
	struct cursor c = {p, p + n};

	space(&c);
	v->p = c.p;
	if (c.p == c.end || *c.p != '{' || !value(&c, 0))
		return false;
	v->n = (size_t)(c.p - v->p);
	space(&c);
	return c.p == c.end;
}

struct gl_json gl_json_get(struct gl_json object, const char *name)
{
	struct cursor c = {object.p, object.p + object.n};
	struct gl_json found = {0};

	if (!object.p || !is(&c, '{'))
		return found;
	for (;;) {
		const char *key, *start;
		size_t n;

		space(&c);
		key = c.p + 1;
		if (!string(&c))
			return found;
		n = (size_t)(c.p - 1 - key);
		space(&c);
		if (!is(&c, ':'))
			return found;
		space(&c);
		start = c.p;
		if (!value(&c, 1))
			return found;
		if (n == strlen(name) && !memcmp(key, name, n))
			found = (struct gl_json){start, (size_t)(c.p - start)};
		space(&c);
		if (!is(&c, ','))
			return found;
	}
}

bool gl_json_number(struct gl_json v, uint64_t most, uint64_t *n)
{
	*n = 0;
	if (!v.p || !v.n)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		uint64_t digit = (uint64_t)(v.p[i] - '0');

		if (v.p[i] < '0' || v.p[i] > '9' || *n > (UINT64_MAX - digit) / 10)
			return false;
		*n = 10 * *n + digit;
	}
	return *n <= most;
}

bool gl_json_true(struct gl_json v)
{
	return v.p && v.n == 4 && !memcmp(v.p, "true", 4);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What an escape stands for; \u as far as it is ASCII. */
static char escaped(const char **p, const char *end)
{
	unsigned code = 0;

	switch (*(*p)++) {
	case '"': return '"';
	case '\\': return '\\';
	case '/': return '/';
	case 'u':
		for (int i = 0; i < 4; i++) {
			int digit = *p < end ? hex(**p) : -1;

			if (digit < 0)
				return '?';
			code = code << 4 | (unsigned)digit;
			(*p)++;
		}
		return code >= ' ' && code < 0x7f ? (char)code : code < ' ' ? ' ' : '?';
	}
	return ' ';
}

bool gl_json_text(struct gl_json v, char *text, size_t room)
{
	const char *p, *end;
	size_t n = 0;

	text[0] = 0;
	if (!v.p || v.n < 2 || v.p[0] != '"')
		return false;
	p = v.p + 1;
	end = v.p + v.n - 1;
	while (p < end && n + 1 < room) {
		char c = *p++;

		if (c == '\\')
			c = p < end ? escaped(&p, end) : ' ';
		else if ((unsigned char)c == 0xc2 && p < end && (unsigned char)*p < 0xa0) {
			p++; /* a control character of two bytes */
			c = ' ';
		}
		text[n++] = (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
	}
	text[n] = 0;
	return true;
}

size_t gl_json_quote(const char *text, char *b, size_t room)
{
	size_t n = 0;

	b[n++] = '"';
	for (; *text && n + 8 < room; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			b[n++] = '\\';
		b[n++] = c < ' ' || c == 0x7f ? ' ' : *text;
	}
	b[n++] = '"';
	b[n] = 0;
	return n;
}
