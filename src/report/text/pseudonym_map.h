/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces serial numbers, UUIDs, host names and addresses with pseudonyms (machine/pseudonym.h). A value has
 * the same pseudonym in every report of one run, and a different one in other runs. PCI addresses stay,
 * because they do not identify a machine.
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
	char salt[PSEUDONYM_SALT]; /* the run's; "": the journal has none */
	size_t count, room;
	struct pseudonym_map_pair {
		char *value;
		char shown[80];
	} * pair;
	bool failed; /* out of memory: pseudonym_map_add then hides whole texts */
};

/* Collects the names in the record and the machine. `real`: replace nothing. The caller frees the map with
 * pseudonym_map_release. */
void pseudonym_map_init(struct pseudonym_map *n, const struct record *r, const struct machine *m, bool real);
/* Adds the names of another machine of the same run. */
void pseudonym_map_learn(struct pseudonym_map *n, const struct machine *m);
/* Shows `name` for the pseudonym `shown` of the record, whose owner is known here. */
void pseudonym_map_set(struct pseudonym_map *n, const char *shown, const char *name);
void pseudonym_map_release(struct pseudonym_map *n);
/* Appends `s` with pseudonyms for every known name, and for every text that looks like an IPv4, IPv6 or MAC
 * address or a UUID. */
void pseudonym_map_add(const struct pseudonym_map *n, struct text *out, const char *s);
/* Writes the same text into `out`. */
void pseudonym_map_copy(const struct pseudonym_map *n, char *out, size_t size, const char *s);
#endif
