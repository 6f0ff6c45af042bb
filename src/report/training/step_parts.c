/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a training step by kind of operation if these were timed, else by phase. */
#include <math.h>
#include "judge/gap/training_step.h"
#include "report/training/training.h"
#include "report/text/format.h"

static const struct {
	const char *name, *what;
} whats[] = {
	{"products", "GEMMs"},
	{"thin_products", "GEMMs with a dimension below 512 (adapters)"},
	{"attention", "attention, forward"},
	{"attention_backward", "attention, backward"},
	{"elements", "norms, RoPE, SwiGLU, dropout"},
	{"loss", "embedding, output head, cross-entropy"},
	{"optimiser", "gradient norm, AdamW, copies of the weights"},
	{"copies", "copies and zero fills"},
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

/* Adds a row of which only the time is known. */
static void add_seconds(struct grid *g, const struct training_step *t, const char *name, double s,
			const char *what)
{
	struct training_part p = {.s = s};

	snprintf(p.name, sizeof(p.name), "%s", name);
	add_row(g, t, &p, what);
}

static void add_phase(struct grid *g, const struct record *r, const struct training_step *t,
		      const char *signal, const char *name, const char *what)
{
	const double s = training_reading(record_series(r, "train", signal), t->t_ns);

	if (isfinite(s))
		add_seconds(g, t, name, s, what);
}

static void add_kinds(struct grid *g, const struct record *r, const struct training_step *t)
{
	for (size_t i = 0; i < t->part_count; i++)
		add_row(g, t, &t->part[i], what_of(t->part[i].name));
	if (t->part_count)
		return;
	add_phase(g, r, t, "forward_s", "forward", "forward passes");
	add_phase(g, r, t, "backward_s", "backward", "backward passes, including head and loss");
	add_phase(g, r, t, "optimiser_s", "optimizer", "clipping and AdamW");
	add_phase(g, r, t, "comm_s", "communication",
		  "several ranks: waiting for collectives and slower ranks");
}

static void add_note(struct text *out, const struct training_step *t, bool on_cpu)
{
	char one[48];

	text_addf(out, "The step of median length out of %zu", t->steps);
	if (t->gemm_rate > 0) {
		format_quantity(one, sizeof(one), t->gemm_rate, 0, "FLOPS");
		text_addf(out,
			  ". Of GEMM rate: share of the %s that a large GEMM reached before the first step",
			  one);
	}
	for (size_t i = 0; i < t->part_count; i++)
		if (t->part[i].bytes > 0) {
			text_add(out, ". Bytes: every operand counts once");
			break;
		}
	if (t->part_count)
		text_add(out, ". A gap between kernels counts towards the kernel before it");
	else if (on_cpu)
		text_add(out, ". Kinds of operation are timed only on a GPU");
	else
		text_add(out, ". The setting training: step_parts: true times each kind of operation");
}

bool training_parts_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"", "time", "share", "rate", "of GEMM rate"};
	const struct record *r = v->in->record;
	const struct record_case *c = training_case(v);
	const struct record_phase *ready = c ? record_phase(c, "load") : NULL;
	const char *device = ready ? record_text(ready, "device") : NULL;
	struct training_step t;
	double inside;

	if (!c || !training_step_of(&t, r) || !(t.step_s > 0))
		return false;
	inside = t.part_count ? t.parts_s : t.phases_s + t.comm_s;
	text_add(&g->title, "Parts of a step");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], i > 0);
	grid_column(g, "what", false);
	add_kinds(g, r, &t);
	add_seconds(g, &t, "host", t.step_s - inside,
		    "all other time: data rows, launches before the first kernel, the end of a checkpoint");
	add_seconds(g, &t, "step", t.step_s, "");
	add_note(&g->note, &t, device && !strcmp(device, "cpu"));
	return true;
}
