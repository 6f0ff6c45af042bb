/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of one sender thread in the order in which they are due. Sessions are dealt to the threads in
 * turn, and each belongs to one thread. Knows neither sockets nor clocks.
 */
#ifndef LOAD_CLIENT_AGENDA_H
#define LOAD_CLIENT_AGENDA_H
#include "load/plan/plan.h"

struct agenda;
/* `begin_ns` is the time of the plan's begin. The plan must outlive the agenda. Owner: caller. */
enum status agenda_create(struct agenda **out, const struct load_plan *plan, uint64_t begin_ns,
			  unsigned thread, unsigned threads, struct error *err);
void agenda_destroy(struct agenda **a); /* NULL-safe; sets NULL */
/* The time at which the earliest request is due; UINT64_MAX: none has a time now. */
uint64_t agenda_due(const struct agenda *a);
/* The request that agenda_take would take once it is due; NULL: none has a time now. */
const struct load_request *agenda_next(const struct agenda *a);
/* Takes the earliest request if it is due. *due_ns: the time at which it was due. */
bool agenda_take(struct agenda *a, uint64_t now_ns, const struct load_request **request, uint64_t *due_ns);
/* The answer to a request ended: the session's next request becomes due after its pause. With `go_on` false
 * the rest of the conversation is dropped. Returns the number of dropped requests. */
size_t agenda_answered(struct agenda *a, const struct load_request *request, uint64_t end_ns, bool go_on);
#endif
