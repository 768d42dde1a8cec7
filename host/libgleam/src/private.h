/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The private data of RDMA-CM.
 */
#ifndef GLEAM_PRIVATE_H
#define GLEAM_PRIVATE_H

#include "../gleam.h"

/* m is one that gleam_cm_private() takes. */
void gl_private_write(const struct gleam_cm_member *m, uint8_t b[GLEAM_CM_PRIVATE]);

#endif
