/* SPDX-License-Identifier: Apache-2.0 */
#include "report/training.h"
#include <math.h>
#include "report/words.h"

#define SOURCE "train" /* of telemetry: what the job said of itself */
enum { ROWS = 16 };

static const struct record_case *find_training(const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].c->job && !strcmp(v->rows[i].c->probe, "train"))
			return v->rows[i].c;
	return NULL;
}

static const char *text_of(const json_t *field, const char *name)
{
	const char *text = json_string_value(json_object_get(field, name));

	return text ? text : "";
}

static void value_text(char *out, size_t size, const char *name, const char *unit, double value)
{
	size_t length = strlen(name);

	if ((length > 6 && !strcmp(name + length - 6, "_share")) || !strcmp(name, "mfu"))
		words_share(out, size, value);
	else if (*unit)
		words_quantity(out, size, value, 0, unit);
	else
		snprintf(out, size, "%.6g", value);
}

bool training_grid(struct grid *g, const struct view *v)
{
	const struct record_case *c = find_training(v);
	const struct record_phase *p = c ? record_phase(c, "once") : NULL;
	const json_t *field;
	size_t i;

	if (!p || !p->values)
		return false;
	text_add(&g->title, "Training");
	grid_column(g, "", false);
	grid_column(g, "value", true);
	grid_column(g, "what", false);
	json_array_foreach(json_object_get(json_object_get(v->in->record->plan, "fields"), "train"), i, field)
	{
		double value;
		char text[48];

		if (!record_number(p, text_of(field, "name"), &value))
			continue;
		value_text(text, sizeof(text), text_of(field, "name"), text_of(field, "unit"), value);
		grid_cell(g, text_of(field, "name"));
		grid_cell(g, text);
		grid_cell(g, text_of(field, "help"));
	}
	return true;
}

/* The reading that was taken at that moment; NAN: none. */
static double reading_at(const struct series *s, uint64_t t_ns)
{
	size_t at = s ? series_lower_bound(s, t_ns) : 0;

	return s && at < s->count && s->t_ns[at] == t_ns ? s->value[at] : (double)NAN;
}

/* Readings of `steps` that count, latest first: their indices in *kept (room for all). A line of an
 * evaluation has a step too, and belongs to the step of that number. */
static size_t pick_steps(const struct series *steps, const struct series *loss, size_t *kept)
{
	double last = INFINITY;
	size_t count = 0;

	for (size_t i = steps->count; i-- > 0;)
		if (steps->value[i] < last && !isnan(reading_at(loss, steps->t_ns[i]))) {
			last = steps->value[i];
			kept[count++] = i;
		}
	return count;
}

/* The held-out loss of that step, as it was evaluated last. */
static double evaluated(const struct series *steps, const struct series *eval, double step)
{
	for (size_t i = eval ? eval->count : 0; i-- > 0;)
		if (reading_at(steps, eval->t_ns[i]) == step)
			return eval->value[i];
	return (double)NAN;
}

static void add_number(struct grid *g, const char *format, double value)
{
	char text[48] = WORDS_NONE;

	if (!isnan(value))
		snprintf(text, sizeof(text), format, value);
	grid_cell(g, text);
}

static void add_step(struct grid *g, const struct record *r, const struct series *steps, size_t at)
{
	uint64_t t_ns = steps->t_ns[at];

	add_number(g, "%.0f", steps->value[at]);
	add_number(g, "%.4f", reading_at(record_series(r, SOURCE, "loss"), t_ns));
	add_number(g, "%.4f", evaluated(steps, record_series(r, SOURCE, "eval_loss"), steps->value[at]));
	add_number(g, "%.3e", reading_at(record_series(r, SOURCE, "learning_rate"), t_ns));
	add_number(g, "%.3g", reading_at(record_series(r, SOURCE, "grad_norm"), t_ns));
	add_number(g, "%.0f", reading_at(record_series(r, SOURCE, "tokens_per_s"), t_ns));
}

bool training_steps_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"step",	     "loss",	 "held-out",
					    "learning rate", "gradient", "tokens/s"};
	const struct record *r = v->in->record;
	const struct series *steps = record_series(r, SOURCE, "step"),
			    *loss = record_series(r, SOURCE, "loss");
	size_t *kept = steps && loss ? calloc(steps->count + 1, sizeof(*kept)) : NULL, count, stride;

	if (!kept || !find_training(v)) {
		free(kept);
		return false;
	}
	count = pick_steps(steps, loss, kept);
	stride = (count + ROWS - 1) / ROWS;
	text_add(&g->title, "Steps");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = count; i-- > 0;) /* the last one is always among them */
		if (i % stride == 0)
			add_step(g, r, steps, kept[i]);
	free(kept);
	return count > 0;
}
