/* SPDX-License-Identifier: Apache-2.0 */
/* The place of the state, its lock, and what happens if it cannot be used. */
#ifndef CMD_HEALTH_STATE_PLACE_H
#define CMD_HEALTH_STATE_PLACE_H
#include <limits.h>
#include <signal.h>
#include "cmd/health/state.h"
#include "core/log.h"

struct state_place {
	char path[PATH_MAX];
	struct health_state state;
	int lock;   /* -1: none */
	bool saves; /* false: the state cannot be saved, so this run neither drains nor resumes */
};

/* Selects the file: `given`, or the default of this user. BAD_INPUT: it is empty or too long. UNAVAILABLE:
 * there is no default, because neither XDG_STATE_HOME nor HOME holds an absolute path. */
enum status state_place_find(char out[PATH_MAX], const char *given, struct error *err);
/* Locks the folder and reads the state. A state that cannot be used is logged, and the run goes on without
 * one. A damaged one is renamed to FILE.bad, or FILE.bad.1 and so on: no file is overwritten. A path that
 * is no file of this user, or cannot be read, stays as it is. UNAVAILABLE with cause BUSY: another run has
 * the lock. p->path is set. */
enum status state_place_open(struct state_place *p, const struct log *log, const volatile sig_atomic_t *stop,
			     struct error *err);
/* Saves the state. False: it is logged, and p->saves is false from now on. */
bool state_place_save(struct state_place *p, const struct log *log);
void state_place_close(struct state_place *p);
#endif
