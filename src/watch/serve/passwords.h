/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks users and passwords against bcrypt hashes. A hash takes a tenth of a second, so one thread computes
 * it, and few may wait for that thread. A password that was right is known from then on by a digest. So wrong
 * passwords delay neither the readings nor the clients that are known.
 */
#ifndef WATCH_SERVE_PASSWORDS_H
#define WATCH_SERVE_PASSWORDS_H
#include "watch/serve/web_config.h"

enum { PASSWORDS_WAITING_MOST = 16 };

enum password_answer {
	PASSWORD_RIGHT,
	PASSWORD_WRONG, /* it is malformed */
	PASSWORD_LATER, /* passwords_next will tell */
	PASSWORD_BUSY	/* too many wait: not now */
};

struct passwords;
/* Starts the thread. `users` must outlive it. Owner: caller, passwords_stop. */
enum status passwords_start(struct passwords **out, const struct web_config *users, struct error *err);
/* Waits for the hash that is being computed. */
void passwords_stop(struct passwords *p);
/* Descriptor to poll for reading: there is an answer. */
int passwords_fd(const struct passwords *p);
/* `header`: the value of Authorization; NULL: none. After PASSWORD_LATER, passwords_next returns `who` once.
 */
enum password_answer passwords_ask(struct passwords *p, const char *header, void *who);
/* Takes one answer; NULL: there is none now. */
void *passwords_next(struct passwords *p, bool *right);
/* Nobody waits for this answer any more. */
void passwords_forget(struct passwords *p, const void *who);

/* Reads "Basic BASE64" into a user and a password, which share `room`. False: it is malformed or too long. */
enum { PASSWORDS_BYTES_MOST = 512 };
bool passwords_decode(const char *header, char room[PASSWORDS_BYTES_MOST + 1], const char **user,
		      const char **password);
#endif
