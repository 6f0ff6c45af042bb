/* SPDX-License-Identifier: Apache-2.0 */
#include "train/memory/memory_fit.h"
#include <inttypes.h>
#include "core/text/units.h"

enum {
	BATCH_MAX = 65536,
	LENGTH_STEP = 64,
	LARGEST_ROWS = 3,
	TABLE_ROWS = MEM_KINDS + MEMORY_OUTSIDE_ARENA_COUNT
};

uint64_t memory_fit_most(const struct memory_fit *f)
{
	if (!f->available)
		return UINT64_MAX;
	return f->available > f->leave ? f->available - f->leave : 0;
}

uint64_t memory_fit_room(const struct memory_fit *f)
{
	const uint64_t most = memory_fit_most(f), part = f->available ? f->available / 10 * 9 : UINT64_MAX;

	return part < most ? part : most;
}

/* The bytes of the plan that are compared with f: the host's or the device's. */
static uint64_t memory_fit_bytes(const struct memory_fit *f, const struct memory_plan *m)
{
	return f->of_host ? m->host_bytes : m->bytes;
}

struct memory_fit memory_fit_of_host(const struct memory_fit *f)
{
	return (struct memory_fit){
		.shape = f->shape, .threads = f->threads, .available = f->host, .of_host = true};
}

/* A configuration that cannot be planned counts as too large. */
static uint64_t bytes_of(const struct config *c, const struct memory_fit *f)
{
	struct error ignored = {0};
	struct memory_plan m;

	return memory_plan(&m, f->shape, c, f->threads, &ignored) ? UINT64_MAX : memory_fit_bytes(f, &m);
}

static void set_batch(struct config *c, uint64_t rows)
{
	struct config_training *t = &c->training;
	uint64_t step = (uint64_t)t->per_device_train_batch_size * t->gradient_accumulation_steps;

	t->per_device_train_batch_size = (uint32_t)rows;
	t->gradient_accumulation_steps = (uint32_t)(step / rows);
	if (t->per_device_eval_batch_size > rows)
		t->per_device_eval_batch_size = (uint32_t)rows;
}

static void set_evaluated(struct config *c, uint64_t rows)
{
	c->training.per_device_eval_batch_size = (uint32_t)rows;
}

static void set_length(struct config *c, uint64_t steps)
{
	c->data.max_seq_length = steps * LENGTH_STEP;
}

static void set_samples(struct config *c, uint64_t rows)
{
	c->data.max_train_samples = rows;
}

static void set_rank(struct config *c, uint64_t rank)
{
	c->lora.r = (uint32_t)rank;
}

/* Whether the plan fits with a setting of that value. */
static bool fits(const struct config *c, const struct memory_fit *f, void (*set)(struct config *, uint64_t),
		 uint64_t value)
{
	struct config trial = *c; /* a shallow copy; nothing to release */

	set(&trial, value);
	return bytes_of(&trial, f) <= memory_fit_room(f);
}

/* Returns the index of the largest of `count` ascending values that fits, or 0 if none fits. Memory grows
 * with every setting, so bisection finds it. */
static uint64_t largest(const struct config *c, const struct memory_fit *f,
			void (*set)(struct config *, uint64_t), const uint64_t *values, uint64_t count)
{
	uint64_t low = 0, high = count;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (fits(c, f, set, values ? values[middle] : middle + 1))
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The micro-batches below `limit` that divide a step of `rows` rows, in ascending order. */
static size_t divisors(uint64_t *out, uint64_t rows, uint64_t limit)
{
	size_t count = 0;

	for (uint64_t d = 1; d <= rows && d < limit; d++)
		if (rows % d == 0 && rows / d <= BATCH_MAX)
			out[count++] = d;
	return count;
}

/* The largest micro-batch below `limit` that fits. The last one may be the whole step. It is tried first,
 * because the gradient then lends memory (train/step/lending.h), and it may need less than smaller ones. */
static uint64_t find_batch(const struct config *c, const struct memory_fit *f, uint64_t limit)
{
	uint64_t sizes[2048]; /* no number up to 2^32 has more divisors than 1536 */
	size_t count = divisors(sizes,
				(uint64_t)c->training.per_device_train_batch_size *
					c->training.gradient_accumulation_steps,
				limit);

	if (count && fits(c, f, set_batch, sizes[count - 1]))
		return sizes[count - 1];
	return count ? sizes[largest(c, f, set_batch, sizes, count)] : 0;
}

static void set_recompute(struct config *c, enum config_recompute level)
{
	c->training.recompute = level;
	c->training.gradient_checkpointing = level == CONFIG_RECOMPUTE_FULL;
}

/* Plans *c with this recompute level, and changes *c if the plan fits into `room` bytes. */
static bool find_level(struct config *c, const struct memory_fit *f, enum config_recompute level,
		       uint64_t room)
{
	struct config trial = *c;
	uint64_t rows;

	set_recompute(&trial, level);
	if (trial.training.auto_find_batch_size) {
		rows = find_batch(&trial, f, BATCH_MAX + 1);
		if (rows)
			set_batch(&trial, rows);
	}
	if (bytes_of(&trial, f) > room)
		return false;
	c->training = trial.training;
	return true;
}

void memory_fit_settle(struct config *c, const struct memory_fit *f)
{
	const bool any = c->training.recompute == CONFIG_RECOMPUTE_AUTO;
	const enum config_recompute first = any ? CONFIG_RECOMPUTE_NONE : c->training.recompute;
	const enum config_recompute last = any ? CONFIG_RECOMPUTE_FULL : first;
	enum config_recompute level = first;

	if (!any && !c->training.auto_find_batch_size)
		return;
	while (level <= last && !find_level(c, f, level, memory_fit_room(f)))
		level++;
	/* Full recomputation may use all available memory. If even that does not fit, the level that was
	 * asked for stays, so that the error message describes it. */
	if (level > last && !find_level(c, f, last, memory_fit_most(f)))
		find_level(c, f, first, UINT64_MAX);
	c->training.auto_find_batch_size = false;
}

struct finding_knobs {
	struct memory_fit_knob *knobs;
	size_t count;
	const struct memory_fit *fit;
	uint64_t planned;
	bool any_fits;
};

/* Adds a setting to the list if the plan then fits, or shrinks by at least a twentieth. */
static void add(struct finding_knobs *k, const struct config *trial, const char *setting)
{
	uint64_t bytes = bytes_of(trial, k->fit);
	struct memory_fit_knob *knob = &k->knobs[k->count];

	if (bytes >= k->planned || (bytes > memory_fit_room(k->fit) && bytes > k->planned / 20 * 19))
		return;
	text_copy(knob->setting, sizeof(knob->setting), setting);
	knob->bytes = bytes;
	knob->fits = bytes <= memory_fit_room(k->fit);
	k->any_fits |= knob->fits;
	k->count++;
}

/* Writes the settings that set_batch changed. `before` is the text of settings in front of them. */
static void batch_words(char out[160], const char *before, const struct config *was, const struct config *c)
{
	const struct config_training *t = &c->training;
	char evaluated[64] = "";

	if (c->data.eval.count && t->per_device_eval_batch_size != was->training.per_device_eval_batch_size)
		snprintf(evaluated, sizeof(evaluated), ", per_device_eval_batch_size: %" PRIu32,
			 t->per_device_eval_batch_size);
	snprintf(out, 160,
		 "training: %sper_device_train_batch_size: %" PRIu32 ", gradient_accumulation_steps: %" PRIu32
		 "%s",
		 before, t->per_device_train_batch_size, t->gradient_accumulation_steps, evaluated);
}

static void try_batch(struct finding_knobs *k, const struct config *c)
{
	uint64_t rows = find_batch(c, k->fit, c->training.per_device_train_batch_size);
	struct config trial = *c;
	char setting[160];

	if (!rows)
		return;
	set_batch(&trial, rows);
	batch_words(setting, "", c, &trial);
	add(k, &trial, setting);
}

static void try_evaluated(struct finding_knobs *k, const struct config *c)
{
	uint64_t less = c->training.per_device_eval_batch_size - 1;
	struct config trial = *c;
	char setting[160];

	if (!c->data.eval.count || !less)
		return;
	set_evaluated(&trial, largest(c, k->fit, set_evaluated, NULL, less) + 1);
	snprintf(setting, sizeof(setting), "training: per_device_eval_batch_size: %" PRIu32,
		 trial.training.per_device_eval_batch_size);
	add(k, &trial, setting);
}

static void try_length(struct finding_knobs *k, const struct config *c)
{
	uint64_t steps = (c->data.max_seq_length - 1) / LENGTH_STEP;
	struct config trial = *c;
	char setting[160];

	if (!steps)
		return;
	set_length(&trial, largest(c, k->fit, set_length, NULL, steps) + 1);
	snprintf(setting, sizeof(setting), "data: max_seq_length: %" PRIu64, trial.data.max_seq_length);
	add(k, &trial, setting);
}

/* Tries each higher level. It is always written as `recompute`: a given recompute and gradient_checkpointing
 * could contradict each other. */
static void try_recompute(struct finding_knobs *k, const struct config *c)
{
	static const enum config_recompute levels[] = {CONFIG_RECOMPUTE_CHEAP, CONFIG_RECOMPUTE_FULL,
						       CONFIG_RECOMPUTE_OFFLOAD};
	char setting[160];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		struct config trial = *c;

		if ((c->training.gradient_checkpointing && levels[i] <= CONFIG_RECOMPUTE_FULL) ||
		    c->training.recompute == levels[i])
			continue;
		set_recompute(&trial, levels[i]);
		snprintf(setting, sizeof(setting), "training: recompute: %s",
			 config_recompute_name(levels[i]));
		add(k, &trial, setting);
	}
}

static void try_rank(struct finding_knobs *k, const struct config *c)
{
	struct config trial = *c;
	char setting[160];

	if (!c->has_lora || c->lora.r < 2)
		return;
	set_rank(&trial, largest(c, k->fit, set_rank, NULL, c->lora.r - 1) + 1);
	snprintf(setting, sizeof(setting), "lora: r: %" PRIu32, trial.lora.r);
	add(k, &trial, setting);
}

static void try_lora(struct finding_knobs *k, const struct config *c)
{
	const bool sends_bf16 = c->training.communication_data_type != CONFIG_COMMUNICATION_FP32;
	struct config trial = *c;
	char setting[160];

	if (c->has_lora)
		return;
	trial.has_lora = true;
	trial.training.full_finetuning = false;
	trial.training.master_weights = CONFIG_MASTER_FP32;
	trial.training.offload = CONFIG_OFFLOAD_NONE;
	trial.training.communication_data_type = CONFIG_COMMUNICATION_FP32;
	snprintf(setting, sizeof(setting), "lora: {r: %" PRIu32 "} instead of full_finetuning%s%s%s",
		 trial.lora.r, c->training.master_weights ? " and master_weights" : "",
		 c->training.offload ? " and offload" : "", sends_bf16 ? " and communication_data_type" : "");
	add(k, &trial, setting);
}

/* Smaller optimizer states: first the moments, then also the weights and gradients. Without master weights,
 * which rounds each update, only if nothing exact is enough. */
static void try_states(struct finding_knobs *k, const struct config *c)
{
	static const enum config_master masters[] = {CONFIG_MASTER_SPLIT, CONFIG_MASTER_NONE};
	const bool codes = c->training.optim == CONFIG_ADAMW_8BIT ||
			   c->training.optim == CONFIG_ADAMW_BNB_8BIT ||
			   c->training.optim == CONFIG_PAGED_ADAMW_8BIT;
	struct config trial = *c;
	char setting[160];

	trial.training.optim = CONFIG_ADAMW_8BIT;
	if (!codes)
		add(k, &trial, "training: optim: adamw_8bit");
	if (c->has_lora || c->training.device != CONFIG_DEVICE_GPU || !c->training.bf16)
		return;
	for (size_t i = 0; i < sizeof(masters) / sizeof(masters[0]); i++) {
		if (masters[i] <= c->training.master_weights ||
		    (masters[i] == CONFIG_MASTER_NONE && k->any_fits))
			continue;
		trial.training.master_weights = masters[i];
		snprintf(setting, sizeof(setting), "training: %smaster_weights: %s",
			 codes ? "" : "optim: adamw_8bit, ", config_master_name(masters[i]));
		add(k, &trial, setting);
	}
}

/* Moves the optimizer states to the other side of a GPU run. */
static void try_offload(struct finding_knobs *k, const struct config *c)
{
	struct config trial = *c;

	if (c->has_lora || c->training.device != CONFIG_DEVICE_GPU)
		return;
	trial.training.offload = c->training.offload ? CONFIG_OFFLOAD_NONE : CONFIG_OFFLOAD_OPTIMIZER;
	add(k, &trial, c->training.offload ? "training: offload: none" : "training: offload: optimizer");
}

static void try_4bit(struct finding_knobs *k, const struct config *c)
{
	struct config trial = *c;

	if (!c->has_lora || c->model.load_in_4bit)
		return;
	trial.model.load_in_4bit = true;
	add(k, &trial, "model: load_in_4bit: true");
}

/* The host holds the tokenized rows, so fewer rows need less host memory. */
static void try_samples(struct finding_knobs *k, const struct config *c)
{
	struct config trial = *c;
	struct memory_plan m;
	struct error ignored = {0};
	uint64_t most;
	char setting[160];

	if (!k->fit->of_host || memory_plan(&m, k->fit->shape, c, k->fit->threads, &ignored))
		return;
	most = m.outside[MEMORY_ROWS] / (c->data.max_seq_length * sizeof(int32_t)) + 1;
	set_samples(&trial, largest(c, k->fit, set_samples, NULL, most) + 1);
	snprintf(setting, sizeof(setting), "data: max_train_samples: %" PRIu64, trial.data.max_train_samples);
	add(k, &trial, setting);
}

/* Combines full recomputation and a smaller micro-batch. Neither changes what the model learns. */
static void try_both(struct finding_knobs *k, const struct config *c)
{
	struct config trial = *c;
	char setting[160];

	if (c->training.recompute != CONFIG_RECOMPUTE_OFFLOAD)
		set_recompute(&trial, CONFIG_RECOMPUTE_FULL);
	set_batch(&trial, find_batch(&trial, k->fit, BATCH_MAX + 1));
	batch_words(setting,
		    c->training.recompute == CONFIG_RECOMPUTE_OFFLOAD ? "recompute: offload, "
								      : "recompute: full, ",
		    c, &trial);
	add(k, &trial, setting);
}

size_t memory_fit_knobs(struct memory_fit_knob knobs[MEMORY_FIT_KNOBS], const struct config *c,
			const struct memory_fit *f, const struct memory_plan *planned)
{
	struct finding_knobs k = {.knobs = knobs, .fit = f, .planned = memory_fit_bytes(f, planned)};

	try_evaluated(&k, c);
	try_batch(&k, c);
	try_recompute(&k, c);
	try_length(&k, c);
	try_rank(&k, c);
	try_states(&k, c);
	try_offload(&k, c);
	try_lora(&k, c);
	try_4bit(&k, c);
	try_samples(&k, c);
	if (!k.any_fits && !f->of_host)
		try_both(&k, c);
	return k.count;
}

/* The rows of the plan on one side: a GPU or, if f->of_host, the host. Rows of the other side are 0. */
static void rows_of(uint64_t bytes[TABLE_ROWS], const struct memory_fit *f, const struct memory_plan *m)
{
	memcpy(bytes, m->arena, sizeof(m->arena));
	memcpy(bytes + MEM_KINDS, m->outside, sizeof(m->outside));
	for (int i = 0; m->gpu && i < TABLE_ROWS; i++)
		if (f->of_host == (i < MEM_KINDS || i == MEM_KINDS + MEMORY_LIBRARIES))
			bytes[i] = 0;
}

/* Appends the largest rows of the plan: "saved 20.1 GB, weights 4.31 GB". */
static void add_largest(struct text *out, const struct memory_fit *f, const struct memory_plan *m)
{
	uint64_t bytes[TABLE_ROWS];
	char number[32];

	rows_of(bytes, f, m);
	for (int row = 0; row < LARGEST_ROWS; row++) {
		int at = 0;

		for (int i = 1; i < TABLE_ROWS; i++)
			at = bytes[i] > bytes[at] ? i : at;
		units_format(number, sizeof(number), (double)bytes[at], "B");
		text_addf(out, "%s%s %s", row ? ", " : "",
			  at < MEM_KINDS ? memory_kind_name((enum memory_kind)at)
					 : memory_outside_name((enum memory_outside)(at - MEM_KINDS)),
			  number);
		bytes[at] = 0;
	}
}

/* Appends the settings that are enough, or all if none is: a message has little room, and --plan lists all.
 */
static void add_knobs(struct text *out, const struct memory_fit_knob *knobs, size_t count)
{
	bool any_fits = false;
	char number[32];

	for (size_t i = 0; i < count; i++)
		any_fits = any_fits || knobs[i].fits;
	for (size_t i = 0; i < count; i++) {
		if (any_fits && !knobs[i].fits)
			continue;
		units_format(number, sizeof(number), (double)knobs[i].bytes, "B");
		text_addf(out, "%s%s (%s%s)",
			  out->size ? "; " : "; change one of these settings: ", knobs[i].setting, number,
			  knobs[i].fits ? "" : ", not enough");
	}
}

static enum status check_side(const struct config *c, const struct memory_fit *f,
			      const struct memory_plan *planned, struct error *err)
{
	struct memory_fit_knob knobs[MEMORY_FIT_KNOBS];
	char need[32], there[32];
	struct text rows = {0}, turns = {0};

	if (memory_fit_bytes(f, planned) <= memory_fit_most(f))
		return STATUS_OK;
	units_format(need, sizeof(need), (double)memory_fit_bytes(f, planned), "B");
	units_format(there, sizeof(there), (double)memory_fit_most(f), "B");
	add_largest(&rows, f, planned);
	add_knobs(&turns, knobs, memory_fit_knobs(knobs, c, f, planned));
	error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			"the plan needs %s of %s, but only %s are available: %s%s", need,
			!planned->gpu ? "memory"
			: f->of_host  ? "host memory"
				      : "GPU memory",
			there, text_str(&rows), text_str(&turns));
	text_release(&rows);
	text_release(&turns);
	return STATUS_NO_RESOURCE;
}

enum status memory_fit_check(const struct config *c, const struct memory_fit *f,
			     const struct memory_plan *planned, struct error *err)
{
	const struct memory_fit host = memory_fit_of_host(f);
	enum status st = check_side(c, f, planned, err);

	return st || !planned->gpu ? st : check_side(c, &host, planned, err);
}
