/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The function of gleam.h for programs that join by RDMA-CM.
 */
#include <errno.h>

#include "api.h"
#include "private.h"

API int gleam_cm_private(const struct gleam_cm_member *m, void *private_data)
{
	struct gl_mem window = {0};

	gl_clear_error();
	if (!m || !private_data || m->size != sizeof *m)
		return gl_error(EINVAL, "invalid argument: want a struct gleam_cm_member with its size, and room for GLEAM_CM_PRIVATE bytes");
	if (m->flags & ~(uint32_t)GLEAM_RECEIVE_ONLY)
		return gl_error(EINVAL, "invalid argument: flags 0x%x: only GLEAM_RECEIVE_ONLY is known here", m->flags);
	if (!m->key != !m->key_len || !m->key != !m->key_id || (m->key && (m->key_len < GL_MIN_KEY || m->key_len > GL_MAX_KEY)))
		return gl_error(EINVAL, "invalid argument: want a key of %d to %d bytes with its id, or none", GL_MIN_KEY, GL_MAX_KEY);
	if (m->expect && (m->expect < 2 || m->expect > 0xffff || !m->key))
		return gl_error(EINVAL, "invalid argument: expect is %u: want 2 to 65535 members and a key, or 0", m->expect);
	if (!gl_valid_qpn(m->qp_num))
		return gl_error(EINVAL, "invalid argument: qp_num is 0x%x: want that of a reliable connected queue pair, 0x10 to 0xfffffe", m->qp_num);
	if (m->mr)
		window = (struct gl_mem){.base = m->mr->addr, .len = m->mr->length, .rkey = m->mr->rkey};
	if (m->mr && !gl_valid_window(&window))
		return gl_error(EINVAL, "invalid argument: mr is empty or passes the end of the address space: give NULL for no region");
	gl_private_write(m, private_data);
	return GLEAM_CM_PRIVATE;
}
