/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serial numbers, UUIDs, host names and addresses as pseudonyms (machine/pseudonym.h): the same value has the
 * same one in every report of one run, and another in those of another run. PCI addresses stay: they name the
 * part and nobody's machine.
 */
#ifndef REPORT_TEXT_PSEUDONYM_MAP_H
#define REPORT_TEXT_PSEUDONYM_MAP_H
#include <stdbool.h>
#include "core/text/text.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "machine/pseudonym.h"

struct pseudonym_map {
	bool real;
	char salt[PSEUDONYM_SALT]; /* the run's; "": its journal has none */
	size_t count, room;
	struct pseudonym_map_pair {
		char *value;
		char shown[80];
	} * pair;
	bool failed; /* out of memory: pseudonym_map_add then hides whole texts */
};

/* Collects what the record names. Owner: caller, pseudonym_map_release. */
void pseudonym_map_init(struct pseudonym_map *n, const struct record *r, const struct machine *m, bool real);
/* And what another machine of the same team has. */
void pseudonym_map_learn(struct pseudonym_map *n, const struct machine *m);
/* `shown`, as the record has it, is to be read as `name`: a pseudonym whose owner is known here. */
void pseudonym_map_tell(struct pseudonym_map *n, const char *shown, const char *name);
void pseudonym_map_release(struct pseudonym_map *n);
/* Appends `s` with every known name and everything that looks like an IPv4, IPv6 or MAC address or a UUID
 * replaced. */
void pseudonym_map_add(const struct pseudonym_map *n, struct text *out, const char *s);
/* The same into a buffer. */
void pseudonym_map_copy(const struct pseudonym_map *n, char *out, size_t size, const char *s);
#endif
