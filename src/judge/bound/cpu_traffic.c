/* SPDX-License-Identifier: Apache-2.0 */
/* Which loop of probe peak moves the same mix of reads and writes as a CPU memory case. Only that loop can be
 * its ceiling. */
#include "judge/bound/bound.h"

/* Units of probe peak by their number of read and written streams, with regular or non-temporal stores. */
static const struct {
	const char *op, *regular, *nontemporal;
} mixes[] = {
	{"read", "read", "read"},
	{"dot", "read2", "read2"},
	{"write", "write", "write_nt"},
	{"copy", "read_write", "read_write_nt"},
	{"scale", "read_write", "read_write_nt"},
	{"add", "read2_write", "read2_write_nt"},
	{"triad", "read2_write", "read2_write_nt"},
};

/* Returns NULL if no loop of probe peak moves this mix, or the case does not report its stores. */
static const char *unit_for(const struct record_case *c)
{
	const char *op = record_option(c, "op"), *store = record_text(record_phase(c, "once"), "store");

	for (size_t i = 0; op && i < sizeof(mixes) / sizeof(mixes[0]); i++) {
		if (strcmp(mixes[i].op, op))
			continue;
		if (!store) /* a case that only reads reports no store */
			return strcmp(mixes[i].regular, mixes[i].nontemporal) ? NULL : mixes[i].regular;
		return !strcmp(store, "regular")       ? mixes[i].regular
		       : !strcmp(store, "nontemporal") ? mixes[i].nontemporal
						       : NULL;
	}
	return NULL;
}

bool traffic_same(const struct record_case *c, const struct record_case *peak)
{
	const char *unit = record_option(peak, "unit"), *wanted = unit_for(c);

	return strcmp(c->limit, "memory") || (unit && wanted && !strcmp(unit, wanted));
}

const char *traffic_of_ceiling(const struct record_case *c, char *buffer, size_t size)
{
	const char *by = record_text(record_phase(c, "ceiling"), "ceiling_by"), *wanted = unit_for(c);
	const char *unit = by ? strstr(by, " unit=") : NULL;

	if (!unit || strcmp(c->limit, "memory"))
		return NULL;
	unit += strlen(" unit=");
	snprintf(buffer, size, "%.*s", (int)strcspn(unit, " "), unit);
	return wanted && !strcmp(buffer, wanted) ? NULL : buffer;
}
