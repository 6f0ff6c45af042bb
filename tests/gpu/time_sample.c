/* SPDX-License-Identifier: Apache-2.0 */
/* Times sampling from 152,064 logits, of random weights and of a trained model's form. */
#include "cases_step.h"
#include "sample_bed.h"

struct timed {
	struct sample_bed *b;
	const char *entry;
};

static enum status call(void *arg, struct error *err)
{
	struct timed *t = arg;

	return sample_bed_launch(t->b, t->entry, true, err);
}

static enum status time_one(struct kit *k, const char *entry, const char *why, const struct sample_plan *p,
			    struct error *err)
{
	struct sample_bed b;
	struct timed t = {.b = &b, .entry = entry};
	double ns = 0;
	enum status st = sample_bed_open(k, &b, p, err);

	if (!st)
		st = step_time_chain(k, call, &t, &ns, err);
	if (!st)
		printf("%-20s %-32s batch %4u: %7.2f us (%u parts)\n", entry, why, p->rows, ns / 1e3,
		       b.on_device.parts);
	sample_bed_close(&b);
	return st;
}

enum status sample_time(struct kit *k, struct error *err)
{
	static const struct {
		const char *entry, *why;
		enum sample_options options;
		enum sample_logits logits;
	} work[] = {
		{"step_sample_greedy", "flat", OPTIONS_GREEDY, LOGITS_FLAT},
		{"step_sample_plain", "temperature, top_p, flat", OPTIONS_PLAIN, LOGITS_FLAT},
		{"step_sample_plain", "temperature, top_p, peaked", OPTIONS_PLAIN, LOGITS_PEAKED},
		{"step_sample_choose", "greedy, flat", OPTIONS_GREEDY, LOGITS_FLAT},
		{"step_sample_choose", "top_p, peaked", OPTIONS_TOP_P, LOGITS_PEAKED},
		{"step_sample_choose", "top_p, flat", OPTIONS_TOP_P, LOGITS_FLAT},
		{"step_sample_choose", "top_p, temperatures up to 3", OPTIONS_PLAIN, LOGITS_PEAKED},
		{"step_sample_choose", "top_p, top_k, peaked", OPTIONS_TOP_K, LOGITS_PEAKED},
		{"step_sample_choose", "top_p, top_k, flat", OPTIONS_TOP_K, LOGITS_FLAT},
		{"step_sample_choose", "min_p, peaked", OPTIONS_MIN_P, LOGITS_PEAKED},
		{"step_sample_choose", "every id, peaked", OPTIONS_ANY, LOGITS_PEAKED},
		{"step_sample_choose", "mask, greedy", OPTIONS_JSON_GREEDY, LOGITS_PEAKED},
		{"step_sample_choose", "mask, top_p", OPTIONS_JSON, LOGITS_PEAKED},
		{"step_sample_choose", "penalties, top_p", OPTIONS_PENALTIES, LOGITS_PEAKED},
		{"step_sample_choose", "bias, top_p", OPTIONS_BIAS, LOGITS_PEAKED},
		{"step_sample_choose", "20 alternatives, top_p", OPTIONS_LOGPROBS, LOGITS_PEAKED},
		{"step_sample_choose", "masks", OPTIONS_MASKED, LOGITS_PEAKED},
		{"step_sample_choose", "every option, flat", OPTIONS_ALL, LOGITS_FLAT},
		{"step_sample_choose", "every option, peaked", OPTIONS_ALL, LOGITS_PEAKED},
	};
	static const unsigned batches[] = {1, 32, 64, 128, 256};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		for (size_t j = 0; j < sizeof(batches) / sizeof(batches[0]) && !st; j++) {
			const struct sample_plan p = {.kind = sample_kind(work[i].entry),
						      .rows = batches[j],
						      .vocab = 152064,
						      .bf16 = true,
						      .logits = work[i].logits,
						      .options = work[i].options};

			if (!k->filter || strstr(work[i].entry, k->filter))
				st = time_one(k, work[i].entry, work[i].why, &p, err);
		}
	return st;
}
