/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libucm of UCX, which both MPIs of Debian have loaded, patches munmap, brk, mremap, madvise and their like. It is
 * looked for when the program runs, so that an MPI without UCX is served as well.
 */
#include <dlfcn.h>

#include "events.h"

/* As in ucm/api/ucm.h of UCX 1, which is libucm.so.0. */
enum { VM_UNMAPPED = 1 << 17, PRIORITY = 1000 };

union ucm_event {
	struct {
		void *address;
		size_t size;
	} vm_unmapped;
};

typedef int set_event_handler(int events, int priority, void (*callback)(int, union ucm_event *, void *), void *arg);

static void (*tell)(const void *at, size_t bytes);

static void unmapped(int event, union ucm_event *e, void *arg)
{
	(void)event, (void)arg;
	tell(e->vm_unmapped.address, e->vm_unmapped.size);
}

int memory_events(void (*returned)(const void *at, size_t bytes))
{
	/* libucm has symbols of libucs, which is linked to it. */
	void *library = dlopen("libucs.so.0", RTLD_NOW) ? dlopen("libucm.so.0", RTLD_LAZY) : NULL;
	set_event_handler *set = library ? (set_event_handler *)dlsym(library, "ucm_set_event_handler") : NULL;

	tell = returned;
	return set && !set(VM_UNMAPPED, PRIORITY, unmapped, NULL);
}
