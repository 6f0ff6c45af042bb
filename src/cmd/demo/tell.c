/* SPDX-License-Identifier: Apache-2.0 */
/* Every text that a tour shows. */
#include <stdlib.h>
#include "cmd/demo/demo.h"
#include "cmd/shared/show.h"
#include "core/json/member.h"
#include "core/text/units.h"
#include "core/text/width.h"

enum { INDENT = 2, COLUMNS_MOST = 100, FIGURES_SHOWN = 6 };
#define BOLD "\033[1m"
#define FAINT "\033[2m"
#define PLAIN "\033[0m"

static void code(struct text *out, const struct demo *d, const char *sgr)
{
	if (d->c->colour)
		text_add(out, sgr);
}

static unsigned columns(void)
{
	const unsigned wide = show_columns();

	return wide < COLUMNS_MOST ? wide : COLUMNS_MOST;
}

/* A paragraph below a step's title. */
static void add_paragraph(struct text *out, const char *s)
{
	text_addf(out, "%*s", INDENT, "");
	width_wrap(out, s, columns(), INDENT, INDENT);
	text_add(out, "\n");
}

static const char *verdict_colour(enum stage_verdict verdict)
{
	switch (verdict) {
	case VERDICT_STAGE_PASSED:
		return "\033[1;32m";
	case VERDICT_STAGE_FAILED:
		return "\033[1;31m";
	case VERDICT_STAGE_INCONCLUSIVE:
		return "\033[1;33m";
	default:
		return FAINT;
	}
}

static void add_verdict(struct text *out, const struct demo *d, enum stage_verdict verdict)
{
	code(out, d, verdict_colour(verdict));
	text_add(out, stage_verdict_word(verdict));
	code(out, d, PLAIN);
}

/* "0.3 s", "42 s", "1:20 min" */
static void add_time(struct text *out, double seconds)
{
	char clock[32];

	units_format_clock(clock, sizeof(clock), seconds);
	if (seconds < 10)
		text_addf(out, "%.1f s", seconds);
	else if (seconds < 60)
		text_addf(out, "%.0f s", seconds);
	else
		text_addf(out, "%s min", clock);
}

/* The steps that will run. */
static size_t runs(const struct demo *d)
{
	size_t count = 0;

	for (size_t i = 0; i < d->count; i++)
		count += d->result[d->step[i]].expected_s > 0;
	return count;
}

void tell_banner(struct text *out, const struct demo *d)
{
	const size_t count = runs(d);

	code(out, d, BOLD);
	text_addf(out, "assay demo %s", tour_words[d->tour]);
	code(out, d, PLAIN);
	text_addf(out, "\n%s\n%zu step%s, about ", d->host, count, count == 1 ? "" : "s");
	add_time(out, plan_left_s(d, 0, 0));
	text_addf(out, ". Results: %s\n", d->dir);
}

static void add_command(struct text *out, const struct demo *d, const struct stage_command *k)
{
	text_addf(out, "%*s", INDENT, "");
	code(out, d, "\033[36m");
	text_add(out, "$ ");
	stage_command_text(out, k);
	code(out, d, PLAIN);
	text_add(out, "\n");
}

void tell_step(struct text *out, const struct demo *d, size_t at)
{
	const struct demo_step *step = &step_list[d->step[at]];
	const struct stage_result *r = &d->result[d->step[at]];

	text_add(out, "\n");
	code(out, d, BOLD);
	text_addf(out, "%zu/%zu %s", at + 1, d->count, step->title);
	code(out, d, PLAIN);
	text_add(out, "\n");
	add_paragraph(out, step->says);
	if (r->command.count)
		add_command(out, d, &r->command);
}

static void end_line(struct text *out)
{
	while (out->size && out->data[out->size - 1] == ' ')
		out->data[--out->size] = '\0';
	text_add(out, "\n");
}

static bool is_hidden(enum step_id id, const char *line)
{
	const char *hidden = step_list[id].hidden;

	return hidden && !strncmp(line, hidden, strlen(hidden));
}

void tell_output(struct text *out, const struct demo *d, enum step_id id, unsigned indent, unsigned columns)
{
	char dir[PATH_MAX + 64];
	size_t size = 0, lines = 0;
	char *text, *line;

	tour_step_dir(d, id, dir);
	text = stage_read_text(dir, "output.txt", &size);
	line = text;
	while (line && *line && lines < step_list[id].shown) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (*line && !is_hidden(id, line)) {
			text_addf(out, "%*s", (int)indent, "");
			width_add(out, line, columns, WIDTH_LEFT);
			end_line(out);
			lines++;
		}
		line = end ? end + 1 : NULL;
	}
	if (line && *line && step_list[id].shown)
		text_addf(out, "%*s.. more in %s/output.txt\n", (int)indent, "", strrchr(dir, '/') + 1);
	free(text);
}

static void add_figures(struct text *out, const json_t *figures)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)figures, i, one)
	{
		char value[80];

		if (i == FIGURES_SHOWN) {
			text_addf(out, "%*s.. %zu more on the page\n", INDENT + 2, "",
				  json_array_size(figures) - i);
			break;
		}
		stage_figure_value(value, sizeof(value), one);
		text_addf(out, "%*s", INDENT + 2, "");
		width_add(out, json_member_text(one, "name"), 44, WIDTH_LEFT);
		text_addf(out, "  %s\n", value);
	}
}

/* "passed in 0:12: headline; reason" */
static void add_outcome(struct text *out, const struct demo *d, const struct stage_result *r)
{
	struct text line = {0};

	text_addf(out, "%*s", INDENT, "");
	add_verdict(out, d, r->verdict);
	if (r->seconds > 0) {
		text_add(&line, " in ");
		add_time(&line, r->seconds);
	}
	if (*r->headline)
		text_addf(&line, ": %s", r->headline);
	if (*r->reason)
		text_addf(&line, "%s %s", *r->headline ? ";" : ":", r->reason);
	width_wrap(out, text_str(&line), columns(), INDENT + width_of(stage_verdict_word(r->verdict)),
		   INDENT);
	text_add(out, "\n");
	text_release(&line);
}

void tell_end(struct text *out, const struct demo *d, size_t at)
{
	const struct stage_result *r = &d->result[d->step[at]];

	if (r->command.count) {
		tell_output(out, d, d->step[at], INDENT + 2, columns() - INDENT - 2);
		add_figures(out, r->figures);
	}
	add_outcome(out, d, r);
}

void tell_progress(struct text *out, const struct demo *d, size_t at, double elapsed_s, const char *live)
{
	char elapsed[32], left[32];

	units_format_clock(elapsed, sizeof(elapsed), elapsed_s);
	units_format_clock(left, sizeof(left), plan_left_s(d, at, elapsed_s));
	text_addf(out, "%zu/%zu %s %s, about %s left in all%s%s", at + 1, d->count,
		  step_list[d->step[at]].word, elapsed, left, *live ? " | " : "", live);
}

void tell_summary(struct text *out, const struct demo *d)
{
	text_add(out, "\n");
	code(out, d, BOLD);
	text_add(out, "The tour took ");
	add_time(out, d->seconds);
	code(out, d, PLAIN);
	text_add(out, "\n");
	for (size_t i = 0; i < d->count; i++) {
		const struct stage_result *r = &d->result[d->step[i]];
		const char *more = *r->headline && (r->verdict == VERDICT_STAGE_PASSED || !*r->reason)
					   ? r->headline
					   : r->reason;
		const unsigned used = 5 + 12 + 2 + 13;

		if (!r->asked)
			continue;
		text_addf(out, "%*s%2zu ", INDENT, "", i + 1);
		width_add(out, step_list[d->step[i]].word, 12, WIDTH_LEFT);
		text_add(out, "  ");
		code(out, d, verdict_colour(r->verdict));
		width_add(out, stage_verdict_word(r->verdict), 12, WIDTH_LEFT);
		code(out, d, PLAIN);
		text_add(out, " ");
		width_add(out, more, columns() > used + 10 ? columns() - used : 10, WIDTH_LEFT);
		end_line(out);
	}
}

void tell_plan(struct text *out, const struct demo *d)
{
	tell_banner(out, d);
	for (size_t i = 0; i < d->count; i++) {
		const struct demo_step *step = &step_list[d->step[i]];
		const struct stage_result *r = &d->result[d->step[i]];
		const char *why = step->skips ? step->skips(d) : NULL;
		struct stage_command k = {0};

		text_addf(out, "%2zu  %-11s  ", i + 1, step->word);
		if (!r->asked) {
			text_add(out, "not asked for\n");
		} else if (why) {
			text_addf(out, "skipped: %s\n", why);
		} else {
			step->command(d, &k);
			text_addf(out, "about %.0f s: %s\n%17s", r->expected_s, step->title, "");
			stage_command_text(out, &k);
			text_add(out, "\n");
		}
	}
}
