/* SPDX-License-Identifier: Apache-2.0 */
#include "run/suite/target.h"
#include <ctype.h>
#include "core/input/opt.h"
#include "core/text/text.h"
#include "run/probe.h"
#include "run/suite/target_team.h"
#include "team/control/control.h"

static void skip(struct target_found *f, enum status status, enum cause cause, const char *reason)
{
	f->skip = status;
	f->cause = cause;
	text_copy(f->reason, sizeof(f->reason), reason);
}

static struct target_found *add(struct target_found *out, unsigned *count, enum target_kind kind,
				const char *text)
{
	struct target_found *f = &out[(*count)++];

	*f = (struct target_found){.target = {.kind = kind, .numa = -1, .ranks = 1}};
	text_copy(f->text, sizeof(f->text), text);
	return f;
}

/* The number in "gpu12"; -1: the word has another form. */
static int gpu_number(const char *word)
{
	unsigned long n;
	char *end;

	if (strncmp(word, "gpu", 3) || !isdigit((unsigned char)word[3]))
		return -1;
	n = strtoul(word + 3, &end, 10);
	return *end || n > 255 ? -1 : (int)n;
}

/* The numbers in "gpu3>gpu6", where GPU 3 sends to GPU 6; false: the word has another form. */
static bool pair_numbers(const char *word, unsigned pair[2])
{
	const char *second = strchr(word, '>');
	char first[16];
	int n[2];

	if (!second || (size_t)(second - word) >= sizeof(first))
		return false;
	memcpy(first, word, (size_t)(second - word));
	first[second - word] = '\0';
	n[0] = gpu_number(first);
	n[1] = gpu_number(second + 1);
	pair[0] = (unsigned)n[0];
	pair[1] = (unsigned)n[1];
	return n[0] >= 0 && n[1] >= 0 && n[0] != n[1];
}

/* Adds a GPU to the target. If the GPU cannot be used, the target is skipped. */
static void take_gpu(struct target_found *f, const struct machine *m, unsigned index)
{
	const struct gpu *g = machine_gpu(m, index);
	char reason[256];

	if (f->skip)
		return;
	if (!g) {
		snprintf(reason, sizeof(reason), "no GPU %u: this machine has %u", index,
			 machine_gpu_count(m));
		skip(f, STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE, reason);
		return;
	}
	f->target.gpu[f->target.gpu_count++] = (uint16_t)index;
	if (g->status) {
		enum cause fallback = g->status == STATUS_LOST ? CAUSE_GPU_LOST : CAUSE_DRIVER_MISSING;

		snprintf(reason, sizeof(reason), "%s: %s", g->pci,
			 *g->reason ? g->reason : cause_text(fallback));
		skip(f, g->status, g->cause ? g->cause : fallback, reason);
	} else if (!g->granted) {
		snprintf(reason, sizeof(reason), "%s is not granted to assay", g->pci);
		skip(f, STATUS_UNSUPPORTED, CAUSE_NOT_GRANTED, reason);
	}
}

static void add_gpu(struct target_found *out, unsigned *count, const struct machine *m, unsigned index)
{
	char text[TARGET_TEXT];

	snprintf(text, sizeof(text), "gpu%u", index);
	take_gpu(add(out, count, TARGET_GPU, text), m, index);
}

static void add_pair(struct target_found *out, unsigned *count, const struct machine *m, unsigned from,
		     unsigned to)
{
	struct target_found *f;
	char text[TARGET_TEXT];

	snprintf(text, sizeof(text), "gpu%u>gpu%u", from, to);
	f = add(out, count, TARGET_PAIR, text);
	take_gpu(f, m, from);
	take_gpu(f, m, to);
}

/* Adds every ordered pair of the first TARGET_GPUS GPUs; `once`: each pair in one order only. */
static void add_pairs(struct target_found *out, unsigned *count, const struct machine *m, bool once)
{
	unsigned gpus = machine_gpu_count(m) < TARGET_GPUS ? machine_gpu_count(m) : TARGET_GPUS;

	if (gpus < 2)
		skip(add(out, count, TARGET_PAIR, once ? "pair-once" : "pair"), STATUS_UNSUPPORTED,
		     CAUSE_NO_HARDWARE,
		     gpus ? "the machine has one GPU, so there is no pair" : "no NVIDIA GPU on the PCI bus");
	for (unsigned from = 0; gpus > 1 && from < gpus; from++)
		for (unsigned to = once ? from + 1 : 0; to < gpus; to++)
			if (to != from)
				add_pair(out, count, m, from, to);
}

static void add_gpus(struct target_found *out, unsigned *count, const struct machine *m)
{
	unsigned gpus = machine_gpu_count(m);

	if (!gpus)
		skip(add(out, count, TARGET_GPU, "gpu"), STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
		     "no NVIDIA GPU on the PCI bus");
	for (unsigned i = 0; i < gpus && *count < TARGETS_MAX; i++)
		add_gpu(out, count, m, i);
}

static void add_numa(struct target_found *out, unsigned *count, const struct machine *m)
{
	const struct cpu *c = machine_cpu(m);
	char text[32];

	if (c->numa_count < 2) {
		skip(add(out, count, TARGET_CPU, "cpu:node"), STATUS_UNSUPPORTED, CAUSE_NO_HARDWARE,
		     "this machine has one NUMA node: target cpu is the same");
		return;
	}
	for (unsigned i = 0; i < c->numa_count && *count < TARGETS_MAX; i++) {
		struct target_found *f;

		snprintf(text, sizeof(text), "cpu:node%d", c->numa[i].node);
		f = add(out, count, TARGET_CPU, text);
		f->target.numa = c->numa[i].node;
		if (!c->numa[i].cpus)
			skip(f, STATUS_UNSUPPORTED, CAUSE_NOT_GRANTED,
			     "no CPU of this NUMA node is granted to assay");
	}
}

/* Adds the whole node: every usable GPU, up to the size of a target. */
static void add_node(struct target_found *out, unsigned *count, const struct machine *m)
{
	struct target *t = &add(out, count, TARGET_NODE, "node")->target;

	for (unsigned i = 0; i < machine_gpu_count(m) && t->gpu_count < TARGET_GPUS; i++)
		if (!machine_gpu(m, i)->status && machine_gpu(m, i)->granted)
			t->gpu[t->gpu_count++] = (uint16_t)i;
}

/* Adds "node:0,2,3": these GPUs of the node. */
static bool add_part_of_node(struct target_found *out, unsigned *count, const struct machine *m,
			     const char *word, long *twice)
{
	uint64_t member[TARGET_MEMBERS / 64];
	struct target_found *f;

	if (strncmp(word, "node:", 5) || strlen(word) >= TARGET_TEXT ||
	    !members_parse(member, word + 5, 256, twice) || members_count(member) > TARGET_GPUS)
		return false;
	f = add(out, count, TARGET_NODE, word);
	for (unsigned i = 0; i < 256; i++)
		if (members_have(member, i))
			take_gpu(f, m, i);
	return true;
}

/* Adds the first 2, 4, 8 .. GPUs of the node, then all of them. */
static void add_node_doubling(struct target_found *out, unsigned *count, const struct machine *m)
{
	unsigned wholes = 0;
	struct target all;

	add_node(out, &wholes, m);
	all = out->target;
	for (unsigned n = 2; n < all.gpu_count; n *= 2) {
		uint64_t member[TARGET_MEMBERS / 64] = {0};
		char list[TARGET_TEXT - 5], text[TARGET_TEXT];
		struct target *t;

		for (unsigned i = 0; i < n; i++)
			members_add(member, all.gpu[i]);
		members_text(list, sizeof(list), member); /* 16 numbers fit */
		snprintf(text, sizeof(text), "node:%s", list);
		t = &add(out, count, TARGET_NODE, text)->target;
		memcpy(t->gpu, all.gpu, n * sizeof(*t->gpu));
		t->gpu_count = n;
	}
	add_node(out, count, m);
}

/* Adds the ranks of the first 1, 2, 4 .. nodes, then all of them. */
static void add_team_doubling(struct target_found *out, unsigned *count, const struct team_shape *team)
{
	for (unsigned nodes = 1; team && nodes < team->nodes; nodes *= 2) {
		char list[TARGET_TEXT - 5], text[TARGET_TEXT];
		uint64_t member[TARGET_MEMBERS / 64] = {0};
		struct target_found *f;
		bool fits;

		for (unsigned r = 0; r < team->size && r < TARGET_MEMBERS; r++)
			if (team->rank[r].node < nodes)
				members_add(member, r);
		if (members_count(member) < 2)
			/* one rank per node: a single node has no second rank to communicate with */
			continue;
		fits = members_text(list, sizeof(list), member);
		snprintf(text, sizeof(text), "team:%s", list);
		f = add(out, count, TARGET_TEAM, fits ? text : "team");
		memcpy(f->target.member, member, sizeof(member));
		if (!fits)
			skip(f, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
			     "the list of the first nodes' ranks is too long: number the ranks node by node");
	}
	add(out, count, TARGET_TEAM, "team");
}

/* Adds "team", or "team:0-3" for some of its ranks. */
static bool add_team(struct target_found *out, unsigned *count, unsigned ranks, const char *word, long *twice)
{
	uint64_t member[TARGET_MEMBERS / 64] = {0};

	if (strncmp(word, "team", 4) || (word[4] && word[4] != ':') || strlen(word) >= TARGET_TEXT ||
	    (word[4] && !members_parse(member, word + 5, ranks ? ranks : TARGET_MEMBERS, twice)))
		return false;
	memcpy(add(out, count, TARGET_TEAM, word)->target.member, member, sizeof(member));
	return true;
}

/* `twice`: a number that the list names twice; -1: none. */
static enum status no_target(const char *word, long twice, const char *place, struct error *err)
{
	static const char *const known[] = {"cpu",  "cpu-each-numa", "gpu",  "gpu0",
					    "pair", "pair-once",     "node", "node-doubling",
					    "team", "team-doubling"};
	const char *near;

	if (twice >= 0)
		return error_set(err, STATUS_BAD_INPUT, "%s: target: \"%.40s\" names %s %ld twice", place,
				 word, *word == 'n' ? "GPU" : "rank", twice);
	near = opt_nearest(word, known, sizeof(known) / sizeof(known[0]));
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s: target: \"%.40s\" is not one of cpu, cpu-each-numa, gpu, gpuN, pair, pair-once, "
		"gpuN>gpuM, node, node-doubling, node:LIST, team, team-doubling, team:LIST%s%s",
		place, word, near ? "; did you mean " : "", near ? near : "");
}

enum status target_word(const char *word, struct error *err)
{
	static const char *const plain[] = {"all",	 "cpu",	 "cpu-each-numa", "gpu",  "pair",
					    "pair-once", "node", "node-doubling", "team", "team-doubling"};
	uint64_t member[TARGET_MEMBERS / 64];
	unsigned pair[2];
	long twice = -1;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(word, plain[i]))
			return STATUS_OK;
	if (!strncmp(word, "cpu:node", 8) || pair_numbers(word, pair) || gpu_number(word) >= 0)
		return STATUS_OK;
	if ((!strncmp(word, "node:", 5) && members_parse(member, word + 5, 256, &twice)) ||
	    (!strncmp(word, "team:", 5) && members_parse(member, word + 5, TARGET_MEMBERS, &twice)))
		return STATUS_OK;
	return no_target(word, twice, "command line", err);
}

enum status target_expand(struct target_found *out, unsigned *count, const char *word,
			  const struct machine *m, const struct team_shape *team, const char *place,
			  struct error *err)
{
	unsigned pair[2];
	long twice = -1;

	*count = 0;
	if (!strcmp(word, "cpu"))
		add(out, count, TARGET_CPU, "cpu");
	else if (!strcmp(word, "cpu-each-numa"))
		add_numa(out, count, m);
	else if (!strcmp(word, "gpu"))
		add_gpus(out, count, m);
	else if (!strcmp(word, "node"))
		add_node(out, count, m);
	else if (!strcmp(word, "node-doubling"))
		add_node_doubling(out, count, m);
	else if (!strcmp(word, "team-doubling"))
		add_team_doubling(out, count, team);
	else if (!strcmp(word, "pair") || !strcmp(word, "pair-once"))
		add_pairs(out, count, m, word[4] != '\0');
	else if (pair_numbers(word, pair))
		add_pair(out, count, m, pair[0], pair[1]);
	else if (gpu_number(word) >= 0 && !machine_gpu_count(m)) {
		add_gpus(out, count, m);
		text_copy(out->text, sizeof(out->text), word);
	} else if (gpu_number(word) >= 0)
		add_gpu(out, count, m, (unsigned)gpu_number(word));
	if (*count || add_part_of_node(out, count, m, word, &twice) ||
	    add_team(out, count, team ? team->size : 0, word, &twice))
		return STATUS_OK;
	return no_target(word, twice, place, err);
}

enum status target_wish(const char *word, const struct machine *m, struct error *err)
{
	static const char place[] = "command line: target";
	struct target_found found[TARGETS_MAX];
	unsigned gpus = machine_gpu_count(m), count, pair[2];
	int gpu = gpu_number(word);
	bool two = pair_numbers(word, pair);

	if (!strcmp(word, "all") || !strncmp(word, "cpu:node", 8))
		return STATUS_OK;
	if (gpu < 0 && !two)
		return target_expand(found, &count, word, m, NULL, "command line", err);
	if (two ? pair[0] < gpus && pair[1] < gpus : (unsigned)gpu < gpus)
		return STATUS_OK;
	if (!gpus)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: this machine has no %s: no NVIDIA GPU is on the PCI bus; use cpu",
				 place, word);
	if (gpus == 1)
		return error_set(err, STATUS_BAD_INPUT, "%s: this machine has no %s; it has gpu0 and cpu",
				 place, word);
	return error_set(err, STATUS_BAD_INPUT, "%s: this machine has no %s; it has gpu0 to gpu%u and cpu",
			 place, word, gpus - 1);
}

static enum status find_gpu(struct target *t, const char *pci, const struct machine *m, struct error *err)
{
	for (unsigned i = 0; i < machine_gpu_count(m); i++)
		if (!strcmp(machine_gpu(m, i)->pci, pci)) {
			t->gpu[t->gpu_count++] = (uint16_t)i;
			return STATUS_OK;
		}
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_GPU_MISSING, "GPU %.20s is not in this machine",
			       pci);
}

enum status target_parse(struct target *t, const char *text, const json_t *gpus, const struct machine *m,
			 struct error *err)
{
	unsigned pair[2];
	long twice;
	size_t i;
	json_t *pci;

	*t = (struct target){.numa = -1, .ranks = 1};
	if (!strcmp(text, "cpu") || !strncmp(text, "cpu:node", 8)) {
		char *end = NULL;

		t->kind = TARGET_CPU;
		if (text[3] &&
		    (!isdigit((unsigned char)text[8]) || (t->numa = (int)strtol(text + 8, &end, 10), *end)))
			return error_set(err, STATUS_BAD_INPUT, "\"%.40s\" is not a target", text);
		return STATUS_OK;
	}
	if (pair_numbers(text, pair))
		t->kind = TARGET_PAIR;
	else if (!strcmp(text, "node") || !strncmp(text, "node:", 5))
		t->kind = TARGET_NODE;
	else if (!strcmp(text, "team") ||
		 (!strncmp(text, "team:", 5) && members_parse(t->member, text + 5, TARGET_MEMBERS, &twice)))
		t->kind = TARGET_TEAM;
	else if (gpu_number(text) >= 0)
		t->kind = TARGET_GPU;
	else
		return error_set(err, STATUS_BAD_INPUT, "\"%.40s\" is not a target", text);
	json_array_foreach((json_t *)gpus, i, pci)
	{
		enum status st;

		if (!json_is_string(pci) || t->gpu_count == TARGET_GPUS)
			return error_set(err, STATUS_BAD_INPUT, "%.40s: its list of GPUs is not valid", text);
		st = find_gpu(t, json_string_value(pci), m, err);
		if (st)
			return st;
	}
	if (t->kind == TARGET_GPU && t->gpu_count != 1)
		return error_set(err, STATUS_BAD_INPUT, "%.40s: the target needs one GPU", text);
	if (t->kind == TARGET_PAIR && (t->gpu_count != 2 || t->gpu[0] == t->gpu[1]))
		return error_set(err, STATUS_BAD_INPUT, "%.40s: the target needs two GPUs", text);
	return STATUS_OK;
}

bool target_asked(const struct target *t, const char *text, const char *word)
{
	if (!word || !strcmp(word, "all"))
		return true;
	if (!strcmp(word, "cpu"))
		return t->kind == TARGET_CPU;
	if (!strcmp(word, "cpu-each-numa"))
		return t->kind == TARGET_CPU && !strncmp(text, "cpu:node", 8);
	if (!strcmp(word, "gpu"))
		return t->kind == TARGET_GPU;
	if (!strcmp(word, "pair"))
		return t->kind == TARGET_PAIR;
	if (!strcmp(word, "node") || !strcmp(word, "node-doubling"))
		return t->kind == TARGET_NODE;
	if (!strcmp(word, "team") || !strcmp(word, "team-doubling"))
		return t->kind == TARGET_TEAM;
	if (!strcmp(word, "pair-once"))
		return t->kind == TARGET_PAIR && t->gpu[0] < t->gpu[1];
	return !strcmp(word, text);
}

bool gpu_busy(const struct gpu *g, char *reason, size_t size)
{
	double total = gpu_get(g, GPU_FACT_memory_bytes, 0);
	double used = total > 0 ? total - gpu_get(g, GPU_FACT_memory_free_bytes, total) : 0;
	double processes = gpu_get(g, GPU_FACT_processes, 0);
	double graphics = gpu_get(g, GPU_FACT_processes_graphics, 0);
	double busy = gpu_get(g, GPU_FACT_utilization_share, 0);

	*reason = '\0';
	/* An idle desktop does not count: graphics processes only, below 5 % of the time and 10 % of the
	 * memory. */
	if (processes > 0 && processes <= graphics && busy < 0.05 && used < 0.1 * total)
		return false;
	if (processes > 0)
		snprintf(reason, size, "%s: %.0f other process%s it", g->pci, processes,
			 processes > 1 ? "es use" : " uses");
	else if (used > 1024.0 * 1024 * 1024)
		snprintf(reason, size, "%s: %.1f GiB of its memory are in use", g->pci,
			 used / (1024.0 * 1024 * 1024));
	else if (busy > 0.05)
		snprintf(reason, size, "%s: busy %.0f %% of the time", g->pci, 100 * busy);
	return *reason;
}

static bool named(const struct engine *e, char *const *engines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(engines[i], e->name))
			return true;
	return false;
}

const char *target_default(const struct probe *p, char *const *engines, size_t count)
{
	const struct engine *first = NULL; /* the first engine that the case names */
	bool cpu = false, named_cpu = false;

	if (p->kind == PROBE_READING)
		return p->reads == TARGET_GPU ? "gpu" : "node";
	for (const struct engine *const *e = p->engines; *e; e++) {
		bool here = (*e)->targets & TARGET_CPU, wanted = named(*e, engines, count);

		cpu = cpu || here;
		named_cpu = named_cpu || (wanted && here);
		first = first || !wanted ? first : *e;
	}
	if (first ? named_cpu : cpu)
		return "cpu";
	first = first ? first : p->engines[0];
	if (first->targets & TARGET_GPU)
		return "gpu";
	return first->targets & TARGET_PAIR ? "pair" : "node";
}
