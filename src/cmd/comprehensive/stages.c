/* SPDX-License-Identifier: Apache-2.0 */
/* The ten stages as a table: when they run, and the commands that they start. */
#include <stdlib.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/file/embedded.h"

/* UNKNOWN_S: expected time of a suite whose plan cannot be made. */
enum { UNKNOWN_S = 60 };
enum { SERVER_START_S = 25, IDLE_S = 2, NVLINK_EVERY_MS = 1000, NVLINK_COUNT = 100000 };

/* Of the GPU's memory: the preset of assay serve. */
static const double serve_share = 0.9;

#define BIT(id) (1u << STAGE_##id)

void stage_dir(const struct comprehensive *s, enum stage_id id, char out[PATH_MAX + 32])
{
	snprintf(out, PATH_MAX + 32, "%s/stage-%u-%s", s->dir, (unsigned)id + 1, stage_list[id].word);
}

static void check_command(const struct comprehensive *s, struct stage_command *k, enum stage_id id)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, id, dir);
	stage_command_add(k, "check");
	stage_command_add(k, "comprehensive-%s", stage_list[id].word);
	if (id == STAGE_STRESS) {
		stage_command_add(k, "--seconds");
		stage_command_add(k, "%gs", s->size.stress_s);
	}
	stage_command_add(k, "--out");
	stage_command_add(k, "%s", dir);
}

/* Asks the command for its plan, which knows the cases of this machine. */
static double check_expected_s(const struct comprehensive *s, enum stage_id id)
{
	struct stage_command k = {0};
	double seconds;

	check_command(s, &k, id);
	k.count -= 2; /* a plan has no run directory */
	seconds = stage_command_plan_s(&k, s->c->stop);
	return seconds > 0 ? seconds : UNKNOWN_S;
}

static void devices_command(const struct comprehensive *s, struct stage_command *k)
{
	check_command(s, k, STAGE_DEVICES);
}

static double devices_expected_s(const struct comprehensive *s)
{
	return check_expected_s(s, STAGE_DEVICES);
}

static void devices_judge(const struct comprehensive *s, struct stage_result *r, int code)
{
	judge_check(s, r, STAGE_DEVICES, code);
}

void comprehensive_load_command(struct stage_command *k, const struct comprehensive_size *z,
				const char *model, bool own)
{
	stage_command_words(k, (const char *const[]){"load", "--model", model, "--serve-options", NULL});
	stage_command_add(k, "--device %s", z->device);
	stage_command_add(k, "--rate");
	stage_command_add(k, "%g", z->rate);
	stage_command_add(k, "--duration");
	stage_command_add(k, "%gs", z->duration_s);
	stage_command_words(
		k, (const char *const[]){"--input", z->input, "--output", z->output, "--grace", NULL});
	stage_command_add(k, "%gs", z->grace_s);
	if (own)
		stage_command_add(k, "--no-recount");
}

static void load_command(const struct comprehensive *s, struct stage_command *k)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, STAGE_LOAD, dir);
	comprehensive_load_command(k, &s->size, s->model, s->own_model);
	if (s->size.marked)
		stage_command_words(k, (const char *const[]){"--expectations", "d2", NULL});
	stage_command_words(k, (const char *const[]){"--out", dir, NULL});
}

double comprehensive_load_expected_s(const struct comprehensive_size *z)
{
	return SERVER_START_S + IDLE_S + z->duration_s + z->grace_s / 2;
}

static double load_expected_s(const struct comprehensive *s)
{
	return comprehensive_load_expected_s(&s->size);
}

static const char *no_gpu(const struct comprehensive *s)
{
	return s->size.gpus ? NULL : "no usable GPU, so there is no link between devices";
}

static void links_command(const struct comprehensive *s, struct stage_command *k)
{
	check_command(s, k, STAGE_LINKS);
}

static double links_expected_s(const struct comprehensive *s)
{
	return check_expected_s(s, STAGE_LINKS);
}

static void links_judge(const struct comprehensive *s, struct stage_result *r, int code)
{
	judge_check(s, r, STAGE_LINKS, code);
}

/* The plan for the same device as that of stage load. */
static void memory_command(const struct comprehensive *s, struct stage_command *k)
{
	stage_command_add(k, "serve");
	stage_command_add(k, "%s", s->model);
	stage_command_add(k, "--device");
	stage_command_add(k, "%s", s->size.device);
	if (s->size.gpu_bytes) {
		stage_command_add(k, "--memory");
		stage_command_add(k, "%.0f", serve_share * (double)s->size.gpu_bytes);
	}
	stage_command_add(k, "--plan");
	stage_command_add(k, "--json");
}

static double short_s(const struct comprehensive *s)
{
	(void)s;
	return 2;
}

static void accuracy_command(const struct comprehensive *s, struct stage_command *k)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, STAGE_ACCURACY, dir);
	stage_command_add(k, "eval");
	stage_command_add(k, "%s", s->model);
	stage_command_add(k, "--data");
	if (s->o->data) {
		stage_command_add(k, "%s", s->o->data);
	} else {
		stage_command_add(k, "%s/text.txt", dir);
		stage_command_add(k, "--context"); /* several windows, because one decides nothing */
		stage_command_add(k, "64");
	}
	stage_command_add(k, "--device");
	stage_command_add(k, "%s", s->size.device);
	stage_command_add(k, "--json");
}

static double accuracy_expected_s(const struct comprehensive *s)
{
	return s->size.gpus ? 40 : 30;
}

static const char *no_experts(const struct comprehensive *s)
{
	(void)s;
	return "not built yet: assay has no models with a mixture of experts";
}

/* What stops the stage depends on the memory of a GPU: 40B parameters in BF16 and a small KV cache fit a
 * large one, in the share that assay serve takes. */
static const char *no_large_model(const struct comprehensive *s)
{
	const double needed = 40e9 * 2 + 2e9, room = serve_share * (double)s->size.gpu_bytes;

	if (!s->size.gpus)
		return "no usable GPU: 40B parameters have 80 GB of weights in BF16";
	if (room < needed)
		return "not built yet: 40B parameters in BF16 (80 GB) do not fit one GPU here, and assay cannot serve one model on several GPUs (tensor parallel)";
	return "not built yet: 40B parameters in BF16 (80 GB) fit one GPU here, but this stage needs tensor parallelism on several. Test such a model on one GPU with --model";
}

static void stress_command(const struct comprehensive *s, struct stage_command *k)
{
	check_command(s, k, STAGE_STRESS);
}

static double stress_expected_s(const struct comprehensive *s)
{
	return check_expected_s(s, STAGE_STRESS);
}

static void stress_judge(const struct comprehensive *s, struct stage_result *r, int code)
{
	judge_check(s, r, STAGE_STRESS, code);
}

static void power_command(const struct comprehensive *s, struct stage_command *k)
{
	char dir[PATH_MAX + 32];

	stage_dir(s, STAGE_LOAD, dir);
	stage_command_add(k, "cost");
	stage_command_add(k, "%s", dir);
	stage_command_add(k, "--json");
}

static const char *no_nvlink(const struct comprehensive *s)
{
	return !s->size.gpus	 ? "no usable GPU, so there is no NVLink"
	       : !s->size.nvlink ? "no active NVLink on this machine"
				 : NULL;
}

static void nvlink_command(const struct comprehensive *s, struct stage_command *k)
{
	(void)s;
	stage_command_add(k, "top");
	stage_command_add(k, "nvlink");
	stage_command_add(k, "--interval");
	stage_command_add(k, "%dms", NVLINK_EVERY_MS);
	stage_command_add(k, "--count");
	stage_command_add(k, "%d", NVLINK_COUNT);
	stage_command_add(k, "--json");
}

static double no_time(const struct comprehensive *s)
{
	(void)s;
	return 0;
}

static void not_built(const struct comprehensive *s, struct stage_result *r, int code)
{
	(void)s, (void)r, (void)code;
}

const struct stage stage_list[STAGE_COUNT] = {
	[STAGE_DEVICES] =
		{
			.word = "devices",
			.title = "Multi-GPU validation",
			.core = true,
			.report = true,
			.says = "health of every device, each device alone, and collectives of all GPUs, with results checked",
			.command = devices_command,
			.expected_s = devices_expected_s,
			.judge = devices_judge,
		},
	[STAGE_LOAD] =
		{
			.word = "load",
			.title = "Load test",
			.core = true,
			.model = true,
			.report = true,
			.says = "requests on a fixed schedule to assay serve: latencies, throughput, power",
			.command = load_command,
			.expected_s = load_expected_s,
			.judge = judge_load,
		},
	[STAGE_LINKS] =
		{
			.word = "links",
			.title = "Link bandwidth",
			.report = true,
			.says = "host links, each pair of GPUs, and all-reduce",
			.skip = no_gpu,
			.command = links_command,
			.expected_s = links_expected_s,
			.judge = links_judge,
		},
	[STAGE_MEMORY] =
		{
			.word = "memory",
			.title = "Memory profile",
			.core = true,
			.model = true,
			.needs = BIT(LOAD),
			.says = "memory that the engine planned, compared with the memory in use during the load test",
			.command = memory_command,
			.expected_s = short_s,
			.judge = judge_memory,
		},
	[STAGE_ACCURACY] =
		{
			.word = "accuracy",
			.title = "Accuracy",
			.model = true,
			.says = "perplexity of each precision against the reference, and function calls",
			.command = accuracy_command,
			.expected_s = accuracy_expected_s,
			.judge = judge_accuracy,
		},
	[STAGE_MOE] =
		{
			.word = "moe",
			.title = "Mixture of experts",
			.says = "load of experts and routing",
			.skip = no_experts,
			.expected_s = no_time,
			.judge = not_built,
		},
	[STAGE_LARGE] =
		{
			.word = "large",
			.title = "40B shape, tensor parallel",
			.says = "a model of 40B parameters on all GPUs",
			.skip = no_large_model,
			.expected_s = no_time,
			.judge = not_built,
		},
	[STAGE_STRESS] =
		{
			.word = "stress",
			.title = "Stress",
			.core = true,
			.report = true,
			.beside = BIT(NVLINK),
			.says = "all CPUs, GPUs and links under load at once, with results checked",
			.command = stress_command,
			.expected_s = stress_expected_s,
			.judge = stress_judge,
		},
	[STAGE_POWER] =
		{
			.word = "power",
			.title = "Power efficiency",
			.needs = BIT(LOAD),
			.says = "tokens per joule of the load test",
			.command = power_command,
			.expected_s = short_s,
			.judge = judge_power,
		},
	[STAGE_NVLINK] =
		{
			.word = "nvlink",
			.title = "NVLink during stress",
			.needs = BIT(STRESS),
			.says = "throughput and errors of the NVLinks while the stress stage runs",
			.skip = no_nvlink,
			.command = nvlink_command,
			.expected_s = no_time,
			.judge = judge_nvlink,
		},
};
