/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the files with functions of gleam.h share.
 */
#ifndef GLEAM_API_H
#define GLEAM_API_H

#include "group.h"

#define API __attribute__((visibility("default")))

/* The time after which a call gives up; it may be never. */
uint64_t gl_after(int timeout_ms);

#endif
