/* Copyright 2026 The Gleam Authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the master share.
 */
#ifndef GLEAM_MASTER_H
#define GLEAM_MASTER_H

#include "machine.h"

size_t gl_find(const struct gl_registration *r, const struct gl_member_key *k); /* r->num: it is not there */
bool gl_registration_copy(struct gl_registration *to, const struct gl_registration *from);

struct gl_event *gl_master_event(const struct gl_master *m, enum gl_event_kind kind, struct gl_output *o);
void gl_master_drop(struct gl_master *m, enum gl_drop d, struct gl_output *o);

void gl_new_register(struct gl_master *m, uint64_t now, struct gl_output *o);
void gl_send_register(struct gl_master *m, struct gl_output *o);
void gl_new_update(struct gl_master *m, uint64_t now, struct gl_output *o);
void gl_send_update(struct gl_master *m, struct gl_output *o);
void gl_send_renew(struct gl_master *m, uint64_t now, struct gl_output *o);
void gl_send_request(struct gl_master *m, const struct gl_request *r, struct gl_output *o);
void gl_add_request(struct gl_master *m, uint64_t now, uint8_t type, const struct gl_member_key *k, bool unreported, struct gl_output *o);
/* Takes the Leave or Delete of a transaction from the list; false if there is none. */
bool gl_take_request(struct gl_master *m, uint32_t transaction, uint8_t type, struct gl_request *r);

size_t gl_num_waiting(const struct gl_master *m);
size_t gl_num_confirmed(const struct gl_master *m);
void gl_check_confirmed(struct gl_master *m, uint64_t now, struct gl_output *o);
void gl_schedule_renew(struct gl_master *m, uint64_t now, uint64_t lease);
void gl_master_stop(struct gl_master *m);
void gl_master_end(struct gl_master *m, uint64_t now, bool unreported, struct gl_output *o);
/* Ends the registration; text is the cause. */
void gl_master_fail(struct gl_master *m, uint64_t now, const char *text, const struct gl_problem *p, bool clean_up, struct gl_output *o);
void gl_lease_lost(struct gl_master *m, struct gl_output *o);
/* Removes a joining member, or with reg.num all that have not confirmed; the group goes on. */
void gl_drop_joiners(struct gl_master *m, uint64_t now, size_t which, const char *text, struct gl_output *o);
void gl_updated(struct gl_master *m, uint64_t now, const struct gl_message *msg, struct gl_output *o);

/* Texts of failures. */
void gl_rejected_text(const struct gl_master *m, const char *action, const struct gl_problem *p, char *text, size_t n);
void gl_silent_text(const struct gl_master *m, const char *action, uint64_t after, char *text, size_t n);
void gl_refused_text(const struct gl_master *m, const char *action, const struct gl_message *confirm, const struct gl_record *r, char *text, size_t n);

#endif
