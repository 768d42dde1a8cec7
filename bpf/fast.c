// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Copyright 2026 The Gleam Authors */

//go:build ignore

/*
 * steer.c with the fast path: packets of a group's source that come in order are
 * replicated here (fast_in.h, fast_out.h), all others take the way that steer.c gives them.
 */
#define FAST_PATH
#include "steer.c"
#include "fast_clone.h"
