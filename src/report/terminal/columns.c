/* SPDX-License-Identifier: Apache-2.0 */
/* The names of table columns for --columns. */
#include "core/input/opt.h"
#include "report/report.h"

#define X(column, name, head) name,
static const char *const names[] = {REPORT_COLUMNS(X)};
#undef X

static enum status refuse(const char *name, struct error *err)
{
	const char *near = opt_nearest(name, names, REPORT_COLUMN_COUNT);
	struct text known = {0};

	for (size_t i = 0; i < REPORT_COLUMN_COUNT; i++)
		text_addf(&known, "%s%s", i ? ", " : "", names[i]);
	error_set(err, STATUS_BAD_INPUT, "--columns: unknown column \"%.40s\"%s%s%s; the columns are %s",
		  name, near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "",
		  text_str(&known));
	text_release(&known);
	return STATUS_BAD_INPUT;
}

enum status report_columns_parse(unsigned *shown, const char *list, struct error *err)
{
	*shown = 0;
	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		char name[64];
		size_t i = 0;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
		while (i < REPORT_COLUMN_COUNT && strcmp(names[i], name) != 0)
			i++;
		if (i == REPORT_COLUMN_COUNT)
			return refuse(name, err);
		*shown |= 1U << i;
	}
	return STATUS_OK;
}
