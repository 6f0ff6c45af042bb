/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/show.h"
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* errno of the first failed write to stdout, because stdio does not keep it. */
static int lost;

int show_lost(void)
{
	return lost;
}

bool show_flush(void)
{
	if (fflush(stdout) && !lost)
		lost = errno;
	return !lost;
}

static bool put(const struct text *t)
{
	if (fputs(text_str(t), stdout) < 0 && !lost)
		lost = errno;
	return !t->failed && !lost;
}

void show_text(const struct text *t, enum utf8_keep colour)
{
	struct text clean = {0};

	utf8_add_clean(&clean, text_str(t), UTF8_KEEP_LINES | colour);
	put(&clean);
	text_release(&clean);
}

bool show_json(const json_t *j, size_t flags)
{
	char *dumped = j ? json_dumps(j, flags) : NULL;
	struct text t = {0};
	bool done = false;

	if (dumped) {
		utf8_add_json(&t, dumped);
		text_add(&t, "\n");
		done = put(&t);
	}
	free(dumped);
	text_release(&t);
	return done;
}

void show_message(const char *prefix, const char *line)
{
	struct text clean = {0};

	show_flush(); /* both streams may go to one file: keep the order and whole lines */
	utf8_add_clean(&clean, line, UTF8_KEEP_NOTHING);
	fprintf(stderr, "assay: %s%s\n", prefix, text_str(&clean));
	text_release(&clean);
}

unsigned show_columns(void)
{
	const char *stated = getenv("COLUMNS");
	struct winsize size;
	unsigned long columns;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col > 0)
		return size.ws_col;
	columns = stated ? strtoul(stated, NULL, 10) : 0;
	return columns >= 20 && columns <= 1000 ? (unsigned)columns : 100;
}

enum status show_one_form(uint32_t format, bool json, const char *columns, struct error *err)
{
	unsigned shown;

	if (json && format != REPORT_TEXT && format != REPORT_JSON)
		return error_set(err, STATUS_BAD_INPUT, "--json and --format %s cannot be combined: give one",
				 report_formats[format]);
	if (columns && (json || format != REPORT_TEXT))
		return error_set(err, STATUS_BAD_INPUT, "--columns is for the text report, not for %s",
				 json ? "json" : report_formats[format]);
	return report_columns_parse(&shown, columns, err);
}

enum status show_report(const struct report_input *in, enum report_format format, const char *columns,
			bool colour, struct error *err)
{
	struct report_style style = {.colour = colour, .columns = show_columns()};
	struct text out = {0};
	enum status st = report_columns_parse(&style.shown, columns, err);

	if (!st)
		st = report_render(&out, format, in, &style, err);
	if (!st && format == REPORT_TEXT)
		show_text(&out, colour ? UTF8_KEEP_COLOUR : UTF8_KEEP_NOTHING);
	else if (!st)
		put(&out); /* for other programs, in the rules of its format */
	text_release(&out);
	return st;
}
