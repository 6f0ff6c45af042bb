/* SPDX-License-Identifier: Apache-2.0 */
/* How much each stage does: D2's amounts on a GPU, less with --quick, and what a CPU can serve without one.
 */
#include <string.h>
#include "cmd/comprehensive/comprehensive.h"

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

/* The stage with the number or the word in [word, word + size). */
static int find_stage(const char *word, size_t size)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%d", i + 1);
		if ((strlen(number) == size && !strncmp(number, word, size)) ||
		    (strlen(stage_list[i].word) == size && !strncmp(stage_list[i].word, word, size)))
			return i;
	}
	return -1;
}

static enum status unknown_stage(const char *word, size_t size, struct error *err)
{
	const char *known[STAGE_COUNT], *near;
	char one[64];

	snprintf(one, sizeof(one), "%.*s", (int)(size < 40 ? size : 40), word);
	for (int i = 0; i < STAGE_COUNT; i++)
		known[i] = stage_list[i].word;
	near = opt_nearest(one, known, STAGE_COUNT);
	return error_set(err, STATUS_BAD_INPUT,
			 "--only: there is no stage \"%s\"%s%s%s; --plan lists the stages", one,
			 near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

enum status comprehensive_only(struct comprehensive *s, struct error *err)
{
	const char *word = s->o->only;
	unsigned asked = word ? 0 : (1u << STAGE_COUNT) - 1, before = 0;

	while (word && *word) {
		const size_t size = strcspn(word, ",");
		const int id = find_stage(word, size);

		if (id < 0)
			return unknown_stage(word, size, err);
		asked |= 1u << id;
		word += size + (word[size] == ',');
	}
	if (!asked)
		return unknown_stage("", 0, err);
	while (before != asked) {
		before = asked;
		for (int i = 0; i < STAGE_COUNT; i++)
			if (asked & 1u << i)
				asked |= stage_list[i].needs;
	}
	for (int i = 0; i < STAGE_COUNT; i++) {
		s->result[i].asked = asked & 1u << i;
		if (!s->result[i].asked)
			text_copy(s->result[i].reason, sizeof(s->result[i].reason), "not asked for");
	}
	return STATUS_OK;
}
