/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serial numbers, UUIDs, host names and addresses as pseudonyms (machine/pseudonym.h): the same value has the
 * same one in every report of one run, and another in those of another run. PCI addresses stay: they name the
 * part and nobody's machine.
 */
#ifndef REPORT_NAMES_H
#define REPORT_NAMES_H
#include <stdbool.h>
#include "core/text/text.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "machine/pseudonym.h"

struct names {
	bool real;
	char salt[PSEUDONYM_SALT]; /* the run's; "": its journal has none */
	size_t count, room;
	struct names_pair {
		char *value;
		char shown[80];
	} * pair;
	bool failed; /* out of memory: names_add then hides whole texts */
};

/* Collects what the record names. Owner: caller, names_release. */
void names_init(struct names *n, const struct record *r, const struct machine *m, bool real);
/* And what another machine of the same team has. */
void names_learn(struct names *n, const struct machine *m);
/* `shown`, as the record has it, is to be read as `name`: a pseudonym whose owner is known here. */
void names_tell(struct names *n, const char *shown, const char *name);
void names_release(struct names *n);
/* Appends `s` with every known name and everything that looks like an IPv4, IPv6 or MAC address or a UUID
 * replaced. */
void names_add(const struct names *n, struct text *out, const char *s);
/* The same into a buffer. */
void names_copy(const struct names *n, char *out, size_t size, const char *s);
#endif
