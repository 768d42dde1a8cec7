/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Handles of groups: numbers in disguise, so that a wrong one is an error and not a
 * crash; and the text of the last failure.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "group.h"

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static struct gleam_group **groups;
static size_t num_groups, room_groups;
static uintptr_t last_handle;

/* A child of fork() has no thread of the library: a group with one is none in it. */
static pthread_once_t forks = PTHREAD_ONCE_INIT;
static bool in_child;

static void lock_table(void) { pthread_mutex_lock(&table); }
static void unlock_table(void) { pthread_mutex_unlock(&table); }
static void forget_table(void)
{
	for (size_t i = num_groups; i-- > 0;)
		if (groups[i]->has_thread) /* its memory is left to the end of the child */
			groups[i] = groups[--num_groups];
	in_child = true;
	pthread_mutex_unlock(&table);
}
static void watch_forks(void) { pthread_atfork(lock_table, unlock_table, forget_table); }

static _Thread_local char error[4096];

void gl_clear_error(void)
{
	error[0] = 0;
}

int gl_error(int number, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, sizeof error, format, args);
	va_end(args);
	return -number;
}

__attribute__((visibility("default"))) const char *gleam_error(void)
{
	return error;
}

uintptr_t gl_handle_add(struct gleam_group *g)
{
	uintptr_t handle = 0;

	pthread_once(&forks, watch_forks);
	pthread_mutex_lock(&table);
	if (num_groups == room_groups) {
		struct gleam_group **more = realloc(groups, (2 * room_groups + 8) * sizeof *more);

		if (more) {
			groups = more;
			room_groups = 2 * room_groups + 8;
		}
	}
	if (num_groups < room_groups) {
		groups[num_groups++] = g;
		g->handle = handle = ++last_handle;
	}
	pthread_mutex_unlock(&table);
	return handle;
}

struct gleam_group *gl_handle_use(uintptr_t handle)
{
	struct gleam_group *g = NULL;
	bool child;

	gl_clear_error();
	pthread_mutex_lock(&table);
	for (size_t i = 0; i < num_groups; i++)
		if (groups[i]->handle == handle && !groups[i]->destroyed)
			g = groups[i];
	if (g)
		g->users++;
	child = in_child;
	pthread_mutex_unlock(&table);
	if (g)
		pthread_mutex_lock(&g->mu);
	else if (!handle)
		gl_error(EINVAL, "invalid argument: the group is NULL: gleam_create failed, or was not called");
	else
		gl_error(EINVAL, "invalid argument: no such group: %s", child ? "it has a thread, which a child of fork() has not" : "was it destroyed already?");
	return g;
}

void gl_handle_done(struct gleam_group *g)
{
	pthread_mutex_unlock(&g->mu);
	pthread_mutex_lock(&table);
	g->users--;
	pthread_cond_broadcast(&unused);
	pthread_mutex_unlock(&table);
}

void gl_handle_remove(struct gleam_group *g)
{
	pthread_mutex_lock(&table);
	g->destroyed = true;
	pthread_mutex_unlock(&table);
	gl_changed(g);
	pthread_mutex_unlock(&g->mu);
	pthread_mutex_lock(&table);
	while (g->users > 1) /* the caller's own */
		pthread_cond_wait(&unused, &table);
	for (size_t i = 0; i < num_groups; i++)
		if (groups[i] == g)
			groups[i] = groups[--num_groups];
	if (!num_groups) {
		free(groups);
		groups = NULL;
		room_groups = 0;
	}
	pthread_mutex_unlock(&table);
}
