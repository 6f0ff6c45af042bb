/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes secrets from command lines and environments of foreign programs. The text REDACTED replaces each
 * secret. Names match as a whole: --token and HF_TOKEN name a secret, --tokens and --max-tokens do not. This
 * file uses only libc and allocates no memory, because the library injected into profiled programs contains
 * it too.
 *
 * Redacted: the value of an option, variable, header or JSON key whose name is in the table, after '=', ':'
 * or as the next word; the word after "Bearer"; the password in scheme://user:password@host; tokens with a
 * known prefix; the value of -p of mysql, mariadb and sshpass. Not detected: a password that is a word of its
 * own, or that directly follows a one-letter option of another program.
 */
#ifndef CORE_TEXT_REDACT_H
#define CORE_TEXT_REDACT_H
#include <stdbool.h>
#include <stddef.h>

#define REDACTED "[redacted]"

/* State between the words of one command line; begin with {0}. */
struct redact {
	bool value;   /* the next word is a secret */
	bool account; /* the next word is user:password */
	bool glued;   /* an earlier program takes its password directly after -p */
	bool apart;   /* that program also takes it as the next word */
};

/* Writes one word to `out`, redacted and truncated to `room` bytes including the NUL. A word may contain a
 * whole command line ("sh -c"). Returns the length without truncation. */
size_t redact_word(struct redact *r, char *out, size_t room, const char *word);
/* Like redact_word, for the value of an environment variable. */
size_t redact_variable(char *out, size_t room, const char *name, const char *value);
#endif
