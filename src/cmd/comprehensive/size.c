/* SPDX-License-Identifier: Apache-2.0 */
/* How much each stage does: D2's amounts on a GPU, less with --quick, and what a CPU can serve without one.
 */
#include <string.h>
#include "cmd/comprehensive/comprehensive.h"
#include "cmd/stages/stage_choice.h"

static const struct comprehensive_size sizes[] = {
	/* D2's load: prompts of 64 to 2048 tokens, 128 new tokens, 100 requests/s for two minutes */
	{.device = "gpu",
	 .shape = "qwen2-7b",
	 .model_s = 60,
	 .rate = 100,
	 .duration_s = 120,
	 .input = "uniform:64,2048",
	 .output = "128",
	 .grace_s = 60,
	 .stress_s = 60,
	 .marked = true},
	{.device = "gpu",
	 .shape = "qwen2-0.5b",
	 .model_s = 10,
	 .rate = 20,
	 .duration_s = 30,
	 .input = "512",
	 .output = "128",
	 .grace_s = 20,
	 .stress_s = 20},
	{.device = "cpu",
	 .shape = "smollm2-135m",
	 .model_s = 5,
	 .rate = 0.25,
	 .duration_s = 120,
	 .input = "64",
	 .output = "16",
	 .grace_s = 60,
	 .stress_s = 60},
	{.device = "cpu",
	 .shape = "smollm2-135m",
	 .model_s = 5,
	 .rate = 0.25,
	 .duration_s = 30,
	 .input = "64",
	 .output = "16",
	 .grace_s = 30,
	 .stress_s = 10},
};

/* GPUs that this process may use and that answer. */
static void count_gpus(struct comprehensive_size *z, const struct machine *m)
{
	for (unsigned i = 0; i < machine_gpu_count(m); i++) {
		const struct gpu *g = machine_gpu(m, i);

		if (!g->granted || g->status)
			continue;
		if (!z->gpus++)
			z->gpu_bytes = (uint64_t)gpu_get(g, GPU_FACT_memory_bytes, 0);
		z->nvlink = z->nvlink || gpu_get(g, GPU_FACT_nvlink_active, 0) > 0;
	}
}

void comprehensive_size_set(struct comprehensive_size *out, const struct machine *m,
			    const struct comprehensive_opts *o)
{
	struct comprehensive_size found = {0};

	count_gpus(&found, m);
	*out = sizes[2 * !found.gpus + o->quick];
	out->gpus = found.gpus;
	out->nvlink = found.nvlink;
	out->gpu_bytes = found.gpu_bytes;
	if (o->rate > 0 || o->duration > 0 || o->input || o->output)
		out->marked = false;
	if (o->rate > 0)
		out->rate = o->rate;
	if (o->duration > 0)
		out->duration_s = o->duration;
	if (o->duration > 0 && o->duration < out->grace_s)
		out->grace_s = o->duration;
	if (o->input)
		text_copy(out->input, sizeof(out->input), o->input);
	if (o->output)
		text_copy(out->output, sizeof(out->output), o->output);
	if (o->stress > 0)
		out->stress_s = o->stress;
}

static const char *word_of(const void *arg, unsigned i)
{
	(void)arg;
	return stage_list[i].word;
}

static unsigned needs_of(const void *arg, unsigned i)
{
	(void)arg;
	return stage_list[i].needs;
}

enum status comprehensive_only(struct comprehensive *s, struct error *err)
{
	const struct stage_choice choice = {.option = "--only",
					    .noun = "stage",
					    .count = STAGE_COUNT,
					    .word = word_of,
					    .needs = needs_of};
	unsigned asked;
	enum status st = stage_choose(&asked, &choice, s->o->only, err);

	for (int i = 0; !st && i < STAGE_COUNT; i++) {
		s->result[i].asked = asked & 1u << i;
		if (!s->result[i].asked)
			text_copy(s->result[i].reason, sizeof(s->result[i].reason), "not asked for");
	}
	return st;
}
