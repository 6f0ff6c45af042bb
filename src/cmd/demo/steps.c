/* SPDX-License-Identifier: Apache-2.0 */
/* The steps as a table: what each proves, when it is skipped, and the command that it starts. */
#include "cmd/demo/demo.h"

/* Expected seconds, measured on two idle cores. */
enum {
	MACHINE_S = 1,
	SHORT_S = 2,
	SUITE_S = 60,
	LEARN_START_S = 3,
	LEARN_STEPS_PER_S = 12,
	SPEED_S = 25,
	PROVE_S = 80
};
enum { SWEEP_STAGES = 8, ALL_LINES = 1000 };

static void add_out(const struct demo *d, struct stage_command *k, enum step_id id)
{
	char dir[PATH_MAX + 80];

	tour_run_dir(d, id, dir);
	stage_command_words(k, (const char *const[]){"--out", dir, NULL});
}

/* Adds the folder of the first of these steps that is in the tour. */
static void add_dir(const struct demo *d, struct stage_command *k, unsigned bits)
{
	char dir[PATH_MAX + 80];

	tour_run_dir(d, tour_first(d, bits), dir);
	stage_command_add(k, "%s", dir);
}

static double short_s(const struct demo *d)
{
	(void)d;
	return SHORT_S;
}

/* -- the machine -- */

static void machine_command(const struct demo *d, struct stage_command *k)
{
	stage_command_add(k, "info");
	stage_command_add(k, "--out");
	stage_command_add(k, "%s", d->dir);
}

static double machine_s(const struct demo *d)
{
	(void)d;
	return MACHINE_S;
}

/* -- suites -- */

/* Asks the suite for its plan, which knows the cases of this machine. */
static double suite_s(const struct demo *d, const char *suite)
{
	struct stage_command k = {0};
	double seconds;

	stage_command_words(&k, (const char *const[]){"check", suite, NULL});
	seconds = stage_command_plan_s(&k, d->c->stop);
	return seconds > 0 ? seconds : SUITE_S;
}

static void add_suite(const struct demo *d, struct stage_command *k, const char *suite, enum step_id id)
{
	stage_command_words(k, (const char *const[]){"check", suite, NULL});
	add_out(d, k, id);
}

static void check_command(const struct demo *d, struct stage_command *k)
{
	add_suite(d, k, "quick", STEP_CHECK);
}

static double check_s(const struct demo *d)
{
	return suite_s(d, "quick");
}

static void check_full_command(const struct demo *d, struct stage_command *k)
{
	add_suite(d, k, "full", STEP_CHECK_FULL);
}

static double check_full_s(const struct demo *d)
{
	return suite_s(d, "full");
}

static const char *no_links(const struct demo *d)
{
	return d->size.gpus ? NULL : "no usable GPU, so there is no link between devices";
}

static void links_command(const struct demo *d, struct stage_command *k)
{
	add_suite(d, k, "links", STEP_LINKS);
}

static double links_s(const struct demo *d)
{
	return suite_s(d, "links");
}

static const char *no_attention(const struct demo *d)
{
	return d->size.gpus ? NULL : "no usable GPU: the suite measures attention kernels of GPUs";
}

static void attention_command(const struct demo *d, struct stage_command *k)
{
	add_suite(d, k, "attention", STEP_ATTENTION);
}

static double attention_s(const struct demo *d)
{
	return suite_s(d, "attention");
}

static const unsigned checks = STEP_BIT(CHECK) | STEP_BIT(CHECK_FULL);

static void roofline_command(const struct demo *d, struct stage_command *k)
{
	stage_command_add(k, "roofline");
	add_dir(d, k, checks);
	add_out(d, k, STEP_ROOFLINE);
}

static void report_command(const struct demo *d, struct stage_command *k)
{
	stage_command_add(k, "report");
	add_dir(d, k, checks);
}

/* -- training -- */

static void model_command(const struct demo *d, struct stage_command *k)
{
	stage_command_words(k,
			    (const char *const[]){"make-model", "--shape", d->size.gpus ? "tiny-64" : "tiny",
						  "--out", d->learner, NULL});
}

static void ask(struct stage_command *k, const char *model)
{
	stage_command_words(k,
			    (const char *const[]){"generate", model, demo_question, "--tokens", "64", NULL});
}

static void before_command(const struct demo *d, struct stage_command *k)
{
	ask(k, d->learner);
}

static void add_config(const struct demo *d, struct stage_command *k, const char *name)
{
	stage_command_add(k, "train");
	stage_command_add(k, "%s/%s", d->dir, name);
}

static void memory_command(const struct demo *d, struct stage_command *k)
{
	add_config(d, k, "learn.json");
	stage_command_add(k, "--plan");
}

static void train_command(const struct demo *d, struct stage_command *k)
{
	add_config(d, k, "learn.json");
	add_out(d, k, STEP_TRAIN);
}

static double train_s(const struct demo *d)
{
	return LEARN_START_S + (double)d->o->train_steps / LEARN_STEPS_PER_S;
}

static void answer_command(const struct demo *d, struct stage_command *k)
{
	char dir[PATH_MAX + 80], model[PATH_MAX + 96];

	tour_run_dir(d, STEP_TRAIN, dir);
	snprintf(model, sizeof(model), "%s/model", dir);
	ask(k, model);
}

static void speed_command(const struct demo *d, struct stage_command *k)
{
	add_config(d, k, "speed.json");
	add_out(d, k, STEP_SPEED);
}

static double speed_s(const struct demo *d)
{
	(void)d;
	return SPEED_S;
}

/* -- serving -- */

static const char *has_model(const struct demo *d)
{
	return d->o->model ? "not needed: --model names the model" : NULL;
}

static void weights_command(const struct demo *d, struct stage_command *k)
{
	stage_command_words(
		k, (const char *const[]){"make-model", "--shape", d->size.shape, "--out", d->weights, NULL});
}

static double weights_s(const struct demo *d)
{
	return d->size.model_s;
}

static void place_command(const struct demo *d, struct stage_command *k)
{
	stage_command_words(
		k, (const char *const[]){"serve", d->weights, "--device", d->size.device, "--plan", NULL});
}

static void load_command(const struct demo *d, struct stage_command *k)
{
	comprehensive_load_command(k, &d->size, d->weights, !d->o->model);
	add_out(d, k, STEP_LOAD);
}

static double load_s(const struct demo *d)
{
	return comprehensive_load_expected_s(&d->size);
}

/* The same load, but `assay load` chooses the rates. */
static void sweep_command(const struct demo *d, struct stage_command *k)
{
	comprehensive_load_command(k, &d->size, d->weights, !d->o->model);
	stage_command_words(k, (const char *const[]){"--sweep", "--slo", "ttft=1s,tpot=100ms", "--attainment",
						     "0.9", "--max-connections", "64", NULL});
	add_out(d, k, STEP_SWEEP);
}

static double sweep_s(const struct demo *d)
{
	return comprehensive_load_expected_s(&d->size) + SWEEP_STAGES * d->size.duration_s;
}

static const char *no_price(const struct demo *d)
{
	return d->size.gpus || d->o->price_per_hour > 0
		       ? NULL
		       : "no GPU whose price is known; --price-per-hour gives the price of this machine";
}

static void cost_command(const struct demo *d, struct stage_command *k)
{
	stage_command_add(k, "cost");
	add_dir(d, k, STEP_BIT(LOAD) | STEP_BIT(SPEED));
	if (d->o->price_per_hour > 0) {
		stage_command_add(k, "--price-per-hour");
		stage_command_add(k, "%g", d->o->price_per_hour);
	}
}

static void prove_command(const struct demo *d, struct stage_command *k)
{
	stage_command_words(k, (const char *const[]){"comprehensive", "--quick", "--only", "accuracy,stress",
						     "--model", d->weights, "--no-archive", NULL});
	add_out(d, k, STEP_PROVE);
}

static double prove_s(const struct demo *d)
{
	(void)d;
	return PROVE_S;
}

const struct demo_step step_list[STEP_COUNT] = {
	[STEP_MACHINE] =
		{
			.word = "machine",
			.title = "Hardware and software of this machine",
			.says = "assay reads hardware and software from the system and the driver. It changes no setting. A "
				"value that cannot be read has a reason and is never zero.",
			.hidden = "  host  ",
			.shown = 16,
			.command = machine_command,
			.expected_s = machine_s,
			.judge = judge_machine,
		},
	[STEP_CHECK] =
		{
			.word = "check",
			.title = "Health and speed",
			.says = "assay reads the health of every device. Then it measures memory and arithmetic. It verifies each result before and after the timing, so a fast wrong result fails.",
			.command = check_command,
			.expected_s = check_s,
			.judge = judge_suite,
		},
	[STEP_CHECK_FULL] =
		{
			.word = "check",
			.title = "Health and speed",
			.says = "assay reads the health of every device. Then it measures memory, arithmetic and links with many sizes and data types. It verifies each result before and after the timing.",
			.command = check_full_command,
			.expected_s = check_full_s,
			.judge = judge_suite,
		},
	[STEP_LINKS] =
		{
			.word = "links",
			.title = "Speed of the links",
			.says = "Every pair of GPUs sends data, and every collective runs at five sizes. assay checks each "
				"element that arrives. The slowest link decides how long all GPUs wait.",
			.skips = no_links,
			.command = links_command,
			.expected_s = links_s,
			.judge = judge_suite,
		},
	[STEP_ATTENTION] =
		{
			.word = "attention",
			.title = "Attention, the kernel of language models",
			.says = "assay compares its own attention kernels with the best library on the same card. The report "
				"says which units of the GPU were busy.",
			.skips = no_attention,
			.command = attention_command,
			.expected_s = attention_s,
			.judge = judge_suite,
		},
	[STEP_ROOFLINE] =
		{
			.word = "roofline",
			.title = "Distance to the limits of the hardware",
			.says = "The roofline plot shows the measured figures below the limits of the hardware. Nothing is "
				"measured again: the plot comes from the run directory of the check.",
			.needs = STEP_BIT(CHECK) | STEP_BIT(CHECK_FULL),
			.command = roofline_command,
			.expected_s = short_s,
			.judge = judge_roofline,
		},
	[STEP_REPORT] =
		{
			.word = "report",
			.title = "The same report from the journal",
			.says = "The journal holds every event of the check. assay judges it again and prints the same report. "
				"This works on any machine, also years later.",
			.needs = STEP_BIT(CHECK) | STEP_BIT(CHECK_FULL),
			.shown = 24,
			.command = report_command,
			.expected_s = short_s,
			.judge = judge_noise,
		},
	[STEP_MODEL] =
		{
			.word = "model",
			.title = "A very small language model",
			.says = "assay writes a model of random weights in the usual file formats. It knows nothing yet.",
			.command = model_command,
			.expected_s = machine_s,
			.judge = judge_text,
		},
	[STEP_BEFORE] =
		{
			.word = "before",
			.title = "The model before its training",
			.says = "The weights are random, so the answer is noise.",
			.needs = STEP_BIT(MODEL),
			.shown = 4,
			.command = before_command,
			.expected_s = machine_s,
			.judge = judge_noise,
		},
	[STEP_MEMORY] =
		{
			.word = "memory",
			.title = "Memory of the training",
			.says = "assay computes memory and work before it starts. The run then allocates this memory once.",
			.needs = STEP_BIT(MODEL),
			.shown = 20,
			.command = memory_command,
			.expected_s = machine_s,
			.judge = judge_noise,
		},
	[STEP_TRAIN] =
		{
			.word = "train",
			.title = "Teach the model three sentences",
			.says = "Training lowers the loss. The loss is high if the text surprises the model. At the end the run directory holds the trained model, the journal and a report.",
			.needs = STEP_BIT(MODEL),
			.inner = true,
			.command = train_command,
			.expected_s = train_s,
			.judge = judge_train,
		},
	[STEP_ANSWER] =
		{
			.word = "answer",
			.title = "Ask the trained model",
			.says = "The trained model gets one of the questions. The step passes only if the answer is the taught "
				"sentence, letter by letter.",
			.needs = STEP_BIT(TRAIN),
			.shown = 4,
			.command = answer_command,
			.expected_s = machine_s,
			.judge = judge_answer,
		},
	[STEP_SPEED] =
		{
			.word = "speed",
			.title = "Training speed of a real shape",
			.says = "LoRA training of a model with the shape of a real one. The rate counts steps after start-up and "
				"tuning.",
			.needs = STEP_BIT(WEIGHTS),
			.inner = true,
			.command = speed_command,
			.expected_s = speed_s,
			.judge = judge_train,
		},
	[STEP_WEIGHTS] =
		{
			.word = "weights",
			.title = "A model of a real shape",
			.says = "This model has the shape of a real one and random weights. Its text is noise. Its time, memory and energy are real, because they do not depend on the values of the weights.",
			.skips = has_model,
			.command = weights_command,
			.expected_s = weights_s,
			.judge = judge_text,
		},
	[STEP_PLACE] =
		{
			.word = "memory-plan",
			.title = "Memory of the server",
			.says = "The server plans its memory before it loads the model. It needs memory for weights, KV cache and work space.",
			.needs = STEP_BIT(WEIGHTS),
			.shown = 16,
			.command = place_command,
			.expected_s = short_s,
			.judge = judge_noise,
		},
	[STEP_LOAD] =
		{
			.word = "load",
			.title = "Load test of the server",
			.says = "assay starts its server and sends requests at times that are fixed before the run. Latencies "
				"count from the schedule, so a slow server cannot hide its queue.",
			.needs = STEP_BIT(WEIGHTS),
			.command = load_command,
			.expected_s = load_s,
			.judge = judge_request_load,
		},
	[STEP_SWEEP] =
		{
			.word = "sweep",
			.title = "Highest rate of requests",
			.says = "The sweep raises the rate until the server misses the limits. The limits are 1 s to the first token and 100 ms for each further token, for 90 % of the requests.",
			.needs = STEP_BIT(WEIGHTS),
			.command = sweep_command,
			.expected_s = sweep_s,
			.judge = judge_sweep,
		},
	[STEP_COST] =
		{
			.word = "cost",
			.title = "Price of a token",
			.says = "assay computes the price from the tokens, time and energy of the run and from dated prices. "
				"An unknown value is absent, and its reason is below the table.",
			.needs = STEP_BIT(LOAD) | STEP_BIT(SPEED),
			.shown = 24,
			.skips = no_price,
			.command = cost_command,
			.expected_s = short_s,
			.judge = judge_noise,
		},
	[STEP_PROVE] =
		{
			.word = "prove",
			.title = "Accuracy, and all devices under load",
			.says = "These are two stages of assay comprehensive. First assay compares each precision of the model with the reference. Then all devices work together, and assay checks their results.",
			.needs = STEP_BIT(WEIGHTS),
			.inner = true,
			.command = prove_command,
			.expected_s = prove_s,
			.judge = judge_prove,
		},
};
