/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What libgleam and libgleam-tls agree upon: TLS for the exchange between hosts. The
 * library loads libgleam-tls, and with it OpenSSL, when a program first uses that
 * exchange with a key: others do not carry it. Bytes go in and come out; there are
 * no sockets.
 */
#ifndef GLEAM_CHANNEL_H
#define GLEAM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GL_TLS_LIBRARY "libgleam-tls.so.1"
#define GL_TLS_SYMBOL "gleam_tls_1"

enum gl_tls_state {
	GL_TLS_SHAKING,
	GL_TLS_OPEN,
	GL_TLS_OTHER_KEY,   /* the peer has another key under this id */
	GL_TLS_NO_SUCH_KEY, /* it names a key id that is not ours */
	GL_TLS_OTHER_USE,   /* it does not ask for this exchange */
	GL_TLS_ALERT,       /* it refuses us, by an alert */
	GL_TLS_NOT_TLS,
	GL_TLS_CLOSED,
};

struct gl_tls;

struct gl_tls_functions {
	/* seed is that of the Ed25519 key pair; NULL if there is no memory. */
	struct gl_tls *(*open)(bool server, const uint8_t seed[32], uint16_t key_id, const char *use);
	/* Takes what has arrived, and goes on with the handshake. */
	enum gl_tls_state (*input)(struct gl_tls *c, const uint8_t *b, size_t n);
	size_t (*read)(struct gl_tls *c, uint8_t *b, size_t room); /* 0: nothing more now */
	bool (*write)(struct gl_tls *c, const uint8_t *b, size_t n);
	size_t (*output)(struct gl_tls *c, uint8_t *b, size_t room); /* what is to be sent */
	enum gl_tls_state (*state)(const struct gl_tls *c);
	int (*alert)(const struct gl_tls *c);        /* GL_TLS_ALERT: its number */
	int (*asked_key)(const struct gl_tls *c);    /* the id that the client named; 0: none */
	void (*close)(struct gl_tls *c);
};

#endif
