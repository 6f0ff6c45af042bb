/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/advice/blas_kernels.h"
#include <ctype.h>
#include "core/text/text.h"
#include "core/text/units.h"
#include "judge/advice/advice.h"
#include "judge/case/verdict.h"

void blas_retry_named(const struct subject *s, char *out, size_t size)
{
	const char *name = strcmp(s->c->probe, "gemm") ? NULL : case_text(s->c, "kernels");

	*out = '\0';
	if (name && *name)
		snprintf(out, size, "; kernels %.31s", name);
}

/* Share of the ceiling in interleaved measurements, scaled as the ceiling's row says. */
static bool share_of(const struct subject *s, const struct ceiling_row *row, struct interleaved_ratio *t)
{
	if (!case_right(s->c) || !s->has_figure || !bound_interleaved(s, t))
		return false;
	t->ratio /= row->traffic;
	t->low /= row->traffic;
	t->high /= row->traffic;
	return true;
}

/* Applies however the case ended: a crash or a wrong result with other kernels does not count against the
 * first case. */
bool blas_retry_case(struct judgement *out, const struct subject *s)
{
	const struct ceiling_row *row = expect_ceiling(s->ctx->e, subject_word, s);
	const char *tries = record_tries(s->c);
	char figure[32], share[48] = "", kernels[48];
	struct interleaved_ratio t;
	int first;

	if (!tries)
		return false;
	first = (int)json_integer_value(json_object_get(json_object_get(s->c->plan, "follows"), "case"));
	if (!case_right(s->c) || !s->has_figure) {
		finding(out, VERDICT_MEASURED, CAUSE_NONE,
			"case %d again with %.80s: no usable result: %.100s", first, tries,
			*s->c->text ? s->c->text : ending_text(s->c->ending));
		return true;
	}
	/* The attempt has the key of the low case, so it gets no figure of its own, and nobody can confuse
	 * the two. */
	units_format(figure, sizeof(figure), s->figure, s->unit);
	if (row && share_of(s, row, &t))
		snprintf(share, sizeof(share), ", %.2f of this machine's own ceiling", t.ratio);
	blas_retry_named(s, kernels, sizeof(kernels));
	finding(out, VERDICT_MEASURED, CAUSE_NONE, "case %d again with %.120s: %s%s%s", first, tries, figure,
		share, kernels);
	return true;
}

/* The id of the case that it repeats, else its own. */
static json_int_t first_of(const struct record_case *c)
{
	const json_t *again = json_object_get(c->plan, "again");

	return json_is_integer(again) ? json_integer_value(again) : (json_int_t)c->id;
}

struct best {
	const struct record_case *c; /* NULL: no attempt has a usable figure */
	struct interleaved_ratio t;
	char tried[160]; /* "OPENBLAS_CORETYPE=SkylakeX 0.45, onednn 0.41" */
};

static void find_best(struct best *out, const struct subject *s, const struct ceiling_row *row)
{
	const struct record *r = s->ctx->record;
	size_t used = 0;

	*out = (struct best){0};
	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		const json_t *follows = json_object_get(c->plan, "follows");
		struct subject other;
		struct interleaved_ratio t;

		if (!record_tries(c) || c->node != s->c->node ||
		    json_integer_value(json_object_get(follows, "case")) != first_of(s->c))
			continue;
		subject_of(&other, s->ctx, c);
		if (!share_of(&other, row, &t) || t.low > row->above)
			continue;
		if (used < sizeof(out->tried))
			used += (size_t)snprintf(out->tried + used, sizeof(out->tried) - used, "%s%.80s %.2f",
						 used ? ", " : "", record_tries(c), t.ratio);
		if (!out->c || t.ratio > out->t.ratio) {
			out->c = c;
			out->t = t;
		}
	}
}

/* ---- the command ---- */

static void add_word(struct text *out, const char *word)
{
	bool plain = *word;

	for (const char *p = word; *p; p++)
		plain = plain && (isalnum((unsigned char)*p) || strchr("-_=+,.:/@%", *p));
	if (out->size)
		text_add(out, " ");
	if (plain) {
		text_add(out, word);
		return;
	}
	text_add(out, "'");
	for (const char *p = word; *p; p++)
		text_addf(out, *p == '\'' ? "'\\''" : "%c", iscntrl((unsigned char)*p) ? '?' : *p);
	text_add(out, "'");
}

/* Adds the run's own command, except for --out, because that directory already exists. */
static void add_command(struct text *out, const struct record *r)
{
	const json_t *command = json_object_get(r->open, "command"), *word;
	size_t i;

	add_word(out, "assay");
	json_array_foreach((json_t *)command, i, word)
	{
		const char *text = json_string_value(word);

		if (!i || !text || !strncmp(text, "--out=", 6))
			continue;
		if (!strcmp(text, "--out"))
			i++;
		else
			add_word(out, text);
	}
}

static void add_probe(struct text *out, const struct record_case *c)
{
	static const char *const options[] = {"type", "m", "n", "k", "ta", "tb", "batch"};

	text_addf(out, "assay probe %s --engine %s", c->probe, c->engine);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *value = record_option(c, options[i]);

		if (value && strcmp(value, "n") && (i < 4 || strcmp(value, "1")))
			text_addf(out, " %s=%s", options[i], value);
	}
}

/* Writes the command to type; "" if there was no memory for it. */
static void command_of(const struct record *r, const struct best *b, char *out, size_t size)
{
	const char *tries = record_tries(b->c), *value = strchr(tries, '=');
	struct text t = {0};

	if (value) {
		struct text quoted = {0};

		add_word(&quoted, value + 1);
		text_addf(&t, "%.*s%s", (int)(value + 1 - tries), tries, text_str(&quoted));
		text_release(&quoted);
		add_command(&t, r);
	} else {
		add_probe(&t, b->c);
	}
	text_copy(out, size, t.failed ? "" : text_str(&t));
	text_release(&t);
}

/* ---- the low case ---- */

/* True if the ceiling made the case low, and no finding weighs more. */
static bool is_low(const struct judgement *j, const struct ceiling_row *row,
		   const struct interleaved_ratio *t)
{
	if (j->judged_by != JUDGED_CEILING || !(t->ratio < row->pass))
		return false;
	if (j->cause == CAUSE_BELOW_CEILING)
		return j->verdict == VERDICT_FAIL || j->verdict == VERDICT_WARN;
	return j->verdict == VERDICT_UNTRUSTED && j->cause == CAUSE_WIDE_SPREAD && t->ratio < row->fail &&
	       t->high >= row->fail;
}

static void list_tried(struct judgement *out, const struct best *b)
{
	size_t used = strlen(out->reason);

	if (*b->tried)
		snprintf(out->reason + used, sizeof(out->reason) - used, "; also tried: %s", b->tried);
}

/* Finds the attempts for a case that its ceiling found low, and the best of them. False: there are no
 * attempts for this case. */
static bool look(const struct subject *s, const struct ceiling_row **row, struct interleaved_ratio *t,
		 struct best *b)
{
	if (s->gpu || s->c->reading || record_is_isolation(s->c))
		return false;
	*row = expect_ceiling(s->ctx->e, subject_word, s);
	if (!*row || !share_of(s, *row, t))
		return false;
	find_best(b, s, *row);
	return true;
}

void blas_retry_explain(struct judgement *out, const struct subject *s)
{
	const struct ceiling_row *row;
	char kernels[48];
	struct interleaved_ratio t;
	struct best b;

	if (!look(s, &row, &t, &b) || !is_low(out, row, &t))
		return;
	/* The machine is judged by its best kernels, so the failure only stays if they are below the
	 * ceiling's fail mark too. The interval must be better as well, since one lucky measurement does not
	 * show that the kernels differ. */
	if (!b.c || b.t.ratio < row->fail || b.t.low <= t.ratio) {
		list_tried(out, &b);
		return;
	}
	blas_retry_named(s, kernels, sizeof(kernels));
	out->verdict = VERDICT_WARN;
	out->cause = CAUSE_BLAS_KERNEL;
	snprintf(out->reason, sizeof(out->reason),
		 "%.2f of this machine's own ceiling%s; with %.100s it reaches %.2f, x %.1f%s", t.ratio,
		 kernels, record_tries(b.c), b.t.ratio, b.t.ratio / t.ratio,
		 b.t.ratio < row->pass ? ", which is still low" : "");
}

void blas_retry_advise(struct judgement *out, const struct subject *s)
{
	char command[sizeof(((struct advice *)0)->knob)];
	const struct ceiling_row *row;
	struct advice *a;
	struct interleaved_ratio t;
	struct best b;

	if (out->cause != CAUSE_BLAS_KERNEL || !look(s, &row, &t, &b) || !b.c)
		return;
	command_of(s->ctx->record, &b, command, sizeof(command));
	a = advice_add(out, command, "with %.80s the same GEMM reaches %.2f of the ceiling instead of %.2f",
		       record_tries(b.c), b.t.ratio, t.ratio);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "x %.1f", b.t.ratio / t.ratio);
}
