/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libgleam-tls: TLS 1.3 by OpenSSL, as docs/EXCHANGE.md has it. Both sides show a
 * certificate around the public key that all holders of a group's key derive; the
 * certificate's contents mean nothing, keys are compared.
 */
#include "channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gl_tls {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
	EVP_PKEY *pair;
	enum gl_tls_state state;
	uint16_t key_id;
	int alert, asked_key;
	char use[32];
};

static X509 *certificate(EVP_PKEY *pair)
{
	X509 *x = X509_new();

	if (x && X509_set_version(x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1) && X509_gmtime_adj(X509_getm_notBefore(x), -86400) &&
	    X509_time_adj_ex(X509_getm_notAfter(x), 36500, 0, NULL) &&
	    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"gleam", -1, -1, 0) &&
	    X509_set_issuer_name(x, X509_get_subject_name(x)) && X509_set_pubkey(x, pair) && X509_sign(x, pair, NULL))
		return x;
	X509_free(x);
	return NULL;
}

/* The peer's certificate is right if its key pair is ours. */
static int compare_keys(X509_STORE_CTX *store, void *arg)
{
	struct gl_tls *c = arg;
	X509 *x = X509_STORE_CTX_get0_cert(store);

	if (x && EVP_PKEY_eq(X509_get0_pubkey(x), c->pair) == 1)
		return 1;
	c->state = GL_TLS_OTHER_KEY;
	X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
	return 0;
}

static int check_name(SSL *ssl, int *alert, void *arg)
{
	struct gl_tls *c = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	if (name && !strncmp(name, "key-", 4))
		c->asked_key = atoi(name + 4);
	if (c->asked_key == c->key_id)
		return SSL_TLSEXT_ERR_OK;
	c->state = GL_TLS_NO_SUCH_KEY;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int choose_use(SSL *ssl, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned int n, void *arg)
{
	struct gl_tls *c = arg;

	(void)ssl;
	for (unsigned i = 0; i < n; i += in[i] + 1u) {
		if (in[i] != c->use[0] || i + 1 + in[i] > n || memcmp(in + i + 1, c->use + 1, in[i]))
			continue;
		*out = in + i + 1;
		*outlen = in[i];
		return SSL_TLSEXT_ERR_OK;
	}
	c->state = GL_TLS_OTHER_USE;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool configure(struct gl_tls *c, bool server, const uint8_t seed[32])
{
	X509 *x = NULL;
	bool fine;

	c->pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
	c->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (c->pair)
		x = certificate(c->pair);
	fine = c->ctx && x && SSL_CTX_set_min_proto_version(c->ctx, TLS1_3_VERSION) && SSL_CTX_use_certificate(c->ctx, x) == 1 &&
	       SSL_CTX_use_PrivateKey(c->ctx, c->pair) == 1 && SSL_CTX_set_num_tickets(c->ctx, 0);
	X509_free(x);
	if (!fine)
		return false;
	SSL_CTX_set_session_cache_mode(c->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(c->ctx, compare_keys, c);
	if (server) {
		SSL_CTX_set_tlsext_servername_callback(c->ctx, check_name);
		SSL_CTX_set_tlsext_servername_arg(c->ctx, c);
		SSL_CTX_set_alpn_select_cb(c->ctx, choose_use, c);
	}
	return true;
}

static void channel_close(struct gl_tls *c)
{
	if (!c)
		return;
	SSL_free(c->ssl); /* and the BIOs */
	SSL_CTX_free(c->ctx);
	EVP_PKEY_free(c->pair);
	free(c);
	ERR_clear_error();
}

static bool begin(struct gl_tls *c, bool server)
{
	char name[16];

	c->ssl = SSL_new(c->ctx);
	c->in = BIO_new(BIO_s_mem());
	c->out = BIO_new(BIO_s_mem());
	if (!c->ssl || !c->in || !c->out) {
		BIO_free(c->in);
		BIO_free(c->out);
		return false;
	}
	SSL_set_bio(c->ssl, c->in, c->out);
	if (server) {
		SSL_set_accept_state(c->ssl);
		return true;
	}
	SSL_set_connect_state(c->ssl);
	snprintf(name, sizeof name, "key-%u", c->key_id);
	return SSL_set_tlsext_host_name(c->ssl, name) && SSL_set_alpn_protos(c->ssl, (const unsigned char *)c->use, (unsigned)strlen(c->use)) == 0;
}

static enum gl_tls_state channel_input(struct gl_tls *c, const uint8_t *b, size_t n);

static struct gl_tls *channel_open(bool server, const uint8_t seed[32], uint16_t key_id, const char *use)
{
	struct gl_tls *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->key_id = key_id;
	snprintf(c->use, sizeof c->use, "%c%s", (char)strlen(use), use);
	if (!configure(c, server, seed) || !begin(c, server)) {
		channel_close(c);
		return NULL;
	}
	channel_input(c, NULL, 0); /* a client begins */
	return c;
}

/* Finds out why a call did not succeed, unless a callback has. */
static void explain(struct gl_tls *c, int rc)
{
	unsigned long e;
	int why = SSL_get_error(c->ssl, rc), reason;

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return;
	e = ERR_peek_error();
	reason = ERR_GET_REASON(e);
	ERR_clear_error();
	if (c->state != GL_TLS_SHAKING && c->state != GL_TLS_OPEN)
		return;
	if (why == SSL_ERROR_ZERO_RETURN || !e)
		c->state = GL_TLS_CLOSED;
	else if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
		c->state = GL_TLS_ALERT;
		c->alert = reason - SSL_AD_REASON_OFFSET;
	} else
		c->state = GL_TLS_NOT_TLS;
}

static enum gl_tls_state channel_input(struct gl_tls *c, const uint8_t *b, size_t n)
{
	const unsigned char *use;
	unsigned len;
	int rc;

	if (n > 0 && BIO_write(c->in, b, (int)n) != (int)n)
		c->state = GL_TLS_CLOSED;
	if (c->state != GL_TLS_SHAKING)
		return c->state;
	ERR_clear_error();
	rc = SSL_do_handshake(c->ssl);
	if (rc != 1) {
		explain(c, rc);
		return c->state;
	}
	SSL_get0_alpn_selected(c->ssl, &use, &len);
	c->state = len == (unsigned char)c->use[0] && !memcmp(use, c->use + 1, len) ? GL_TLS_OPEN : GL_TLS_OTHER_USE;
	return c->state;
}

static size_t channel_read(struct gl_tls *c, uint8_t *b, size_t room)
{
	int n;

	if (c->state != GL_TLS_OPEN)
		return 0;
	ERR_clear_error();
	n = SSL_read(c->ssl, b, (int)room);
	if (n > 0)
		return (size_t)n;
	explain(c, n);
	return 0;
}

static bool channel_write(struct gl_tls *c, const uint8_t *b, size_t n)
{
	ERR_clear_error();
	return c->state == GL_TLS_OPEN && SSL_write(c->ssl, b, (int)n) == (int)n;
}

static size_t channel_output(struct gl_tls *c, uint8_t *b, size_t room)
{
	int n = BIO_read(c->out, b, (int)room);

	return n > 0 ? (size_t)n : 0;
}

static enum gl_tls_state channel_state(const struct gl_tls *c)
{
	return c->state;
}

static int channel_alert(const struct gl_tls *c)
{
	return c->alert;
}

static int channel_asked_key(const struct gl_tls *c)
{
	return c->asked_key;
}

__attribute__((visibility("default"))) const struct gl_tls_functions gleam_tls_1 = {
	.open = channel_open, .input = channel_input, .read = channel_read, .write = channel_write, .output = channel_output,
	.state = channel_state, .alert = channel_alert, .asked_key = channel_asked_key, .close = channel_close,
};
