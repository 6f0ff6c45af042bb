/* SPDX-License-Identifier: Apache-2.0 */
/* The measured amounts of a run: tokens, seconds, joules. */
#include <math.h>
#include <string.h>
#include "cmd/cost/cost.h"
#include "core/json/member.h"
#include "journal/record/job_ranks.h"
#include "judge/judge.h"
#include "machine/machine.h"

#define WINDOW_DIFFERENCE 0.05 /* of the window's length and the duration that the run states */
#define METER_GAP_MOST_S 3.0   /* without a reading of the node's meter, which is read once a second */

static const char *const kinds[] = {[COST_LOAD] = "load", [COST_SERVE] = "serve", [COST_TRAIN] = "train"};

const char *cost_kind_name(enum cost_kind kind)
{
	return kinds[kind];
}

struct reader {
	const struct record *r;
	const struct record_case *c;
	const struct cost_opts *o;
	struct cost_subject *s;
	json_t *own;	    /* list of GPUs that the reader made */
	const json_t *gpus; /* PCI addresses that the run used */
	/* The telemetry is that of the server's node, read over ssh. NULL: it is this machine's. */
	const struct record_phase *node;
	double clock_error_s;	/* of the node's telemetry */
	struct job_ranks ranks; /* the other ranks of a training run */
};

static double number(const struct record_phase *p, const char *name)
{
	double value;

	return record_number(p, name, &value) ? value : (double)NAN;
}

static const struct record_case *job_of(const struct record *r, enum cost_kind *kind)
{
	for (size_t i = 0; i < r->case_count; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (r->cases[i].job && !strcmp(r->cases[i].probe, kinds[k])) {
				*kind = (enum cost_kind)k;
				return &r->cases[i];
			}
	return NULL;
}

/* The device that the job reported when it was ready; NULL: none. */
static const char *reported_device(const struct record_case *c)
{
	const struct record_phase *load = record_phase(c, "load");

	return load ? record_text(load, "device") : NULL;
}

/* The address of the loaded server, from the command line; NULL: the run started a server of its own. */
static const char *server_url(const struct reader *b)
{
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(b->r->open, "command"), i, word)
	{
		const char *text = json_string_value(word);

		if (text && (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8)))
			return text;
	}
	return NULL;
}

/* A load on a server of another machine says nothing about that machine's GPUs and energy. */
static bool elsewhere(const struct reader *b)
{
	const char *url = b->s->kind == COST_LOAD ? server_url(b) : NULL, *host;
	static const char *const here[] = {"127.", "localhost", "[::1]"};

	if (b->node)
		return false;
	if (b->o->sku)
		return true;
	host = url ? strstr(url, "://") : NULL;
	if (!host)
		return false;
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
		if (!strncmp(host + 3, here[i], strlen(here[i])))
			return false;
	return true;
}

static bool used(const struct reader *b, const char *pci)
{
	const char *device = reported_device(b->c);
	const json_t *one;
	size_t i;

	if (device && strchr(device, '(') && !strcasestr(device, pci)) /* "NVIDIA H200 (0000:00:07.0)" */
		return false;
	json_array_foreach(b->gpus, i,
			   one) if (json_is_string(one) && !strcmp(json_string_value(one), pci)) return true;
	return false;
}

/* The GPUs of the server's node are those of its telemetry. Their names are not in the journal. */
static void find_node_gpus(struct reader *b)
{
	struct cost_subject *s = b->s;

	s->gpus = b->o->gpus ? b->o->gpus : (unsigned)json_array_size(b->gpus);
	text_copy(s->sku, sizeof(s->sku), b->o->sku ? b->o->sku : "");
	text_copy(s->device, sizeof(s->device), b->o->sku ? b->o->sku : "the server's node");
	if (!s->gpus)
		text_copy(
			s->gpus_why, sizeof(s->gpus_why),
			"the server's node has no telemetry of GPUs: give --sku and --gpus, or --price-per-hour");
	else if (!b->o->sku)
		text_copy(s->gpus_why, sizeof(s->gpus_why),
			  "the type of the server's GPUs is not known: give --sku");
}

static void find_gpus(struct reader *b, const struct machine *m, const struct expectations *e)
{
	struct cost_subject *s = b->s;
	const char *device = reported_device(b->c);

	if (b->node) {
		find_node_gpus(b);
		return;
	}
	if (elsewhere(b)) {
		s->gpus = b->o->sku && !b->o->gpus ? 1 : b->o->gpus;
		text_copy(s->sku, sizeof(s->sku), b->o->sku ? b->o->sku : "");
		text_copy(s->device, sizeof(s->device), b->o->sku ? b->o->sku : "a server elsewhere");
		text_copy(s->gpus_why, sizeof(s->gpus_why),
			  b->o->sku ? "" : "the server's GPUs are not known: give --sku and --gpus");
		return;
	}
	for (unsigned i = 0; m && i < machine_gpu_count(m) && (!device || strcmp(device, "cpu") != 0); i++) {
		const struct gpu *g = machine_gpu(m, i);

		if (!used(b, g->pci))
			continue;
		if (!s->gpus++) {
			text_copy(s->device, sizeof(s->device), g->name);
			text_copy(s->sku, sizeof(s->sku), expectations_sku(e, g));
		}
	}
	if (s->gpus) { /* each rank has a GPU of one type */
		s->gpus += b->ranks.count;
		return;
	}
	text_copy(s->device, sizeof(s->device), "CPU");
	text_copy(s->gpus_why, sizeof(s->gpus_why), "the run used no GPU: give --price-per-hour");
}

/* Adds the energy of all GPUs of the run. */
static void gpu_energy(const struct reader *b, struct energy *sum, uint64_t t0_ns, uint64_t t1_ns)
{
	const json_t *one;
	size_t i;

	*sum = (struct energy){0};
	if (!b->s->gpus || elsewhere(b))
		return;
	json_array_foreach(b->gpus, i, one)
	{
		char source[40];
		struct energy e;

		if (!used(b, json_string_value(one)))
			continue;
		snprintf(source, sizeof(source), "gpu:%s", json_string_value(one));
		energy_of_window(&e, record_series(b->r, source, "energy_j"),
				 record_series(b->r, source, "power_w"), t0_ns, t1_ns, b->clock_error_s);
		energy_add(sum, &e);
	}
}

static void host_energy(const struct reader *b, struct energy *out, const char *signal, uint64_t t0_ns,
			uint64_t t1_ns)
{
	const struct series *s = elsewhere(b) ? NULL : record_series(b->r, "host", signal);

	*out = (struct energy){0};
	if (s)
		energy_of_window(out, s, NULL, t0_ns, t1_ns, b->clock_error_s);
}

static void add_part(struct cost_energy *e, const struct energy *part, const char *name)
{
	size_t used_bytes = strlen(e->parts);

	if (!part->devices)
		return;
	if (!part->known) {
		e->known = false;
		if (!e->why[0])
			snprintf(e->why, sizeof(e->why), "%s: %s", name, part->why);
		return;
	}
	e->joules += part->joules;
	e->error_j += part->error_j;
	snprintf(e->parts + used_bytes, sizeof(e->parts) - used_bytes, "%s%s", used_bytes ? ", " : "", name);
}

/* The energy of the window: of the whole node if its power is given; else GPUs (or, of a run on the CPU, the
 * packages) and what of the host was counted. */
static void all_energy(const struct reader *b, struct cost_energy *e, const struct energy *gpu,
		       const struct energy *cpu, const struct energy *dram, double seconds)
{
	*e = (struct cost_energy){.known = true};
	if (b->o->node_power > 0) {
		e->joules = b->o->node_power * seconds;
		snprintf(e->parts, sizeof(e->parts), "whole node, by --node-power");
		return;
	}
	if (elsewhere(b)) {
		snprintf(e->why, sizeof(e->why),
			 "the server is another machine, whose energy was not recorded: give --node-power");
	} else if (b->r->node_count > 1) {
		snprintf(e->why, sizeof(e->why), "the run had several nodes: give --node-power");
	} else if (b->s->gpus && !gpu->devices) {
		snprintf(e->why, sizeof(e->why), "no energy of the GPUs was recorded: give --node-power");
	} else if (!b->s->gpus && !cpu->devices) {
		snprintf(e->why, sizeof(e->why),
			 "the run used no GPU, and the energy of the CPU (RAPL) was not readable");
	}
	e->known = !e->why[0];
	add_part(e, gpu, "GPUs");
	/* On a run with GPUs the host's energy is an addition: without it the rest still counts. */
	if (!b->s->gpus || cpu->known)
		add_part(e, cpu, "CPU packages");
	if (dram->known)
		add_part(e, dram, "memory");
	if (!e->known)
		e->joules = e->error_j = NAN;
}

/* The energy of the parts of a machine in a window. */
struct parts {
	struct energy gpu, cpu, dram;
};

static void own_parts(const struct reader *b, struct parts *out, uint64_t t0_ns, uint64_t t1_ns)
{
	gpu_energy(b, &out->gpu, t0_ns, t1_ns);
	host_energy(b, &out->cpu, "cpu_energy_j", t0_ns, t1_ns);
	host_energy(b, &out->dram, "dram_energy_j", t0_ns, t1_ns);
}

static bool same_node(const struct record *a, const struct record *b)
{
	const char *x = json_member_text(a->open, "boot"), *y = json_member_text(b->open, "boot");

	return *x && *y ? !strcmp(x, y)
			: !strcmp(json_member_text(a->open, "node"), json_member_text(b->open, "node"));
}

/* Whether no lower rank is on the rank's node, so that the energy of the node's host counts here. */
static bool first_of_node(const struct reader *b, unsigned i)
{
	const struct record *r = &b->ranks.rank[i].record;

	if (same_node(b->r, r))
		return false;
	for (unsigned k = 0; k < i; k++)
		if (b->ranks.rank[k].c && same_node(&b->ranks.rank[k].record, r))
			return false;
	return true;
}

/* Adds a rank's part to the sum. If rank 0 has no reading of this part, the sum stays absent. */
static void add_rank_part(struct energy *sum, struct energy *one, const char *rank, const char *why)
{
	char text[sizeof(one->why)];

	if (!sum->devices)
		return;
	if (!one->devices)
		*one = (struct energy){.devices = 1};
	if (!one->known) {
		snprintf(text, sizeof(text), "%s: %.100s", rank,
			 *why	     ? why
			 : *one->why ? one->why
				     : "it was not recorded");
		text_copy(one->why, sizeof(one->why), text);
	}
	energy_add(sum, one);
}

/* The time from the line of step 2 to that of the last one, and the number of steps between. The first two
 * steps tune. A resumed run counts from its last start. */
static bool steady_steps(const struct record *r, uint64_t *t0_ns, uint64_t *t1_ns, double *count)
{
	const struct series *steps = record_series(r, "train", "step");
	size_t first = 0, last = steps && steps->count ? steps->count - 1 : 0;

	for (size_t i = 1; i <= last; i++)
		if (steps->value[i] < steps->value[i - 1])
			first = i;
	while (first < last && steps->value[first] < 2)
		first++;
	if (first >= last)
		return false;
	*t0_ns = steps->t_ns[first];
	*t1_ns = steps->t_ns[last];
	*count = steps->value[last] - steps->value[first];
	return *t1_ns > *t0_ns && *count > 0;
}

/* Adds the energy of rank `i` in its own window, which has the same steps as that of rank 0. */
static void add_rank(const struct reader *b, struct parts *sum, unsigned i, bool steady)
{
	const struct job_rank *rank = &b->ranks.rank[i];
	const struct record_phase *once = rank->c ? record_phase(rank->c, "once") : NULL;
	struct reader own = {.r = &rank->record, .c = rank->c, .o = b->o, .s = b->s};
	uint64_t t0_ns = once ? once->t0_ns : 0, t1_ns = once ? once->t1_ns : 0;
	struct parts parts = {0};
	const char *why = rank->why;
	double steps;

	if (once && !(steady ? steady_steps(&rank->record, &t0_ns, &t1_ns, &steps) : once->has_window))
		why = "its journal does not have the window";
	if (!*why) {
		own.gpus = json_object_get(rank->c->plan, "gpus");
		own_parts(&own, &parts, t0_ns, t1_ns);
	}
	add_rank_part(&sum->gpu, &parts.gpu, rank->name, why);
	if (rank->c && !first_of_node(b, i))
		return;
	add_rank_part(&sum->cpu, &parts.cpu, rank->name, why);
	add_rank_part(&sum->dram, &parts.dram, rank->name, why);
}

/* The energy of all ranks in the window. `steady`: it has the steady steps, otherwise the whole run. */
static void all_parts(const struct reader *b, struct parts *out, uint64_t t0_ns, uint64_t t1_ns, bool steady)
{
	own_parts(b, out, t0_ns, t1_ns);
	for (unsigned i = 0; i < b->ranks.count; i++)
		add_rank(b, out, i, steady);
}

/* Power of the counted parts; 0: not known. */
static double counted_watts(const struct cost_subject *s)
{
	return s->energy.known && s->seconds > 0 ? s->energy.joules / s->seconds : 0;
}

/* Mean power of the node's meter in the window; NaN: it is not known, and node_why has the reason. */
static double metered_watts(const struct reader *b, uint64_t t0_ns, uint64_t t1_ns)
{
	struct cost_subject *s = b->s;
	const char *where = b->node ? "the server's node" : "the run's machine";
	const struct series *meter = record_series(b->r, "host", "node_power_w");
	struct span span;

	if (elsewhere(b))
		snprintf(s->node_why, sizeof(s->node_why),
			 "the server is another machine, whose power meter was not read (--node reads it)");
	else if (!meter || !meter->count)
		snprintf(s->node_why, sizeof(s->node_why),
			 "no power meter (ACPI, hwmon) of %s was readable, or there are several", where);
	else if (series_over(meter, t0_ns, t1_ns, &span))
		snprintf(s->node_why, sizeof(s->node_why),
			 "the power meter of %s has no reading in the window", where);
	else if (span.gap_s > METER_GAP_MOST_S)
		snprintf(s->node_why, sizeof(s->node_why),
			 "the power meter of %s has no reading for %.0f s of the window, allowed %.0f s",
			 where, span.gap_s, METER_GAP_MOST_S);
	else
		return span.mean;
	return NAN;
}

/* A meter that shows less than the parts measures something else, such as a board without its GPUs. */
static void meter_node(const struct reader *b, uint64_t t0_ns, uint64_t t1_ns)
{
	struct cost_subject *s = b->s;
	const double watts = metered_watts(b, t0_ns, t1_ns);

	s->node_w = NAN;
	if (isnan(watts))
		return;
	if (b->r->node_count > 1 || b->ranks.count)
		snprintf(s->node_why, sizeof(s->node_why),
			 "only the power meter of the first rank's node was read");
	else if (s->gpus && !s->energy.known)
		snprintf(
			s->node_why, sizeof(s->node_why),
			"the counted parts have no energy, so nothing shows that its power meter measures the whole node");
	else if (watts < counted_watts(s))
		snprintf(
			s->node_why, sizeof(s->node_why),
			"its power meter shows %.0f W, less than the counted parts: it does not measure the node",
			watts);
	else
		s->node_w = watts;
}

static void measure(const struct reader *b, uint64_t t0_ns, uint64_t t1_ns, bool steady)
{
	struct cost_subject *s = b->s;
	struct parts parts;

	all_parts(b, &parts, t0_ns, t1_ns, steady);
	s->gpu = parts.gpu;
	s->cpu = parts.cpu;
	s->dram = parts.dram;
	all_energy(b, &s->energy, &s->gpu, &s->cpu, &s->dram, s->seconds);
	meter_node(b, t0_ns, t1_ns);
	s->idle_w = NAN;
	if (b->o->idle_power > 0)
		s->idle_w = b->o->idle_power;
	else if (b->o->node_power > 0)
		snprintf(s->idle_why, sizeof(s->idle_why), "the idle power of the node: give --idle-power");
	else if (s->gpu.idle_known)
		s->idle_w = s->gpu.idle_w;
	else
		snprintf(s->idle_why, sizeof(s->idle_why),
			 "no idle second was recorded before the load: give --idle-power");
}

static double length_s(const struct record_phase *p)
{
	return p && p->has_window ? (double)(p->t1_ns - p->t0_ns) * 1e-9 : (double)NAN;
}

static enum status no_tokens(const struct reader *b, struct error *err)
{
	return error_set(err, STATUS_UNAVAILABLE, "%s: the run counted no tokens, so they have no price",
			 b->s->run);
}

struct tokens {
	double input, output, cached; /* cached: part of input; NaN: not known */
};

/* The tokens of a window of a load, in which its energy is measured: those that arrived in it. The counts of
 * a run are of the requests that were due in it, and end later. With users who come in waves, both differ by
 * 10 %. A record without rates has only the counts. */
static struct tokens tokens_of(const struct record_phase *p, double seconds)
{
	struct tokens t = {number(p, "prompt_tokens"), number(p, "output_tokens"),
			   number(p, "cached_tokens")};
	const double output = number(p, "output_tokens_per_s") * seconds,
		     input = number(p, "total_tokens_per_s") * seconds - output;

	if (isnan(input) || !(t.input > 0))
		return t;
	return (struct tokens){input, output, t.cached * input / t.input};
}

/* A stage of a load: its tokens and energy, for the split. */
static void add_stage(const struct reader *b, const struct record_phase *p)
{
	const struct tokens t = tokens_of(p, length_s(p));
	struct cost_subject *s = b->s;
	struct cost_energy e;
	struct parts parts;

	if (s->stages == COST_STAGES || !p->has_window || isnan(t.input) || isnan(t.output))
		return;
	own_parts(b, &parts, p->t0_ns, p->t1_ns);
	all_energy(b, &e, &parts.gpu, &parts.cpu, &parts.dram, length_s(p));
	if (e.known && b->o->node_power <= 0)
		s->stage[s->stages++] =
			(struct split_stage){t.input - (isnan(t.cached) ? 0 : t.cached), t.output, e.joules};
}

static enum status read_load(struct reader *b, struct error *err)
{
	const struct record_phase *once = record_phase(b->c, "once"), *window = record_phase(b->c, "window");
	struct cost_subject *s = b->s;
	double stated = number(once, "window_s");
	struct tokens t;
	const char *doubt;

	if (!window || !window->has_window)
		window = once;
	s->seconds = isnan(stated) ? length_s(window) : stated;
	t = tokens_of(once, s->seconds);
	s->input = t.input;
	s->output = t.output;
	s->cached = t.cached;
	if (!once || !(s->input > 0 || s->output > 0))
		return no_tokens(b, err);
	doubt = json_string_value(json_array_get(json_object_get(once->values, "untrusted"), 0));
	text_copy(s->doubt, sizeof(s->doubt), doubt ? doubt : "");
	if (window->has_window)
		measure(b, window->t0_ns, window->t1_ns, false);
	if (!window->has_window || fabs(length_s(window) - s->seconds) > WINDOW_DIFFERENCE * s->seconds) {
		s->energy = (struct cost_energy){.joules = NAN, .error_j = NAN};
		snprintf(s->energy.why, sizeof(s->energy.why),
			 "the tokens were counted over %.1f s, and the journal's window has %.1f s",
			 s->seconds, length_s(window));
	}
	for (size_t i = 0; i < b->c->phase_count; i++)
		if (!strncmp(b->c->phase[i].name, "stage", 5))
			add_stage(b, &b->c->phase[i]);
	return STATUS_OK;
}

static enum status read_serve(struct reader *b, struct error *err)
{
	const struct record_phase *once = record_phase(b->c, "once"), *serve = record_phase(b->c, "serve");
	struct cost_subject *s = b->s;
	double starts = number(once, "engine_starts");

	if (!serve || !serve->has_window || starts > 1)
		serve = once;
	s->input = number(once, "prompt_tokens");
	s->output = number(once, "tokens");
	s->cached = number(once, "cache_hit_share") * s->input;
	if (!once || !once->has_window || !(s->input > 0 || s->output > 0))
		return no_tokens(b, err);
	s->seconds = length_s(serve);
	measure(b, serve->t0_ns, serve->t1_ns, false);
	return STATUS_OK;
}

static enum status read_train(struct reader *b, struct error *err)
{
	const struct record_phase *once = record_phase(b->c, "once");
	struct cost_subject *s = b->s;
	double steps = number(once, "steps"), steady;
	struct parts parts;
	uint64_t t0_ns, t1_ns;
	bool is_steady;

	s->input = s->cached = NAN;
	s->run_tokens = number(once, "tokens");
	if (!once || !once->has_window || !(s->run_tokens > 0))
		return no_tokens(b, err);
	s->run_seconds = length_s(once);
	all_parts(b, &parts, once->t0_ns, once->t1_ns, false);
	all_energy(b, &s->run_energy, &parts.gpu, &parts.cpu, &parts.dram, s->run_seconds);
	is_steady = steps > 0 && steady_steps(b->r, &t0_ns, &t1_ns, &steady);
	if (is_steady) {
		s->seconds = (double)(t1_ns - t0_ns) * 1e-9;
		s->output = s->run_tokens / steps * steady;
	} else { /* too short for a steady rate: the whole run counts */
		t0_ns = once->t0_ns;
		t1_ns = once->t1_ns;
		s->seconds = s->run_seconds;
		s->output = s->run_tokens;
	}
	measure(b, t0_ns, t1_ns, is_steady);
	return STATUS_OK;
}

/* The GPUs of a node's telemetry, in the form of a plan's. NULL: no memory. Owner: caller. */
static json_t *node_gpus(const struct record *r)
{
	json_t *out = json_array();

	for (size_t i = 0; i < r->series_count; i++)
		if (!strncmp(r->series[i].source, "gpu:", 4) && !strcmp(r->series[i].signal, "power_w"))
			json_array_append_new(out, json_string(r->series[i].source + 4));
	return out;
}

static enum status read_amounts(struct reader *b, const struct expectations *e, struct error *err)
{
	static enum status (*const read[])(struct reader *, struct error *) = {
		[COST_LOAD] = read_load, [COST_SERVE] = read_serve, [COST_TRAIN] = read_train};
	struct cost_subject *s = b->s;
	struct machine *m = NULL;
	const json_t *price = json_object_get(b->r->open, "price_per_hour");
	enum status st = STATUS_OK;

	b->c = job_of(b->r, &s->kind);
	if (!b->c && !b->r->case_count)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: its journal ends before the job began, so there is nothing to price",
				 s->run);
	if (!b->c)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: a run of %s; cost reads runs of load, serve and train", s->run,
				 json_member_text(b->r->open, "suite"));
	b->node = b->s->kind == COST_LOAD ? record_phase(b->c, "node") : NULL;
	b->clock_error_s = b->node ? number(b->node, "clock_error_s") : 0;
	b->gpus = b->node ? b->own = node_gpus(b->r) : json_object_get(b->c->plan, "gpus");
	if (s->kind == COST_TRAIN)
		st = job_ranks_read(&b->ranks, b->r, b->c, err);
	if (!st && b->r->machine)
		st = machine_from_json(&m, b->r->machine, err);
	if (st)
		return st;
	s->price_per_hour = json_is_number(price) ? json_number_value(price) : 0;
	if (b->o->price_per_hour > 0)
		s->price_per_hour = b->o->price_per_hour;
	find_gpus(b, m, e);
	machine_free(m);
	return read[s->kind](b, err);
}

enum status cost_subject_read(struct cost_subject *out, const char *dir, const struct cost_opts *o,
			      const struct expectations *e, struct error *err)
{
	struct record record;
	struct reader b = {.r = &record, .o = o, .s = out};
	enum status st = record_read_run(&record, dir, err);

	*out = (struct cost_subject){.run = dir};
	if (st == STATUS_UNAVAILABLE) /* a folder that the command names does not exist or cannot be read */
		st = STATUS_BAD_INPUT;
	if (st)
		return err->status = st;
	st = read_amounts(&b, e, err);
	if (!st)
		split_fit(&out->split, out->stage, out->stages);
	json_decref(b.own);
	job_ranks_release(&b.ranks);
	record_release(&record);
	return st;
}

double cost_tokens(const struct cost_subject *s)
{
	return (isnan(s->input) ? 0 : s->input) + (isnan(s->output) ? 0 : s->output);
}

double cost_watts(const struct cost_subject *s, double idle_share)
{
	double watts = s->energy.known ? s->energy.joules / s->seconds : (double)NAN;

	return idle_share > 0 ? watts + s->idle_w * idle_share / (1 - idle_share) : watts;
}
