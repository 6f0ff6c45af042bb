/* SPDX-License-Identifier: Apache-2.0 */
/* Factors, losses and verdicts from the jobs that ended, and what CONFIG lacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/ladder/ladder.h"
#include "core/math/stats.h"
#include "core/text/units.h"
#include "train/config/settings.h"

/* Tolerated difference of the held-out loss from the baseline's, as shares (ladder.md, "Losses"). */
struct tolerance {
	double first, last;
};
static const struct tolerance tolerances[] = {
	[CONFIG_PRECISION_AUTO] = {1e-2, 1e-2}, [CONFIG_PRECISION_FP32] = {1e-4, 1e-3},
	[CONFIG_PRECISION_TF32] = {2e-3, 5e-3}, [CONFIG_PRECISION_BF16] = {1e-2, 1e-2},
	[CONFIG_PRECISION_FP8] = {1e-2, 2e-2},
};
#define OTHER_ROWS 2e-2 /* packs hold other rows in each step */

static bool is_measured(const struct ladder_job *job)
{
	return job->ended && !job->code;
}

/* The configuration of a job; false: there is none. The caller calls config_release. */
static bool job_config(const struct ladder *l, enum rung_id id, struct config *out)
{
	struct text text = {0};
	struct error err = {0};
	bool made = !ladder_config(l, &text, id, false, &err) &&
		    !config_parse(out, "ladder", text_str(&text), text.size, &err);

	text_release(&text);
	return made;
}

static struct tolerance tolerance_of(const struct ladder *l, enum rung_id id)
{
	struct tolerance t = tolerances[CONFIG_PRECISION_FP32];
	struct config c;

	if (!job_config(l, id, &c))
		return t;
	t = tolerances[c.training.precision];
	if (c.data.packing)
		t.last += OTHER_ROWS;
	config_release(&c);
	return t;
}

/* -- factors -- */

static double median_of(const struct ladder *l, int id, size_t field)
{
	double each[LADDER_ROUNDS];
	size_t count = 0;

	for (unsigned round = 0; round < LADDER_ROUNDS; round++) {
		const struct ladder_job *job = &l->job[round][id];
		const double value = *(const double *)((const char *)&job->v + field);

		if (is_measured(job) && isfinite(value))
			each[count++] = value;
	}
	return count ? stats_median(each, count) : (double)NAN;
}

static void take_medians(struct ladder *l, int id)
{
	double *to = (double *)&l->rung[id].v;

	for (size_t i = 0; i < sizeof(l->rung[id].v) / sizeof(*to); i++)
		to[i] = median_of(l, id, i * sizeof(*to));
	/* the power of several GPUs is not known, because a job reports that of its first one */
	l->rung[id].joules_per_token =
		id == RUNG_PARALLEL ? (double)NAN : l->rung[id].v.power_w / l->rung[id].v.tokens_per_s;
}

/* The ratio of two rungs' rates: median, lowest and highest of the rounds that have both. Returns their
 * number.
 */
static unsigned compare(const struct ladder *l, int id, int below, double *factor, double *lowest,
			double *highest)
{
	double each[LADDER_ROUNDS];
	unsigned count = 0;

	*factor = *lowest = *highest = (double)NAN;
	for (unsigned round = 0; round < LADDER_ROUNDS; round++) {
		const struct ladder_job *a = &l->job[round][id], *b = &l->job[round][below];

		if (!is_measured(a) || !is_measured(b))
			continue;
		each[count] = a->v.tokens_per_s / b->v.tokens_per_s;
		*lowest = count ? fmin(*lowest, each[count]) : each[count];
		*highest = count ? fmax(*highest, each[count]) : each[count];
		count++;
	}
	if (count)
		*factor = stats_median(each, count);
	return count;
}

/* -- losses -- */

static void compare_losses(struct ladder *l, int id)
{
	const unsigned round = *l->plan.loss_model ? ROUND_LOSS : 0;
	const struct ladder_job *own = &l->job[round][id], *base = &l->job[round][RUNG_BASELINE];
	struct ladder_rung *r = &l->rung[id];

	r->loss_first_share = r->loss_last_share = (double)NAN;
	if (!is_measured(own) || !is_measured(base))
		return;
	r->loss_first_share = fabs(own->v.loss_first / base->v.loss_first - 1);
	r->loss_last_share = fabs(own->v.loss_last / base->v.loss_last - 1);
}

/* -- verdicts -- */

static void say(struct ladder_rung *r, enum stage_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct ladder_rung *r, enum stage_verdict verdict, const char *format, ...)
{
	va_list args;

	r->verdict = verdict;
	va_start(args, format);
	vsnprintf(r->reason, sizeof(r->reason), format, args);
	va_end(args);
}

static void judge_loss(struct ladder *l, int id)
{
	struct ladder_rung *r = &l->rung[id];
	const struct tolerance t = tolerance_of(l, (enum rung_id)id);

	if (!isfinite(r->loss_first_share) || !isfinite(r->loss_last_share))
		say(r, VERDICT_STAGE_INCONCLUSIVE, "its loss or the baseline's is not known");
	else if (r->loss_first_share > t.first)
		say(r, VERDICT_STAGE_FAILED,
		    "the held-out loss before the first step differs by %.3g from the baseline's; at most %.2g is tolerated",
		    r->loss_first_share, t.first);
	else if (r->loss_last_share > t.last)
		say(r, VERDICT_STAGE_FAILED,
		    "the held-out loss after the last step differs by %.3g from the baseline's; at most %.2g is tolerated",
		    r->loss_last_share, t.last);
}

/* What a trade was worth, in words. */
static void judge_trade(struct ladder *l, int id)
{
	struct ladder_rung *r = &l->rung[id];
	const struct ladder_rung *below = &l->rung[r->below];
	const double less = below->v.memory_bytes - r->v.memory_bytes;
	char bytes[48], memory[80] = "";

	units_format(bytes, sizeof(bytes), fabs(less), "B");
	if (less < 0 || less > 0)
		snprintf(memory, sizeof(memory), ", with %s %s memory", bytes, less > 0 ? "less" : "more");
	say(r, VERDICT_STAGE_PASSED,
	    "%s on this device: %.3g of the rate of %s%s; later rungs are measured %s it",
	    r->factor > 1 ? "worth it" : "not worth it", r->factor, rung_list[r->below].word, memory,
	    ladder_trade_pays(l, (enum rung_id)id) ? "with" : "without");
}

/* The first job of the rung that failed; NULL: none. */
static const struct ladder_job *failed_job(const struct ladder *l, int id)
{
	for (unsigned round = 0; round <= ROUND_LOSS; round++)
		if (l->job[round][id].ended && l->job[round][id].code)
			return &l->job[round][id];
	return NULL;
}

static void judge_rung(struct ladder *l, int id)
{
	struct ladder_rung *r = &l->rung[id];
	const struct ladder_job *failed = failed_job(l, id);

	r->factor = r->lowest = r->highest = (double)NAN;
	*r->reason = '\0';
	r->rounds = 0;
	take_medians(l, id);
	compare_losses(l, id);
	if (r->below >= 0)
		r->rounds = compare(l, id, r->below, &r->factor, &r->lowest, &r->highest);
	r->verdict = VERDICT_STAGE_PASSED;
	if (*r->lacks)
		say(r, VERDICT_STAGE_SKIPPED, "%s", r->lacks);
	else if (failed && failed->idle)
		say(r, rung_list[id].effect.demanded ? VERDICT_STAGE_FAILED : VERDICT_STAGE_SKIPPED, "%s",
		    failed->why);
	else if (failed)
		say(r, VERDICT_STAGE_INCONCLUSIVE, "%s", failed->why);
	else if (!isfinite(r->v.tokens_per_s))
		say(r, VERDICT_STAGE_NOT_RUN, "stopped before it ended");
	else if (id && !r->rounds)
		say(r, VERDICT_STAGE_INCONCLUSIVE, "the rung below it has no rate in the same round");
	else
		judge_loss(l, id);
	if (rung_list[id].trade && r->verdict == VERDICT_STAGE_PASSED && r->rounds)
		judge_trade(l, id);
}

/* All rungs that add up: the highest one that is no trade, or a trade that pays. */
static void find_total(struct ladder *l)
{
	l->top = -1;
	l->total = l->total_lowest = l->total_highest = (double)NAN;
	for (int id = 1; id < RUNG_COUNT; id++)
		if (isfinite(l->rung[id].factor) && (!rung_list[id].trade || l->rung[id].factor > 1))
			l->top = id;
	if (l->top > 0)
		compare(l, l->top, RUNG_BASELINE, &l->total, &l->total_lowest, &l->total_highest);
}

void ladder_judge(struct ladder *l)
{
	ladder_find_rungs(l); /* a rung that failed is below none */
	for (int id = 0; id < RUNG_COUNT; id++)
		judge_rung(l, id);
	find_total(l);
	if (*l->plan.given)
		ladder_find_lines(l);
}

int ladder_code(const struct ladder *l)
{
	bool failed = false, open = l->top < 1 || l->stopped;

	for (int id = 0; id < RUNG_COUNT; id++) {
		failed = failed || l->rung[id].verdict == VERDICT_STAGE_FAILED;
		open = open || l->rung[id].verdict == VERDICT_STAGE_INCONCLUSIVE ||
		       l->rung[id].verdict == VERDICT_STAGE_NOT_RUN;
	}
	return failed ? EXIT_FAILED : open ? EXIT_INCONCLUSIVE : EXIT_PASS;
}

/* -- what CONFIG lacks -- */

static void value_of(const struct config *c, const struct rung_setting *s, char *out, size_t size)
{
	const struct config_section *section = config_section(s->section);
	const struct opt *row = &section->table.rows[config_row(&section->table, s->name)];

	opt_value_text(row, (const char *)c + section->offset, out, size);
}

static uint32_t precision_of(const char *word)
{
	uint32_t i = CONFIG_PRECISION_AUTO;

	while (i < CONFIG_PRECISION_FP8 && strcmp(config_precision_name(i), word))
		i++;
	return i;
}

/* Whether CONFIG has the rung's value already, or one that does the same or more. */
static bool has_value(const struct ladder *l, const struct config *c, const struct rung_setting *s)
{
	uint32_t precision = c->training.precision;
	char own[64];

	value_of(c, s, own, sizeof(own));
	if (precision == CONFIG_PRECISION_AUTO)
		precision = l->plan.gpu ? CONFIG_PRECISION_BF16 : CONFIG_PRECISION_FP32;
	if (!strcmp(s->name, "precision"))
		return precision >= precision_of(s->value);
	if (!strcmp(s->name, "attention"))
		return c->training.attention != CONFIG_ATTENTION_PLAIN;
	if (!strcmp(s->name, "per_device_train_batch_size") || !strcmp(s->name, "dataloader_num_workers"))
		return strtod(own, NULL) >= strtod(s->value, NULL) || c->training.auto_find_batch_size;
	if (!strcmp(s->name, "gpus"))
		return c->training.gpus != 1 || c->training.zero_stage ||
		       c->training.tensor_parallel_size > 1;
	return !strcmp(own, s->value);
}

/* Whether the rung made training faster in every round. */
static bool pays(const struct ladder *l, int id)
{
	return l->rung[id].verdict == VERDICT_STAGE_PASSED && l->rung[id].lowest > 1;
}

/* Whether a higher rung that pays has another value of the setting. */
static bool is_overtaken(const struct ladder *l, int id, const struct rung_setting *setting)
{
	for (int above = id + 1; above < RUNG_COUNT; above++)
		for (const struct rung_setting *s = rung_list[above].setting; s->name && pays(l, above); s++)
			if (!strcmp(s->name, setting->name))
				return true;
	return false;
}

/* The accumulation that keeps CONFIG's number of rows in a step. */
static void add_accumulation(struct text *out, const struct config *c, const char *batch)
{
	const double rows = (double)c->training.per_device_train_batch_size *
			    c->training.gradient_accumulation_steps,
		     micros = rows / strtod(batch, NULL);

	text_addf(out, "  gradient_accumulation_steps: %.0f   # a step keeps at least its rows\n",
		  micros > 1 ? ceil(micros) : 1);
}

static void add_lines(struct ladder *l, const struct config *c, int id, const char *section, bool *begun)
{
	const struct rung_setting *s = rung_list[id].setting;
	char own[64], factor[64];

	for (; s->name; s++) {
		if (!strcmp(s->name, "gradient_accumulation_steps") || strcmp(s->section, section) ||
		    is_overtaken(l, id, s) || has_value(l, c, s))
			continue;
		if (!*begun)
			text_addf(&l->lines, "%s:\n", section);
		*begun = true;
		value_of(c, s, own, sizeof(own));
		ladder_factor_text(factor, sizeof(factor), l->rung[id].factor, l->rung[id].lowest,
				   l->rung[id].highest, l->rung[id].rounds);
		text_addf(&l->lines, "  %s: %s   # now %s; measured factor %s\n", s->name, s->value, own,
			  factor);
		if (!strcmp(s->name, "per_device_train_batch_size"))
			add_accumulation(&l->lines, c, s->value);
	}
}

void ladder_find_lines(struct ladder *l)
{
	static const char *const sections[] = {"training", "data"};
	struct error err = {0};
	struct config c;

	text_release(&l->lines);
	if (config_read(&c, l->plan.given, &err)) {
		log_warn(l->c->log, LOG_TOPIC_RUN, "cannot say what the configuration lacks: %s", err.text);
		return;
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		bool begun = false;

		for (int id = 1; id < RUNG_COUNT; id++)
			if (pays(l, id))
				add_lines(l, &c, id, sections[i], &begun);
	}
	config_release(&c);
}
