/* SPDX-License-Identifier: Apache-2.0 */
/* Prints progress, notes and the plan of a training run. */
#include <math.h>
#include <stdio.h>
#include "cmd/info/info.h"
#include "cmd/running/running.h"
#include "cmd/shared/show.h"
#include "cmd/train/train.h"
#include "core/text/units.h"

/* A loss that is not a number is absent from the line. */
static double figure(const json_t *line, const char *name)
{
	return json_object_get(line, name) ? info_number(line, name) : (double)NAN;
}

/* Where the time of all ranks went in the last steps, for example " | ranks: compute 71 communication 9
 * waiting 18 (for rank 2) rows 0 host 2 %". */
static void account_text(struct text *out, const json_t *line)
{
	if (!json_object_get(line, "exposed_share"))
		return;
	text_addf(out, " | ranks: compute %.0f communication %.0f waiting %.0f",
		  100 * info_number(line, "mean_compute_share"), 100 * info_number(line, "exposed_share"),
		  100 * info_number(line, "waiting_share"));
	if (json_object_get(line, "late_rank"))
		text_addf(out, " (for rank %.0f)", info_number(line, "late_rank"));
	text_addf(out, " rows %.0f save %.0f host %.0f %%", 100 * info_number(line, "mean_rows_share"),
		  100 * info_number(line, "mean_save_share"), 100 * info_number(line, "mean_host_share"));
}

static void step_text(struct text *out, const struct training *t, const json_t *line)
{
	double step_s = info_number(line, "step_s"), steps = info_number(t->ready, "steps");
	char left[32], rate[32], memory[32], planned[32];

	units_format_clock(left, sizeof(left), info_number(line, "left_s"));
	units_format(rate, sizeof(rate), info_number(line, "flop_rate"), "FLOPS");
	text_addf(out, "step %.0f/%.0f loss %.4f lr %.2e norm %.3g | %.0f tokens/s %.2f rows/s %s",
		  info_number(line, "step"), steps, figure(line, "loss"), info_number(line, "learning_rate"),
		  figure(line, "grad_norm"), info_number(line, "tokens_per_s"),
		  info_number(line, "rows_per_s"), rate);
	if (json_object_get(line, "mfu"))
		text_addf(out, " MFU %.0f %%", 100 * info_number(line, "mfu"));
	if (step_s > 0)
		text_addf(out, "  | forward %.0f backward %.0f optimizer %.0f wait %.0f %%",
			  100 * info_number(line, "forward_s") / step_s,
			  100 * info_number(line, "backward_s") / step_s,
			  100 * info_number(line, "optimiser_s") / step_s,
			  100 * info_number(line, "wait_s") / step_s);
	if (step_s > 0 && json_object_get(line, "gemm_s"))
		text_addf(out, ", GEMM %.0f %%", 100 * info_number(line, "gemm_s") / step_s);
	account_text(out, line);
	train_watch_text(out, line);
	units_format(memory, sizeof(memory), info_number(line, "memory_bytes"), "B");
	units_format(planned, sizeof(planned), info_number(t->ready, "memory_planned_bytes"), "B");
	text_addf(out, " | %s of %s | %s left", memory, planned, left);
}

void train_show_step(const struct training *t, const json_t *line)
{
	struct text out = {0};

	step_text(&out, t, line);
	if (t->c->terminal)
		fprintf(stderr, "\r\033[K%.*s", (int)show_columns() - 1, text_str(&out));
	else if (!t->o->json)
		log_info(t->c->log, LOG_TOPIC_RUN, "%s", text_str(&out));
	fflush(stderr);
	text_release(&out);
}

static void clear_bar(const struct training *t)
{
	if (t->c->terminal)
		fputs("\r\033[K", stderr);
}

static void show_ready(const struct training *t, const json_t *line)
{
	char memory[32];

	units_format(memory, sizeof(memory), info_number(line, "memory_planned_bytes"), "B");
	log_info(t->c->log, LOG_TOPIC_RUN,
		 "training %.0f of %.0f parameters; %.0f rows with %.0f tokens, %.0f of them targets; "
		 "%.0f steps; %s of memory planned",
		 info_number(line, "trained"), info_number(line, "parameters"), info_number(line, "rows"),
		 info_number(line, "tokens"), info_number(line, "targets"), info_number(line, "steps"),
		 memory);
}

void train_show_line(const struct training *t, const char *type, const json_t *line)
{
	const char *path = json_string_value(json_object_get(line, "path"));

	if (t->o->json && strcmp(type, "finding"))
		return;
	clear_bar(t);
	if (!strcmp(type, "ready"))
		show_ready(t, line);
	else if (!strcmp(type, "eval"))
		log_info(t->c->log, LOG_TOPIC_RUN, "step %.0f: held-out loss %.4f", info_number(line, "step"),
			 figure(line, "eval_loss"));
	else if (!strcmp(type, "saved"))
		log_info(t->c->log, LOG_TOPIC_RUN, "saved: %s", path ? path : "?");
	else if (!strcmp(type, "finding"))
		log_warn(t->c->log, LOG_TOPIC_RUN, "%s: %s; try this setting: %s",
			 json_string_value(json_object_get(line, "finding")),
			 json_string_value(json_object_get(line, "text")),
			 json_string_value(json_object_get(line, "knob")));
}
