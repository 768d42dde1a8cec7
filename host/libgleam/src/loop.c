/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Progress: one epoll descriptor for sockets and timer, and who waits at it. Of the
 * threads that wait for a group one polls for all; without GLEAM_THREAD there are
 * none but the program's.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "group.h"

uint64_t gl_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * GL_SECOND + (uint64_t)t.tv_nsec;
}

bool gl_watch(struct gleam_group *g, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event e = {.events = events, .data.u64 = tag};

	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

void gl_rewatch(struct gleam_group *g, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event e = {.events = events, .data.u64 = tag};

	epoll_ctl(g->epoll, EPOLL_CTL_MOD, fd, &e);
}

static bool watch_polled(struct gleam_group *g, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(g->poll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* Whether a thread of the library makes progress. */
static bool wants_thread(const struct gleam_group *g)
{
	return g->flags & GLEAM_THREAD || (g->exchange_addr && !(g->flags & GLEAM_NO_THREAD));
}

bool gl_loop_open(struct gleam_group *g)
{
	pthread_condattr_t monotonic;

	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	g->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	g->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->events_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->epoll < 0 || g->poll_fd < 0 || g->timer < 0 || g->wake < 0 || g->events_fd < 0 || !gl_watch(g, g->timer, EPOLLIN, GL_TAG_TIMER) ||
	    !gl_watch(g, g->wake, EPOLLIN, GL_TAG_WAKE) || !watch_polled(g, g->events_fd) || (!wants_thread(g) && !watch_polled(g, g->epoll))) {
		gl_error(EIO, "make descriptors to poll (epoll, eventfd, timerfd): %s", strerror(errno));
		gl_loop_close(g);
		return false;
	}
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&g->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&g->mu, NULL);
	return true;
}

void gl_loop_close(struct gleam_group *g)
{
	int *all[] = {&g->epoll, &g->poll_fd, &g->timer, &g->wake, &g->events_fd};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (*all[i] >= 0)
			close(*all[i]);
		*all[i] = -1;
	}
}

static void drain(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof n) < 0)
		return; /* it was not readable */
}

static void raise_fd(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof one) < 0)
		return; /* a counter that is full is readable already */
}

void gl_signal_events(struct gleam_group *g)
{
	if (g->num_events)
		raise_fd(g->events_fd);
	else
		drain(g->events_fd);
}

/* Tells all that wait to look again. */
void gl_changed(struct gleam_group *g)
{
	pthread_cond_broadcast(&g->changed);
	if (g->polling)
		raise_fd(g->wake);
}

static uint64_t next_deadline(const struct gleam_group *g)
{
	uint64_t at = gl_member_deadline(&g->mem), t = g->has_mas ? gl_master_deadline(&g->mas) : GL_NEVER;

	if (t < at)
		at = t;
	t = gl_exchange_deadline(g);
	return t < at ? t : at;
}

static void set_timer(struct gleam_group *g)
{
	uint64_t at = next_deadline(g);
	struct itimerspec t = {0};

	if (at != GL_NEVER) {
		t.it_value.tv_sec = (time_t)(at / GL_SECOND);
		t.it_value.tv_nsec = (long)(at % GL_SECOND);
		if (!at)
			t.it_value.tv_nsec = 1;
	}
	timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void handle(struct gleam_group *g, const struct epoll_event *e)
{
	switch (e->data.u64) {
	case GL_TAG_TIMER:
		drain(g->timer);
		break;
	case GL_TAG_WAKE:
		drain(g->wake);
		break;
	case GL_TAG_MEMBER:
		if (g->member_fd >= 0)
			gl_receive(g, g->member_fd, false);
		break;
	case GL_TAG_MASTER:
		if (g->master_fd >= 0)
			gl_receive(g, g->master_fd, true);
		break;
	default:
		gl_exchange_event(g, e->data.u64, e->events);
	}
}

static void advance(struct gleam_group *g)
{
	uint64_t now = gl_now();

	if (now >= gl_member_deadline(&g->mem)) {
		gl_member_advance(&g->mem, now, &g->out);
		gl_take_output(g, false);
	}
	if (g->has_mas && now >= gl_master_deadline(&g->mas)) {
		gl_master_advance(&g->mas, now, &g->out);
		gl_take_output(g, true);
	}
	gl_exchange_advance(g, now);
}

enum { AT_ONCE = 16 };

void gl_progress(struct gleam_group *g)
{
	struct epoll_event e[AT_ONCE];
	int n = epoll_wait(g->epoll, e, AT_ONCE, 0);

	for (int i = 0; i < n; i++)
		handle(g, &e[i]);
	advance(g);
	set_timer(g);
	if (n > 0)
		gl_changed(g);
}

static struct timespec as_timespec(uint64_t t)
{
	return (struct timespec){.tv_sec = (time_t)(t / GL_SECOND), .tv_nsec = (long)(t % GL_SECOND)};
}

static void poll_until(struct gleam_group *g, uint64_t now, uint64_t deadline)
{
	struct pollfd p = {.fd = g->epoll, .events = POLLIN};
	struct timespec left = as_timespec(deadline - now);

	g->polling = true;
	pthread_mutex_unlock(&g->mu);
	ppoll(&p, 1, deadline == GL_NEVER ? NULL : &left, NULL);
	pthread_mutex_lock(&g->mu);
	g->polling = false;
	pthread_cond_broadcast(&g->changed); /* somebody else may have to poll */
}

bool gl_wait_until(struct gleam_group *g, bool (*done)(const struct gleam_group *), uint64_t deadline)
{
	for (;;) {
		uint64_t now;

		gl_progress(g);
		if (done(g) || g->destroyed)
			return true;
		now = gl_now();
		if (now >= deadline)
			return false;
		if (!g->polling)
			poll_until(g, now, deadline);
		else if (deadline == GL_NEVER)
			pthread_cond_wait(&g->changed, &g->mu);
		else {
			struct timespec until = as_timespec(deadline);

			pthread_cond_timedwait(&g->changed, &g->mu, &until);
		}
	}
}

static bool never(const struct gleam_group *g)
{
	return !g->has_thread;
}

static void *work(void *arg)
{
	struct gleam_group *g = arg;

	pthread_mutex_lock(&g->mu);
	gl_wait_until(g, never, GL_NEVER);
	pthread_mutex_unlock(&g->mu);
	return NULL;
}

bool gl_start_thread(struct gleam_group *g)
{
	sigset_t all, before;
	int rc;

	if (g->has_thread || !wants_thread(g))
		return true;
	g->has_thread = true;
	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&g->thread, NULL, work, g);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	g->has_thread = rc == 0;
	errno = rc;
	return g->has_thread;
}

/* The caller does not hold the mutex. */
void gl_stop_thread(struct gleam_group *g)
{
	pthread_mutex_lock(&g->mu);
	if (!g->has_thread) {
		pthread_mutex_unlock(&g->mu);
		return;
	}
	g->has_thread = false;
	gl_changed(g);
	pthread_mutex_unlock(&g->mu);
	pthread_join(g->thread, NULL);
}
