/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's time went into, by kind of operation where these were timed, else by phase. */
#include <math.h>
#include "judge/gap/training_step.h"
#include "report/training/training.h"
#include "report/text/format.h"

static const struct {
	const char *name, *what;
} whats[] = {
	{"products", "products of matrices"},
	{"thin_products", "those with a side below 512: adapters'"},
	{"attention", "attention, forward"},
	{"attention_backward", "attention, backward"},
	{"elements", "norms, RoPE, SwiGLU, dropout"},
	{"loss", "embedding, rows of the head, cross-entropy"},
	{"optimiser", "norm, AdamW, live copies"},
	{"copies", "copies and zeros"},
};

static const char *what_of(const char *name)
{
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(whats[i].name, name))
			return whats[i].what;
	return "";
}

static void add_row(struct grid *g, const struct training_step *t, const struct training_part *p,
		    const char *what)
{
	const double flop_rate = p->flop > 0 && p->s > 0 ? p->flop / p->s : (double)NAN;
	const double byte_rate = p->bytes > 0 && p->s > 0 ? p->bytes / p->s : (double)NAN;
	char one[48];

	grid_cell(g, p->name);
	snprintf(one, sizeof(one), "%.2f ms", p->s * 1e3);
	grid_cell(g, one);
	format_share(one, sizeof(one), p->s / t->step_s);
	grid_cell(g, one);
	if (isfinite(byte_rate))
		format_quantity(one, sizeof(one), byte_rate, 0, "B/s");
	else
		format_quantity(one, sizeof(one), flop_rate, 0, "FLOPS");
	grid_cell(g, one);
	format_share(one, sizeof(one), t->gemm_rate > 0 ? flop_rate / t->gemm_rate : (double)NAN);
	grid_cell(g, one);
	grid_cell(g, what);
}

/* Of what has seconds alone. */
static void add_seconds(struct grid *g, const struct training_step *t, const char *name, double s,
			const char *what)
{
	struct training_part p = {.s = s};

	snprintf(p.name, sizeof(p.name), "%s", name);
	add_row(g, t, &p, what);
}

static void add_phase(struct grid *g, const struct record *r, const struct training_step *t, const char *name,
		      const char *what)
{
	char signal[32];
	double s;

	snprintf(signal, sizeof(signal), "%s_s", name);
	s = training_reading(record_series(r, "train", signal), t->t_ns);
	if (isfinite(s))
		add_seconds(g, t, name, s, what);
}

static void add_kinds(struct grid *g, const struct record *r, const struct training_step *t)
{
	for (size_t i = 0; i < t->part_count; i++)
		add_row(g, t, &t->part[i], what_of(t->part[i].name));
	if (t->part_count)
		return;
	add_phase(g, r, t, "forward", "forward passes");
	add_phase(g, r, t, "backward", "backward passes, head and loss among them");
	add_phase(g, r, t, "optimiser", "clipping and AdamW");
}

static void add_note(struct text *out, const struct training_step *t, bool on_cpu)
{
	char one[48];

	text_addf(out, "the step of median length, of %zu", t->steps);
	if (t->gemm_rate > 0) {
		format_quantity(one, sizeof(one), t->gemm_rate, 0, "FLOPS");
		text_addf(out, "; of products: of the %s that a large product reached before the first step",
			  one);
	}
	for (size_t i = 0; i < t->part_count; i++)
		if (t->part[i].bytes > 0) {
			text_add(out, "; bytes: each operand once");
			break;
		}
	if (t->part_count)
		text_add(out, "; a gap between kernels counts to what came before it");
	else if (on_cpu)
		text_add(out, "; kinds of operations are timed on a GPU alone");
	else
		text_add(out, "; training: step_parts: true times each kind of operation");
}

bool training_parts_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"", "a step", "share", "rate", "of products"};
	const struct record *r = v->in->record;
	const struct record_case *c = training_case(v);
	const struct record_phase *ready = c ? record_phase(c, "load") : NULL;
	const char *device = ready ? record_text(ready, "device") : NULL;
	struct training_step t;
	double inside;

	if (!c || !training_step_of(&t, r) || !(t.step_s > 0))
		return false;
	inside = t.part_count ? t.parts_s : t.phases_s;
	text_add(&g->title, "Parts of a step");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], i > 0);
	grid_column(g, "what", false);
	add_kinds(g, r, &t);
	add_seconds(g, &t, "host", t.step_s - inside,
		    "outside these: rows, launches before the first kernel, a checkpoint's end");
	add_seconds(g, &t, "step", t.step_s, "");
	add_note(&g->note, &t, device && !strcmp(device, "cpu"));
	return true;
}
