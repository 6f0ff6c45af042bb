/* SPDX-License-Identifier: Apache-2.0 */
#include "report/training/training.h"
#include <math.h>
#include "core/json/member.h"
#include "journal/field.h"
#include "journal/record/job_ranks.h"
#include "judge/gap/training_step.h"
#include "report/text/format.h"

#define SOURCE "train" /* the telemetry source of values that the job reports */
enum { ROWS = 16, EVALUATIONS = 48, TEXT_MOST = 38 };

const struct record_case *training_case(const struct view *v)
{
	for (size_t i = 0; i < v->row_count; i++)
		if (v->rows[i].c->job && !strcmp(v->rows[i].c->probe, "train"))
			return v->rows[i].c;
	return NULL;
}

static void value_text(char *out, size_t size, const char *name, const char *unit, double value)
{
	size_t length = strlen(name);

	if ((length > 6 && !strcmp(name + length - 6, "_share")) || !strcmp(name, "mfu"))
		format_share(out, size, value);
	else if (*unit)
		format_quantity(out, size, value, 0, unit);
	else
		snprintf(out, size, "%.6g", value);
}

static void add_value(struct grid *g, const struct record_phase *p, const char *name, const char *unit,
		      const char *help)
{
	double value;
	char text[48];

	if (!record_number(p, name, &value))
		return;
	value_text(text, sizeof(text), name, unit, value);
	grid_cell(g, name);
	grid_cell(g, text);
	grid_cell(g, help);
}

/* For a run without a steady step: adds a row that says why there is no rate. */
static void add_no_rate(struct grid *g, const struct record_phase *p)
{
	double steady;

	if (!record_number(p, "steady_steps", &steady) || steady > 0)
		return;
	grid_cell(g, "tokens_per_s");
	grid_cell(g, FORMAT_NONE);
	grid_cell(g, "the run is too short: it has no step after start-up and tuning");
}

/* Energy of the steady steps, summed over the GPUs of all ranks. */
struct energy_sum {
	bool any; /* a rank has a reading */
	unsigned ranks;
	double watts, joules;
	char why[320]; /* the rank without a reading, and the reason; "": the sums are those of all ranks */
};

static void add_rank(struct energy_sum *sum, const struct record_phase *once, const char *name,
		     const char *why)
{
	double watts = 0, joules = 0;
	const bool known = record_number(once, field_power_w.name, &watts) &&
			   record_number(once, field_energy_j.name, &joules);

	sum->any = sum->any || known;
	sum->watts += watts;
	sum->joules += joules;
	if (!known && !sum->why[0])
		snprintf(sum->why, sizeof(sum->why), "not known: %s: %s", name,
			 *why ? why : "no energy of its GPU was recorded");
}

static void sum_energy(struct energy_sum *sum, const struct record *r, const struct record_case *c)
{
	struct job_ranks others;
	struct error err = {0};

	*sum = (struct energy_sum){.ranks = 1};
	if (job_ranks_read(&others, r, c, &err))
		snprintf(sum->why, sizeof(sum->why), "not known: %.300s", err.text);
	add_rank(sum, record_phase(c, "once"), "rank 0", "");
	sum->ranks += others.count;
	for (unsigned i = 0; i < others.count; i++)
		add_rank(sum, others.rank[i].c ? record_phase(others.rank[i].c, "once") : NULL,
			 others.rank[i].name, others.rank[i].why);
	job_ranks_release(&others);
}

static void add_energy_row(struct grid *g, const struct energy_sum *sum, const char *name, double joules,
			   const char *help)
{
	char text[48] = FORMAT_NONE;

	if (!sum->why[0])
		format_quantity(text, sizeof(text), joules, 0, "J");
	grid_cell(g, name);
	grid_cell(g, text);
	grid_cell(g, sum->why[0] ? sum->why : help);
}

/* The mean power and the rate are both those of the steady steps. */
static void add_energy(struct grid *g, const struct record *r, const struct record_case *c)
{
	const struct record_phase *p = record_phase(c, "once");
	struct energy_sum sum;
	double rate, steady;

	sum_energy(&sum, r, c);
	if (!sum.any)
		return;
	add_energy_row(g, &sum, field_energy_j.name, sum.joules,
		       sum.ranks > 1 ? "energy of the GPUs of all ranks in the steady steps"
				     : field_energy_j.help);
	if (record_number(p, "steady_steps", &steady) && record_number(p, "tokens_per_s", &rate) &&
	    rate > 0 && steady > 0)
		add_energy_row(
			g, &sum, "energy_per_token", sum.watts / rate,
			sum.ranks > 1
				? "mean power of the GPUs of all ranks over tokens per second; assay cost prices it"
				: "mean power over tokens per second; assay cost prices it");
}

/* Adds a text that the job reported when it was ready, such as the device. A long text is cut at a space,
 * because a column is as wide as its longest cell. */
static bool add_text(struct grid *g, const struct record_phase *ready, const char *name, const char *help)
{
	const char *reported = ready ? record_text(ready, name) : NULL;
	char text[TEXT_MOST + 1];
	char *space;

	if (!reported)
		return false;
	snprintf(text, sizeof(text), "%s", reported);
	space = strlen(reported) > TEXT_MOST ? strrchr(text, ' ') : NULL;
	if (space)
		*space = '\0';
	grid_cell(g, name);
	grid_cell(g, text);
	grid_cell(g, help);
	return true;
}

bool training_grid(struct grid *g, const struct view *v)
{
	/* Readings of the GPU during the steps. Clock and power are in the table of figures. */
	static const struct field *const seen[] = {&field_tensor_active_share, &field_sm_active_share,
						   &field_dram_active_share};
	const struct record_case *c = training_case(v);
	const struct record_phase *p = c ? record_phase(c, "once") : NULL;
	const struct record_phase *ready = c ? record_phase(c, "load") : NULL;
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
		if (!add_text(g, ready, json_member_text(field, "name"), json_member_text(field, "help")))
			add_value(g, p, json_member_text(field, "name"), json_member_text(field, "unit"),
				  json_member_text(field, "help"));
	}
	add_no_rate(g, p);
	for (i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		add_value(g, p, seen[i]->name, seen[i]->unit, seen[i]->help);
	add_energy(g, v->in->record, c);
	if (record_text(p, "late_rank"))
		text_addf(&g->note, "The others waited for %s", record_text(p, "late_rank"));
	return true;
}

/* One step: its index in the series and the held-out loss after it. */
struct step {
	double step, eval; /* NAN: not evaluated */
	size_t at;	   /* NO_LINE: only an evaluation was reported */
};
#define NO_LINE SIZE_MAX

/* Writes the steps to `kept`, latest first; `kept` has room for all. If a step was done twice, the later one
 * counts. The line of an evaluation has a step number too and belongs to that step. */
static size_t pick_steps(const struct series *steps, const struct series *loss, const struct series *eval,
			 struct step *kept)
{
	size_t count = 0;

	for (size_t i = steps->count; i-- > 0;) {
		bool reported = !isnan(training_reading(loss, steps->t_ns[i]));
		double evaluated = training_reading(eval, steps->t_ns[i]), number = steps->value[i];
		struct step *last = count ? &kept[count - 1] : NULL;

		if ((!reported && isnan(evaluated)) || (last && number > last->step))
			continue;
		if (!last || number < last->step)
			kept[count++] = (struct step){number, evaluated, reported ? i : NO_LINE};
		else if (reported && last->at == NO_LINE)
			last->at = i;
	}
	return count;
}

/* Keeps at most ROWS steps and EVALUATIONS evaluated steps at regular distances, counted from the last one,
 * and the best evaluation. */
static void thin_out(struct step *kept, size_t *count)
{
	size_t evaluated = 0, best = 0, steps = 0, evals = 0, left = 0, every, every_eval;

	for (size_t i = 0; i < *count; i++) {
		evaluated += !isnan(kept[i].eval);
		if (kept[i].step > 0 && (isnan(kept[best].eval) || kept[i].eval <= kept[best].eval))
			best = i;
	}
	every = (*count - evaluated + ROWS - 1) / ROWS;
	every_eval = (evaluated + EVALUATIONS - 1) / EVALUATIONS;
	for (size_t i = 0; i < *count; i++) {
		bool stays = isnan(kept[i].eval) ? steps++ % every == 0 : evals++ % every_eval == 0;

		if (stays || i == best || !i)
			kept[left++] = kept[i];
	}
	*count = left;
}

static void add_number(struct grid *g, const char *format, double value)
{
	char text[48] = FORMAT_NONE;

	if (!isnan(value))
		snprintf(text, sizeof(text), format, value);
	grid_cell(g, text);
}

static void add_step(struct grid *g, const struct record *r, const struct series *steps,
		     const struct step *step)
{
	static const struct {
		const char *name, *format;
	} rest[] = {{"learning_rate", "%.3e"}, {"grad_norm", "%.3g"}, {"tokens_per_s", "%.0f"}};
	bool reported = step->at != NO_LINE;
	uint64_t t_ns = reported ? steps->t_ns[step->at] : 0;

	add_number(g, "%.0f", step->step);
	add_number(g, "%.4f",
		   reported ? training_reading(record_series(r, SOURCE, "loss"), t_ns) : (double)NAN);
	add_number(g, "%.4f", step->eval);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		add_number(g, rest[i].format,
			   reported ? training_reading(record_series(r, SOURCE, rest[i].name), t_ns)
				    : (double)NAN);
}

bool training_steps_grid(struct grid *g, const struct view *v)
{
	static const char *const heads[] = {"step",	     "loss",	 "held-out",
					    "learning rate", "gradient", "tokens/s"};
	const struct record *r = v->in->record;
	const struct series *steps = record_series(r, SOURCE, "step"),
			    *loss = record_series(r, SOURCE, "loss");
	struct step *kept = steps && loss ? calloc(steps->count + 1, sizeof(*kept)) : NULL;
	size_t count;

	if (!kept || !training_case(v)) {
		free(kept);
		return false;
	}
	count = pick_steps(steps, loss, record_series(r, SOURCE, "eval_loss"), kept);
	thin_out(kept, &count);
	text_add(&g->title, "Steps");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = count; i-- > 0;)
		add_step(g, r, steps, &kept[i]);
	free(kept);
	return count > 0;
}
