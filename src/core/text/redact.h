/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets in words of others: command lines and environments of programs that are not assay. Names are
 * matched whole: --token and HF_TOKEN have a secret behind them, --tokens and --max-tokens have none. What is
 * taken out becomes REDACTED. Nothing but libc, no memory: the library in profiled programs has it too.
 *
 * Taken out: the value of an option, a variable, a header or a JSON key whose name is in the table, behind
 * '=', ':' or as the next word; what follows "Bearer"; the password in scheme://user:password@host; tokens
 * that are known by how they begin; what follows -p of mysql, mariadb and sshpass. Not found: a password that
 * stands alone, or directly behind a one-letter option of another program.
 */
#ifndef CORE_TEXT_REDACT_H
#define CORE_TEXT_REDACT_H
#include <stdbool.h>
#include <stddef.h>

#define REDACTED "[redacted]"

/* Between the words of one command line; begin with {0}. */
struct redact {
	bool value;   /* the next word is one */
	bool account; /* the next word is user:password */
	bool glued;   /* a program before takes its password directly behind -p */
	bool apart;   /* or as the next word */
};

/* One word into `out`, cut at `room` with its NUL. Words may hold whole command lines ("sh -c"). Returns the
 * length that it has without a cut. */
size_t redact_word(struct redact *r, char *out, size_t room, const char *word);
/* The value of a variable. */
size_t redact_variable(char *out, size_t room, const char *name, const char *value);
/* A name that has a secret behind it. */
bool redact_name(const char *name, size_t size);
#endif
