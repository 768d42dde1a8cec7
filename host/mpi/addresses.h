/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses of GLEAM_MPI_GROUPS this rank's groups have, of which it is the master.
 */
#ifndef GLEAM_MPI_ADDRESSES_H
#define GLEAM_MPI_ADDRESSES_H

#include <stdint.h>

/* The number of an address that no group has; -1 if there is none. */
int64_t address_take(void);
/* -1 is none. */
void address_give(int64_t address);
void addresses_close(void);

#endif
