/* SPDX-License-Identifier: Apache-2.0 */
#include "core/status.h"

#include <stdbool.h>
#include <string.h>

struct row {
	const char *name, *text, *action;
	int exit_code, weight;
};

#define X(id, name_, text_) [STATUS_##id] = {.name = name_, .text = text_},
static const struct row status_rows[] = {STATUS_LIST(X)};
#undef X
#define X(id, name_, text_) [ENDING_##id] = {.name = name_, .text = text_},
static const struct row ending_rows[] = {ENDING_LIST(X)};
#undef X
#define X(id, name_, code_, weight_, text_)                                                                  \
	[VERDICT_##id] = {.name = name_, .text = text_, .exit_code = code_, .weight = weight_},
static const struct row verdict_rows[] = {VERDICT_LIST(X)};
#undef X
#define X(id, name_, text_, action_) [CAUSE_##id] = {.name = name_, .text = text_, .action = action_},
static const struct row cause_rows[] = {CAUSE_LIST(X)};
#undef X

/* Values come from our own enums or, cast, from files: a value outside the list has its own row. */
static const struct row *row_at(const struct row *rows, int count, int index)
{
	static const struct row unknown = {
		.name = "?", .text = "?", .action = "", .exit_code = 2, .weight = VERDICT_WEIGHT_MOST};

	return index >= 0 && index < count ? &rows[index] : &unknown;
}

static int row_find(const struct row *rows, int count, const char *name)
{
	int i;

	for (i = 0; i < count; i++)
		if (!strcmp(rows[i].name, name))
			return i;
	return -1;
}

const char *status_name(enum status status)
{
	return row_at(status_rows, STATUS_COUNT, (int)status)->name;
}

const char *ending_name(enum ending ending)
{
	return row_at(ending_rows, ENDING_COUNT, (int)ending)->name;
}

const char *verdict_name(enum verdict verdict)
{
	return row_at(verdict_rows, VERDICT_COUNT, (int)verdict)->name;
}

const char *cause_name(enum cause cause)
{
	return row_at(cause_rows, CAUSE_COUNT, (int)cause)->name;
}

const char *status_text(enum status status)
{
	return row_at(status_rows, STATUS_COUNT, (int)status)->text;
}

const char *ending_text(enum ending ending)
{
	return row_at(ending_rows, ENDING_COUNT, (int)ending)->text;
}

const char *verdict_text(enum verdict verdict)
{
	return row_at(verdict_rows, VERDICT_COUNT, (int)verdict)->text;
}

const char *cause_text(enum cause cause)
{
	return row_at(cause_rows, CAUSE_COUNT, (int)cause)->text;
}

const char *cause_action(enum cause cause)
{
	return row_at(cause_rows, CAUSE_COUNT, (int)cause)->action;
}

int status_from_name(const char *name, enum status *out)
{
	int i = name ? row_find(status_rows, STATUS_COUNT, name) : -1;

	if (i < 0)
		return false;
	*out = (enum status)i;
	return true;
}

int ending_from_name(const char *name, enum ending *out)
{
	int i = name ? row_find(ending_rows, ENDING_COUNT, name) : -1;

	if (i < 0)
		return false;
	*out = (enum ending)i;
	return true;
}

int verdict_from_name(const char *name, enum verdict *out)
{
	int i = name ? row_find(verdict_rows, VERDICT_COUNT, name) : -1;

	if (i < 0)
		return false;
	*out = (enum verdict)i;
	return true;
}

int cause_from_name(const char *name, enum cause *out)
{
	int i = name ? row_find(cause_rows, CAUSE_COUNT, name) : -1;

	if (i < 0)
		return false;
	*out = (enum cause)i;
	return true;
}

int verdict_exit_code(enum verdict verdict)
{
	return row_at(verdict_rows, VERDICT_COUNT, (int)verdict)->exit_code;
}

int verdict_weight(enum verdict verdict)
{
	return row_at(verdict_rows, VERDICT_COUNT, (int)verdict)->weight;
}
