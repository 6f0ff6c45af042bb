/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/attention.h"
#include <math.h>
#include <stdlib.h>
#include "report/text/format.h"

/* Published times of PyTorch's FlashAttention-2 on one H100: batch 16, 512 x 512, head dimension 64, FP16, no
 * mask. Source: docs/explanation/methods/gpu-compute.md, "Attention". */
static const struct {
	const char *heads;
	double published; /* microseconds per head */
} published[] = {{"8", 4.589}, {"16", 4.361}, {"32", 4.104}, {"64", 3.882}, {"96", 3.846}, {"128", 4.017}};
#define PASS_MARK 5.0 /* microseconds per head; the limit in expectations/bands/attention.yaml */

struct columns { /* columns for which some row has a value */
	bool published, library, dense;
};

static double number(const struct record_phase *p, const char *field)
{
	double value;

	return p && record_number(p, field, &value) ? value : (double)NAN;
}

static double once(const struct view_row *row, const char *field)
{
	return number(record_phase(row->c, "once"), field);
}

static double time_of(const struct view_row *row)
{
	return number(row->phase, "time_ns_mean");
}

static bool fits(const struct view_row *row)
{
	return !strcmp(row->c->probe, "attention") && !row->aside && !row->j->superseded && time_of(row) > 0;
}

static const char *option(const struct view_row *row, const char *name, const char *fallback)
{
	const char *text = record_option(row->c, name);

	return text && *text ? text : fallback;
}

static bool option_is(const struct view_row *row, const char *name, const char *value)
{
	return !strcmp(option(row, name, value), value);
}

static double heads_of(const struct view_row *row)
{
	double heads = strtod(option(row, "heads", "0"), NULL);

	return heads >= 1 ? heads : (double)NAN;
}

/* The published figure of this shape; NaN: none. */
static double published_of(const struct view_row *row)
{
	static const char *const shape[][2] = {
		{"pass", "forward"}, {"type", "fp16"},	{"batch", "16"},    {"seq", "512"},
		{"kv_seq", "0"},     {"kv_heads", "0"}, {"head_dim", "64"}, {"mask", "none"},
		{"pattern", "none"}, {"lengths", ""},
	};

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
		if (!option_is(row, shape[i][0], shape[i][1]))
			return (double)NAN;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		if (option_is(row, "heads", published[i].heads))
			return published[i].published;
	return (double)NAN;
}

/* True for the same options on the same target. `dense`: ignore the options of block lists, the last six. */
static bool same_problem(const struct view_row *a, const struct view_row *b, bool dense)
{
	static const char *const names[] = {"pass",	"type",	    "out",     "batch",	  "heads",
					    "kv_heads", "seq",	    "kv_seq",  "mask",	  "left",
					    "right",	"head_dim", "lengths", "data",	  "pattern",
					    "density",	"file",	    "block_q", "block_k", "seed"};
	size_t count = sizeof(names) / sizeof(names[0]) - (dense ? 6 : 0);

	for (size_t i = 0; i < count; i++)
		if (strcmp(option(a, names[i], ""), option(b, names[i], "")) != 0)
			return false;
	return !strcmp(a->c->target, b->c->target) && a->c->node == b->c->node;
}

static bool block_sparse(const struct view_row *row)
{
	return !option_is(row, "pattern", "none");
}

/* The row of the same problem by cuDNN; NULL: none in this run, or the row is by cuDNN itself. */
static const struct view_row *library_of(const struct view *v, const struct view_row *row)
{
	for (size_t i = 0; strcmp(row->c->engine, "cudnn") != 0 && i < v->row_count; i++)
		if (fits(&v->rows[i]) && !strcmp(v->rows[i].c->engine, "cudnn") &&
		    same_problem(&v->rows[i], row, false))
			return &v->rows[i];
	return NULL;
}

/* For a block-sparse row: the dense case by assay's own code on the same device; NULL: none. */
static const struct view_row *dense_of(const struct view *v, const struct view_row *row)
{
	const char *engine = !strcmp(row->c->engine, "cpu") ? "cpu" : "own";

	for (size_t i = 0; block_sparse(row) && i < v->row_count; i++)
		if (fits(&v->rows[i]) && !strcmp(v->rows[i].c->engine, engine) &&
		    !block_sparse(&v->rows[i]) && same_problem(&v->rows[i], row, true))
			return &v->rows[i];
	return NULL;
}

static struct columns columns_of(const struct view *v)
{
	struct columns c = {false};

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];

		if (!fits(row))
			continue;
		c.published |= published_of(row) > 0;
		c.library |= library_of(v, row) != NULL;
		c.dense |= block_sparse(row);
	}
	return c;
}

static void add_number(struct grid *g, const char *format, double value)
{
	char one[48] = FORMAT_NONE;

	if (isfinite(value))
		snprintf(one, sizeof(one), format, value);
	grid_cell(g, one);
}

/* Adds the cell "cuDNN 9.19.0, composite engine4". */
static void add_kernel(struct grid *g, const struct view_row *row)
{
	const struct record_phase *p = record_phase(row->c, "once");
	const char *library = p ? record_text(p, "library") : NULL,
		   *kernel = p ? record_text(p, "kernel") : NULL;
	const char *end = library ? strchr(library, ' ') : NULL;
	struct text t = {0};

	end = end ? strchr(end + 1, ' ') : NULL;
	if (library)
		text_addf(&t, "%.*s%s", end ? (int)(end - library) : (int)strlen(library), library,
			  kernel ? ", " : "");
	text_add(&t, kernel ? kernel : library ? "" : FORMAT_NONE);
	grid_cell(g, text_str(&t));
	text_release(&t);
}

static void add_sparse(struct grid *g, const struct view *v, const struct view_row *row)
{
	const struct view_row *dense = dense_of(v, row);
	double share = once(row, "pairs_share");
	char one[48];

	format_share(one, sizeof(one), share);
	grid_cell(g, one);
	add_number(g, "%.2f", dense ? time_of(dense) / time_of(row) : (double)NAN);
	add_number(g, "%.2f", share > 0 && block_sparse(row) ? 1 / share : (double)NAN);
	format_quantity(one, sizeof(one), once(row, "blocks_build_s"), 0, "s");
	grid_cell(g, one);
}

static void add_row(struct grid *g, const struct view *v, const struct view_row *row, const struct columns *c)
{
	const struct view_row *library = library_of(v, row);
	char one[48];

	grid_cell(g, row->title);
	add_kernel(g, row);
	add_number(g, "%.1f", time_of(row) * 1e-3);
	add_number(g, "%.3f", time_of(row) * 1e-3 / heads_of(row));
	if (c->published)
		add_number(g, "%.3f", published_of(row));
	format_quantity(one, sizeof(one), number(row->phase, "flop_rate"), 0, "FLOPS");
	grid_cell(g, one);
	if (c->library)
		add_number(g, "%.3f", library ? time_of(row) / time_of(library) : (double)NAN);
	if (c->dense)
		add_sparse(g, v, row);
	add_number(g, "%.1e", once(row, "error_rms"));
	if (c->library)
		add_number(g, "%.2f",
			   row->j->error_over_library > 0 ? row->j->error_over_library : (double)NAN);
}

static void add_note(struct grid *g, const struct columns *c)
{
	text_add(
		&g->note,
		"FLOP count: 4 times the head dimension per unmasked pair of query and key, backward 10 times. Error: root mean square against double precision, over sampled rows (backward: over whole heads)");
	if (c->library)
		text_add(
			&g->note,
			". Time / cuDNN: the time divided by cuDNN's for the same problem in this run, without interleaving. Error / cuDNN: up to 1.2 is rounding");
	if (c->dense)
		text_add(
			&g->note,
			". Kept: share of the pairs that are computed. Gain: the dense case's time divided by this time, ideally 1 / kept. The time excludes building the block lists");
	if (c->published)
		text_addf(
			&g->note,
			". Published: PyTorch's FlashAttention-2 on one H100. The limit for a pass is %.0f us per head",
			PASS_MARK);
}

bool attention_grid(struct grid *g, const struct view *v)
{
	struct columns c = columns_of(v);
	size_t rows = 0;

	for (size_t i = 0; i < v->row_count; i++) {
		if (!fits(&v->rows[i]))
			continue;
		if (!rows++) {
			text_add(&g->title, "Attention");
			grid_column(g, "case", false);
			grid_column(g, "kernel", false);
			grid_column(g, "time, us", true);
			grid_column(g, "us per head", true);
			if (c.published)
				grid_column(g, "published", true);
			grid_column(g, "rate", true);
			if (c.library)
				grid_column(g, "time / cuDNN", true);
			if (c.dense) {
				grid_column(g, "kept", true);
				grid_column(g, "gain", true);
				grid_column(g, "ideal", true);
				grid_column(g, "list time", true);
			}
			grid_column(g, "error", true);
			if (c.library)
				grid_column(g, "error / cuDNN", true);
		}
		add_row(g, v, &v->rows[i], &c);
	}
	if (rows)
		add_note(g, &c);
	return rows;
}

static json_t *row_json(struct json_build *b, const struct view_row *row)
{
	const struct view_row *library = library_of(b->v, row), *dense = dense_of(b->v, row);
	json_t *object = json_object();

	json_put_count(b, object, "case", row->c->id);
	json_put_text(b, object, "title", row->title);
	json_put_text(b, object, "engine", row->c->engine);
	json_put_number(b, object, "time_ns", time_of(row));
	json_put_number(b, object, "time_ns_a_head", time_of(row) / heads_of(row));
	json_put_number(b, object, "published_ns_a_head", published_of(row) * 1e3);
	json_put_number(b, object, "flop_rate", number(row->phase, "flop_rate"));
	if (library) {
		json_put_count(b, object, "library_case", library->c->id);
		json_put_number(b, object, "time_over_library", time_of(row) / time_of(library));
	}
	if (row->j->error_over_library > 0)
		json_put_number(b, object, "error_over_library", row->j->error_over_library);
	json_put_number(b, object, "error_rms", once(row, "error_rms"));
	if (block_sparse(row))
		json_put_number(b, object, "pairs_share", once(row, "pairs_share"));
	if (dense) {
		json_put_count(b, object, "dense_case", dense->c->id);
		json_put_number(b, object, "gain_over_dense", time_of(dense) / time_of(row));
	}
	return object;
}

json_t *attention_json(struct json_build *b)
{
	json_t *array = json_array();

	for (size_t i = 0; i < b->v->row_count; i++)
		if (fits(&b->v->rows[i]))
			json_push(b, array, row_json(b, &b->v->rows[i]));
	return array;
}
