/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "report_sample.h"
#include "report/html/html.h"
#include "report/terminal/style.h"
#include "report/view/view.h"
#include "core/text/width.h"
#include "report/text/format.h"

static const char *const samples[] = {"cpu",	    "curve", "cut",	"empty",
				      "h100-fault", "h200",  "hostile", "skips"};

struct rendering {
	const char *file;
	void (*render)(struct text *out, const struct report_input *in);
};

static void narrow(struct text *out, const struct report_input *in)
{
	report_terminal(out, in, &(struct report_style){.colour = false, .columns = 60});
}

static void wide(struct text *out, const struct report_input *in)
{
	report_terminal(out, in, &(struct report_style){.colour = true, .columns = 160});
}

static void json(struct text *out, const struct report_input *in)
{
	assert_int_equal(report_json(out, in, NULL), STATUS_OK);
}

static const struct rendering renderings[] = {
	{"narrow.txt", narrow},	     {"wide.txt", wide},     {"REPORT.md", report_markdown},
	{"results.csv", report_csv}, {"results.json", json}, {"report.html", report_html},
};
enum {
	RENDERINGS = sizeof(renderings) / sizeof(renderings[0]),
	SAMPLES = sizeof(samples) / sizeof(samples[0])
};

static void test_report__renderings_equal_what_is_committed(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++)
		for (size_t k = 0; k < RENDERINGS; k++) {
			struct text out = {0};
			struct sample s;

			/* the page is long: of two samples it says enough */
			if (renderings[k].render == report_html && strcmp(samples[i], "h200") &&
			    strcmp(samples[i], "hostile"))
				continue;
			sample_load(&s, samples[i]);
			renderings[k].render(&out, &s.in);
			assert_int_equal(out.failed, 0);
			sample_golden(samples[i], renderings[k].file, text_str(&out));
			text_release(&out);
			sample_release(&s);
		}
}

static void test_report__the_same_input_gives_the_same_bytes(void **state)
{
	struct text first = {0}, second = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	for (size_t k = 0; k < RENDERINGS; k++) {
		renderings[k].render(&first, &s.in);
		renderings[k].render(&second, &s.in);
		assert_string_equal(text_str(&first), text_str(&second));
		text_release(&first);
		text_release(&second);
	}
	sample_release(&s);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* As a word of its own: "nan" stands in "finance", and as a cause it is spelled `nan`. */
static bool has_value_word(const char *text, const char *word)
{
	for (const char *at = text; (at = strstr(at, word)); at++)
		if ((at == text || !is_letter(at[-1])) && !is_letter(at[strlen(word)]))
			return true;
	return false;
}

/* The sample's judge is wrong on purpose: its figures, shares and factors are NaN. Its words for that are not
 * ours. */
static void test_report__no_number_that_is_not_finite_is_printed(void **state)
{
	(void)state;
	for (size_t k = 0; k < RENDERINGS; k++) {
		struct text out = {0};
		struct sample s;

		sample_load(&s, "h200");
		for (size_t i = 0; i < s.judged.count; i++) {
			struct judgement *j = &s.judged.of_case[i];

			j->figure = j->share_of_bound = j->efficiency_held = j->unexplained = NAN;
			j->band.low = j->band.high = INFINITY;
			j->bound.value = i % 2 ? (double)NAN : (double)INFINITY;
			for (size_t f = 0; f < j->gap_count; f++)
				j->gap[f].value = j->gap[f].error = NAN;
		}
		renderings[k].render(&out, &s.in);
		assert_false(has_value_word(text_str(&out), "nan"));
		assert_false(has_value_word(text_str(&out), "NaN"));
		assert_false(has_value_word(text_str(&out), "inf"));
		assert_false(has_value_word(text_str(&out), "Infinity"));
		text_release(&out);
		sample_release(&s);
	}
}

/* A stamp that came too late is not shown as the clock that a case held. */
static void test_report__a_clock_of_after_the_window_is_not_shown_as_held(void **state)
{
	size_t shown[2] = {0};
	struct sample s;
	struct view v;

	(void)state;
	sample_load(&s, "h200");
	for (int recovered = 0; recovered < 2; recovered++) {
		for (size_t i = 0; i < s.judged.count; i++)
			s.judged.of_case[i].clock_recovered = recovered;
		assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
		for (size_t i = 0; i < v.row_count; i++)
			shown[recovered] += v.rows[i].clock[0] && v.rows[i].clock[0] != '~';
		view_release(&v);
	}
	assert_true(shown[0] > 0);
	assert_int_equal(shown[1], 0);
	sample_release(&s);
}

/* One line stands for cases on both sides of 1: it tells how far they reach, not the first one's residual. */
static void test_report__one_line_of_many_residuals_tells_their_range(void **state)
{
	static const double residuals[] = {1.043, 0.958, 0.961};
	struct text out = {0};
	struct sample s;
	size_t set = 0;

	(void)state;
	sample_load(&s, "h200");
	for (size_t i = 0; i < s.judged.count; i++) {
		struct judgement *j = &s.judged.of_case[i];

		if (set == 3 || strcmp(s.record.cases[i].target, "gpu0") || !j->has_figure)
			continue;
		j->verdict = VERDICT_WARN;
		j->cause = CAUSE_UNEXPLAINED;
		j->unexplained = residuals[set++];
		snprintf(j->reason, sizeof(j->reason), "residual %.3f alone", j->unexplained);
	}
	assert_int_equal(set, 3);
	report_json(&out, &s.in, NULL);
	assert_non_null(strstr(text_str(&out), "do not reproduce the figures: residual 0.958 .. 1.043\""));
	text_release(&out);
	report_markdown(&out, &s.in);
	assert_non_null(strstr(text_str(&out), "do not reproduce the figures: residual 0.958 .. 1.043"));
	text_release(&out);
	sample_release(&s);
}

static void test_report__foreign_text_stays_text(void **state)
{
	struct text html = {0}, terminal = {0}, md = {0}, csv = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "hostile");
	report_html(&html, &s.in);
	report_markdown(&md, &s.in);
	report_csv(&csv, &s.in);
	narrow(&terminal, &s.in);
	assert_null(strstr(text_str(&html), "<script>alert"));
	assert_null(strstr(text_str(&html), "<img"));
	assert_null(strstr(text_str(&html), "<b onclick"));
	assert_null(strstr(text_str(&html), "</svg><script>"));
	assert_non_null(strstr(text_str(&html), "&lt;script&gt;alert(1)&lt;/script&gt;"));
	for (const char *at = text_str(&md); (at = strpbrk(at, "<[")); at++)
		if (strncmp(at, "[roofline](", 11) && strncmp(at, "[curve](curve-", 14))
			assert_int_equal(at[-1], '\\');
	assert_null(strstr(text_str(&terminal), "\033"));
	assert_null(strstr(text_str(&terminal), "\a"));
	assert_null(strstr(text_str(&csv), "\"=cmd"));
	/* a mark that turns the direction of what follows */
	assert_null(strstr(text_str(&html), "\xe2\x80\xae"));
	assert_null(strstr(text_str(&md), "\xe2\x80\xae"));
	assert_null(strstr(text_str(&terminal), "\xe2\x80\xae"));
	text_release(&html);
	text_release(&md);
	text_release(&csv);
	text_release(&terminal);
	sample_release(&s);
}

/* `at`: behind the mark before a name, which ends with a quote. Whether the page has that id, and only once. */
static bool is_one_place(const char *page, const char *at)
{
	char id[160];
	const char *found;

	snprintf(id, sizeof(id), " id=\"%.*s\"", (int)strcspn(at, "\""), at);
	found = strstr(page, id);
	return found && !strstr(found + 1, id);
}

/* Every case that is shown has a place, each place is there once, and every link of the page leads to one. */
static void test_report__every_case_has_one_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct text html = {0}, id = {0};
		struct sample s;
		struct view v;

		sample_load(&s, samples[i]);
		report_html(&html, &s.in);
		for (const char *at = text_str(&html); (at = strstr(at, " id=\"")); at++)
			assert_true(is_one_place(text_str(&html), at + 5));
		for (const char *at = text_str(&html); (at = strstr(at, "href=\"#")); at++)
			if (!is_one_place(text_str(&html), at + 7))
				fail_msg("%s: no place for %.40s", samples[i], at);
		assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
		for (size_t k = 0; k < v.row_count; k++) {
			if (v.rows[k].aside)
				continue;
			html_case_id(&id, "case", &v.rows[k]);
			text_add(&id, "\"");
			if (!is_one_place(text_str(&html), text_str(&id)))
				fail_msg("%s: no place for %s", samples[i], text_str(&id));
			text_release(&id);
		}
		view_release(&v);
		text_release(&html);
		sample_release(&s);
	}
}

static void test_report__the_page_asks_for_nothing_from_elsewhere(void **state)
{
	static const char *const doors[] = {"http://", "https://", "src=", "@import", "url("};
	struct text html = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	report_html(&html, &s.in);
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		for (const char *at = text_str(&html); (at = strstr(at, doors[i])); at++)
			/* the name of SVG's name space is asked of nobody */
			assert_int_equal(strncmp(at, "http://www.w3.org/2000/svg", 26), 0);
	assert_non_null(strstr(text_str(&html), "default-src 'none'"));
	assert_non_null(strstr(text_str(&html), "sha256-"));
	text_release(&html);
	sample_release(&s);
}

static void test_report__names_are_replaced_unless_asked_for(void **state)
{
	static const char *const secrets[] = {"1650224012345", "GPU-8f1c2d3e", "8f1c2d3e-4a5b", "10.1.2.3",
					      "fe80::1ff"};
	struct sample s;

	(void)state;
	sample_load(&s, "hostile");
	for (size_t k = 0; k < RENDERINGS; k++) {
		struct text out = {0};

		s.in.real_names = false;
		renderings[k].render(&out, &s.in);
		for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
			assert_null(strstr(text_str(&out), secrets[i]));
		text_release(&out);
		s.in.real_names = true;
		renderings[k].render(&out, &s.in);
		assert_non_null(strstr(text_str(&out), "1650224012345"));
		text_release(&out);
	}
	sample_release(&s);
}

/* Every line of the table fits, in characters as a terminal counts them. */
static void test_report__lines_fit_the_terminal(void **state)
{
	static const unsigned widths[] = {24, 40, 60, 80, 100, 132, 200};

	(void)state;
	for (size_t i = 0; i < SAMPLES; i++)
		for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
			struct text out = {0};
			struct sample s;

			sample_load(&s, samples[i]);
			report_terminal(&out, &s.in, &(struct report_style){.columns = widths[k]});
			for (char *line = out.data, *end; line && (end = strchr(line, '\n'));
			     line = end + 1) {
				*end = '\0';
				/* a single word that is wider stays whole */
				if (width_of(line) > widths[k] && widths[k] >= 60)
					fail_msg("%s at %u columns: %s", samples[i], widths[k], line);
			}
			text_release(&out);
			sample_release(&s);
		}
}

/* Words that differ in numbers alone are said once; a failure keeps its own. */
static void test_report__a_reason_is_said_once_whatever_its_numbers(void **state)
{
	static const struct {
		enum verdict verdict;
		bool again;
	} rows[] = {{VERDICT_UNTRUSTED, false}, {VERDICT_FAIL, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text out = {0};
		struct sample s;

		sample_load(&s, "h200");
		for (size_t k = 4; k < 6; k++) {
			struct judgement *j = &s.judged.of_case[k];

			j->verdict = rows[i].verdict;
			j->cause = CAUSE_CPU_CONTENDED;
			snprintf(j->reason, sizeof(j->reason), "got %zu.5 %% of its time", k);
		}
		report_terminal(&out, &s.in, &(struct report_style){.columns = 100});
		assert_non_null(strstr(text_str(&out), "got 4.5 % of its time"));
		assert_int_equal(strstr(text_str(&out), "got 5.5 % of its time") != NULL, rows[i].again);
		text_release(&out);
		sample_release(&s);
	}
}

/* Every word of every title, whatever the width; a column that is gone is named. */
static void test_report__a_narrow_terminal_cuts_no_title_and_names_what_it_leaves_out(void **state)
{
	static const unsigned widths[] = {60, 80, 100, 140};
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
		bool power = widths[k] > 80;
		struct text out = {0};

		report_terminal(&out, &s.in, &(struct report_style){.columns = widths[k]});
		assert_null(strstr(text_str(&out), "…"));
		assert_int_equal(strstr(text_str(&out), "  power\n") != NULL, power);
		assert_int_equal(strstr(text_str(&out), "power, clock") != NULL, !power);
		assert_int_equal(strstr(text_str(&out), "left out at ") != NULL, !power);
		text_release(&out);
	}
	sample_release(&s);
}

/* At 100 columns a title is on one line, even one of 90 columns. */
static void test_report__a_title_does_not_wrap_at_100_columns(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct text out = {0};
		struct sample s;
		struct view v;

		sample_load(&s, samples[i]);
		assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
		report_terminal(&out, &s.in, &(struct report_style){.columns = 100});
		for (size_t k = 0; k < v.row_count; k++)
			if (view_tabled(&v.rows[k]) && !strstr(text_str(&out), v.rows[k].title) &&
			    !strpbrk(v.rows[k].title, "\x1b\a\n")) /* foreign text is cleaned */
				fail_msg("%s: %s", samples[i], v.rows[k].title);
		text_release(&out);
		view_release(&v);
		sample_release(&s);
	}
}

static void test_report__a_long_title_has_a_line_of_its_own(void **state)
{
	const struct report_style style = {.columns = 100};
	struct text out = {0};
	struct terminal_style p = {.out = &out, .style = &style, .columns = 100};
	char title[91], *at;
	struct sample s;
	struct view v;

	(void)state;
	sample_load(&s, "h200");
	assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
	for (size_t k = 0; k < sizeof(title) - 1; k++)
		title[k] = k % 8 == 7 ? ' ' : 'x';
	title[90] = '\0';
	text_copy(v.rows[2].title, sizeof(v.rows[2].title), title);
	terminal_results(&p, &v);
	at = strstr(out.data, title);
	assert_non_null(at);
	assert_int_equal(at[90], '\n');
	assert_int_equal(strspn(at + 91, " ") > 10, true); /* its cells, below their heads */
	assert_non_null(strstr(at + 91, v.rows[2].figure));
	text_release(&out);
	view_release(&v);
	sample_release(&s);
}

static void test_report__columns_are_selected(void **state)
{
	struct text out = {0};
	struct error err = {0};
	struct report_style style = {.columns = 100};
	struct sample s;

	(void)state;
	assert_int_equal(report_columns_parse(&style.shown, NULL, &err), STATUS_OK);
	assert_int_equal(style.shown, 0);
	assert_int_equal(report_columns_parse(&style.shown, "figure,bond", &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "did you mean \"bound\""));
	assert_int_equal(report_columns_parse(&style.shown, "", &err), STATUS_BAD_INPUT);
	assert_int_equal(report_columns_parse(&style.shown, "figure,", &err), STATUS_BAD_INPUT);
	assert_int_equal(report_columns_parse(&style.shown, "temperature,figure", &err), STATUS_OK);
	sample_load(&s, "h200");
	report_terminal(&out, &s.in, &style);
	assert_non_null(strstr(text_str(&out), "  figure  temp.\n"));
	assert_null(strstr(text_str(&out), "expected"));
	assert_null(strstr(text_str(&out), "no band for FP16 8192 on this product\n")); /* a reason */
	text_release(&out);
	sample_release(&s);
}

/* The first case of the GPU that was timed, judged otherwise. */
static struct judgement *first_of_gpu(struct sample *s)
{
	for (size_t i = 0; i < s->judged.count; i++)
		if (!strcmp(s->record.cases[i].target, "gpu0") && s->judged.of_case[i].has_figure &&
		    !strcmp(s->record.cases[i].phases, "headline"))
			return &s->judged.of_case[i];
	fail_msg("the sample has no case of gpu0 with a figure");
	return NULL;
}

static size_t parts_for_tickets(enum verdict verdict, enum cause cause)
{
	struct judgement *j;
	struct sample s;
	struct view v;
	size_t count;

	sample_load(&s, "h200");
	for (size_t i = 0; i < s.judged.count; i++)
		s.judged.of_case[i].verdict = VERDICT_PASS;
	j = first_of_gpu(&s);
	j->verdict = verdict;
	j->cause = cause;
	assert_false(view_build(&v, &s.in, NULL));
	count = v.part_count;
	assert_true(!count || v.parts[0].cause == cause);
	view_release(&v);
	sample_release(&s);
	return count;
}

static void test_report__a_ticket_is_for_what_failed_or_for_hardware(void **state)
{
	(void)state;
	assert_int_equal(parts_for_tickets(VERDICT_WARN, CAUSE_UNSETTLED), 0);
	assert_int_equal(parts_for_tickets(VERDICT_UNTRUSTED, CAUSE_ABOVE_BOUND), 0);
	assert_int_equal(parts_for_tickets(VERDICT_UNKNOWN, CAUSE_NO_REFERENCE), 0);
	assert_int_equal(parts_for_tickets(VERDICT_WARN, CAUSE_THERMAL_HW), 1);
	assert_int_equal(parts_for_tickets(VERDICT_FAIL, CAUSE_BELOW_BAND), 1);
	assert_int_equal(parts_for_tickets(VERDICT_ERROR, CAUSE_CRASHED), 1);
}

static void over_the_bound(enum verdict verdict, enum bound_from from, const char *said)
{
	struct judgement *j;
	struct text md = {0}, html = {0};
	struct sample s;

	sample_load(&s, "h200");
	j = first_of_gpu(&s);
	j->verdict = verdict;
	j->cause = verdict == VERDICT_UNTRUSTED ? CAUSE_ABOVE_BOUND : CAUSE_NONE;
	j->bound.from = from;
	j->bound.value = j->figure / 1.153;
	j->share_of_bound = 1.153;
	report_markdown(&md, &s.in);
	report_html(&html, &s.in);
	/* What the run's own ceiling allows is no bound once the figure is above it. */
	assert_int_equal(strstr(text_str(&md), "115.3 %") != NULL, from != BOUND_CEILING);
	assert_int_equal(strstr(text_str(&html), "115.3 %") != NULL, from != BOUND_CEILING);
	assert_non_null(strstr(text_str(&md), said));
	assert_non_null(strstr(text_str(&html), said));
	text_release(&md);
	text_release(&html);
	sample_release(&s);
}

static void test_report__a_share_above_its_bound_has_its_reason(void **state)
{
	(void)state;
	over_the_bound(VERDICT_UNTRUSTED, BOUND_DEVICE, "do not use the figure; ");
	over_the_bound(VERDICT_PASS, BOUND_CEILING, "which is not a bound");
	over_the_bound(VERDICT_PASS, BOUND_DATASHEET, "the clock was above its reported maximum");
}

static void test_report__the_trace_has_clock_power_and_temperature(void **state)
{
	struct text html = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	report_html(&html, &s.in);
	assert_non_null(strstr(text_str(&html), "clock, power and temperature over the case"));
	assert_non_null(strstr(text_str(&html), "--c:var(--s2)\">temperature "));
	text_release(&html);
	sample_release(&s);
}

static void test_report__a_judged_row_says_passed_and_counts_are_exact(void **state)
{
	struct text csv = {0}, json = {0};
	const char *row, *end;
	struct sample s;

	(void)state;
	sample_load(&s, "h200");
	report_csv(&csv, &s.in);
	assert_false(report_json(&json, &s.in, NULL));
	row = strstr(text_str(&csv), "\"sustained\",1,\"pass\"");
	assert_non_null(row);
	for (end = row; row > text_str(&csv) && row[-1] != '\n';)
		row--;
	end = strstr(row, "\"passed\"");
	assert_true(end && end < strstr(row, "\r\n"));
	assert_non_null(strstr(text_str(&csv), ",1099511627776,")); /* 2 * 8192^3 */
	assert_non_null(strstr(text_str(&json), "\"flop\": 1099511627776,"));
	text_release(&csv);
	text_release(&json);
	sample_release(&s);
}

static void test_report__judgements_of_another_record_are_refused(void **state)
{
	struct text out = {0};
	struct error err = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "cpu");
	s.judged.count--;
	assert_int_equal(report_json(&out, &s.in, &err), STATUS_BUG);
	report_markdown(&out, &s.in);
	assert_int_equal(out.failed, 1);
	s.judged.count++;
	text_release(&out);
	sample_release(&s);
}

/* Skips case i of the sample for this reason. */
static void skip_case(struct sample *s, size_t i, enum cause cause, const char *reason)
{
	s->judged.of_case[i].verdict = VERDICT_SKIP;
	s->judged.of_case[i].cause = cause;
	text_copy(s->judged.of_case[i].reason, sizeof(s->judged.of_case[i].reason), reason);
}

static void expect_line(const struct sample *s, const char *line, bool there)
{
	struct text out = {0};

	report_markdown(&out, &s->in);
	if (!strstr(text_str(&out), line) == there)
		fail_msg("%s: %s\n%s", there ? "missing" : "not expected", line, text_str(&out));
	text_release(&out);
}

/* Every measuring case; readings pass. Returns how many the report shows: one is aside, for another target.
 */
static size_t skip_all(struct sample *s, const char *format)
{
	char reason[64];
	size_t count = 0;

	for (size_t i = 0; i < s->judged.count; i++) {
		snprintf(reason, sizeof(reason), format, i);
		skip_case(s, i, CAUSE_NO_HARDWARE, reason);
		if (s->record.cases[i].reading) {
			s->judged.of_case[i].verdict = VERDICT_PASS;
			s->judged.of_case[i].cause = CAUSE_NONE;
		} else {
			count++;
		}
	}
	return count - 1;
}

/* What the machine cannot run is one line, with what it lacks and how often; other skips keep theirs. */
static void test_report__what_cannot_run_here_is_one_line(void **state)
{
	char line[160];
	struct sample s;
	size_t n;

	(void)state;
	sample_load(&s, "h200");
	n = skip_all(&s, "no NVIDIA GPU: build one in");
	assert_true(n > 11 && s.record.cases[0].reading && !s.record.cases[3].reading);
	snprintf(line, sizeof(line), "- skip, %zu cases: no NVIDIA GPU: build one in (", n);
	expect_line(&s, line, true); /* one reason alone names its cases */
	expect_line(&s, "this machine cannot run them", false);
	skip_case(&s, 0, CAUSE_UNSUPPORTED, "ecc: no ECC: see the data sheet"); /* a reading names itself */
	skip_case(&s, 3, CAUSE_UNSUPPORTED, "no NVLink");
	skip_case(&s, 4, CAUSE_UNSUPPORTED, "no NVLink");
	skip_case(&s, 5, CAUSE_LIBRARY_MISSING, "libmpi.so is not here");
	snprintf(line, sizeof(line),
		 "- skip, %zu cases: this machine cannot run them (no ECC: 1; no NVIDIA GPU: %zu; no NVLink: "
		 "2)\n",
		 n, n - 3);
	expect_line(&s, line, true);
	expect_line(&s, "- skip, 1 case: libmpi.so is not here (", true);
	n = skip_all(&s, "lacks part %zu"); /* more reasons than the line names */
	snprintf(line, sizeof(line), "; other reasons: %zu)\n", n - 8);
	expect_line(&s, line, true);
	sample_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report__renderings_equal_what_is_committed),
		cmocka_unit_test(test_report__the_same_input_gives_the_same_bytes),
		cmocka_unit_test(test_report__no_number_that_is_not_finite_is_printed),
		cmocka_unit_test(test_report__a_clock_of_after_the_window_is_not_shown_as_held),
		cmocka_unit_test(test_report__one_line_of_many_residuals_tells_their_range),
		cmocka_unit_test(test_report__foreign_text_stays_text),
		cmocka_unit_test(test_report__the_page_asks_for_nothing_from_elsewhere),
		cmocka_unit_test(test_report__names_are_replaced_unless_asked_for),
		cmocka_unit_test(test_report__lines_fit_the_terminal),
		cmocka_unit_test(test_report__a_reason_is_said_once_whatever_its_numbers),
		cmocka_unit_test(test_report__a_narrow_terminal_cuts_no_title_and_names_what_it_leaves_out),
		cmocka_unit_test(test_report__a_title_does_not_wrap_at_100_columns),
		cmocka_unit_test(test_report__a_long_title_has_a_line_of_its_own),
		cmocka_unit_test(test_report__columns_are_selected),
		cmocka_unit_test(test_report__every_case_has_one_place),
		cmocka_unit_test(test_report__a_ticket_is_for_what_failed_or_for_hardware),
		cmocka_unit_test(test_report__a_share_above_its_bound_has_its_reason),
		cmocka_unit_test(test_report__the_trace_has_clock_power_and_temperature),
		cmocka_unit_test(test_report__a_judged_row_says_passed_and_counts_are_exact),
		cmocka_unit_test(test_report__what_cannot_run_here_is_one_line),
		cmocka_unit_test(test_report__judgements_of_another_record_are_refused),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
