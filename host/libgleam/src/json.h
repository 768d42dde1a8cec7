/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * JSON as far as the exchange needs it: objects of numbers, text and objects.
 */
#ifndef GLEAM_JSON_H
#define GLEAM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value within a text. p is NULL if there is none. */
struct gl_json {
	const char *p;
	size_t n;
};

/* Whether the n bytes are one value of JSON, an object. */
bool gl_json_object(const char *p, size_t n, struct gl_json *v);
/* The value of a name in an object; the last one of several. */
struct gl_json gl_json_get(struct gl_json object, const char *name);
/* False if v is not a whole number of 0 to most. */
bool gl_json_number(struct gl_json v, uint64_t most, uint64_t *n);
bool gl_json_true(struct gl_json v);
/* Decodes a string; what is not fit for a terminal becomes a space. */
bool gl_json_text(struct gl_json v, char *text, size_t room);
/* Writes text as a string, with quotes; returns the length, at most room-1. */
size_t gl_json_quote(const char *text, char *b, size_t room);

#endif
