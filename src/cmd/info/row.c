/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and tables of `assay info`. */
#include <stdarg.h>
#include "cmd/info/info.h"
#include "core/json/member.h"

enum { NAME_WIDTH = 18, COLUMNS_MAX = 24, GAP = 2 };

void info_row(struct text *t, const char *name, const char *format, ...)
{
	char value[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (value[0])
		text_addf(t, "  %-*s  %s\n", NAME_WIDTH, name, value);
}

void info_row_unreadable(struct text *t, const char *name, const char *why)
{
	info_row(t, name, "unreadable: %s", why ? why : "not read");
}

struct column {
	size_t width;
	bool right, used;
};

/* Returns the cell at *p with its length *n (empty if the line has no more cells) and advances *p past it. */
static const char *next_cell(const char **p, int *n)
{
	const char *cell = *p;

	*n = (int)strcspn(cell, "\t\n");
	*p += *n + (cell[*n] == '\t');
	return cell;
}

static void next_line(const char **p)
{
	*p += strcspn(*p, "\n");
	*p += **p == '\n';
}

static size_t measure(struct column *columns, const char *lines)
{
	size_t count = 0;
	bool head = true;

	for (const char *p = lines; *p; head = false) {
		for (size_t c = 0; *p && *p != '\n' && c < COLUMNS_MAX; c++) {
			int n;
			const char *cell = next_cell(&p, &n);

			if (head)
				columns[c].right = *cell == '>';
			else
				columns[c].used = columns[c].used || n;
			n -= head && columns[c].right;
			columns[c].width = (size_t)n > columns[c].width ? (size_t)n : columns[c].width;
			count = c + 1 > count ? c + 1 : count;
		}
		next_line(&p);
	}
	return count;
}

static void add_cell(struct text *line, const struct column *column, const char *cell, int n)
{
	int width = (int)column->width;

	if (column->right)
		text_addf(line, "%*s%*.*s", GAP, "", width, n, cell);
	else
		text_addf(line, "%*s%-*.*s", GAP, "", width, n, cell);
}

void info_columns(struct text *t, const char *lines)
{
	struct column columns[COLUMNS_MAX] = {{0}};
	size_t count = measure(columns, lines);
	const char *above = text_str(t) + t->size;
	bool head = true;

	while (above > text_str(t) && (above == text_str(t) + t->size || above[-1] != '\n'))
		above--;
	if (*above == ' ') /* rows, not a title, precede: separate from them */
		text_add(t, "\n");
	for (const char *p = lines; *p; head = false) {
		struct text line = {0};
		const char *end;

		for (size_t c = 0; c < count; c++) {
			int n;
			const char *cell = next_cell(&p, &n);

			if (head && columns[c].right) {
				cell++;
				n--;
			}
			if (columns[c].used)
				add_cell(&line, &columns[c], cell, n);
		}
		next_line(&p);
		end = text_str(&line) + line.size;
		while (end > text_str(&line) && end[-1] == ' ')
			end--;
		text_add_bytes(t, text_str(&line), (size_t)(end - text_str(&line)));
		text_add(t, "\n");
		text_release(&line);
	}
}

double info_number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

const char *info_bytes(char out[32], double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	int i = 0;

	while (bytes >= 1024 && i < 5) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, 32, bytes >= 100 || i == 0 ? "%.0f %s" : "%.3g %s", bytes, units[i]);
	return out;
}

const char *info_why(const struct machine *m, const char *what)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(machine_json(m), "unreadable"), i, row)
	{
		if (!strcmp(json_member_text(row, "what"), what))
			return json_member_text(row, "why");
	}
	return NULL;
}

void info_unreadable(struct text *t, const struct machine *m)
{
	const json_t *list = json_object_get(machine_json(m), "unreadable"), *row;
	size_t i;

	if (!json_array_size(list))
		return;
	text_add(t, "Could not be read\n");
	json_array_foreach((json_t *)list, i, row)
		info_row(t, json_member_text(row, "what"), "%s", json_member_text(row, "why"));
}
