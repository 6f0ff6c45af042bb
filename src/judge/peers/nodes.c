/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the facts in which nodes differ, with the same comparison that `assay compare` uses. For each fact it
 * gives the value of most nodes, and the nodes with another value. A table says which differences hurt a
 * team. */
#include "judge/peers/nodes.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"
#include "judge/compare/facts_difference.h"

enum { FACTS_MAX = 200, VALUES_MAX = 16, VALUE = 96 };

/* A team case is as fast as its slowest rank, so a difference in a fact that sets the pace of one rank hurts
 * all ranks. */
static const char by_methods[] = "docs/explanation/methods/nodes.md";
static const struct hurt {
	const char *fact; /* a trailing '*' matches every fact that begins so */
	const char *why;
	const char *source; /* NULL: by_methods */
} hurts[] = {
	{"driver.version", "another driver version manages clocks, power and links in another way", NULL},
	{"gpus", "the team waits for the node with the fewest GPUs, or leaves GPUs idle", NULL},
	{"gpus[].name", "the GPU models differ, and the slowest sets the pace of all", NULL},
	{"gpus[].vbios", "the VBIOS holds the tables of power and clocks", NULL},
	{"gpus[].inforom", "the inforom holds data of power and board", NULL},
	{"gpus[].gsp_firmware", "the firmware manages clocks and links", NULL},
	{"gpus[].facts.power_limit*",
	 "a lower power limit means a lower clock under load, and all ranks wait for it", NULL},
	{"gpus[].facts.sm_clock_max_mhz", "the clock is lower, and all ranks wait for it", NULL},
	{"gpus[].facts.memory_clock_max_mhz", "the memory rate is lower, and all ranks wait for it", NULL},
	{"gpus[].facts.memory_bytes", "the smallest memory limits the size of the model", NULL},
	{"gpus[].facts.sm_count", "the GPU has fewer SMs, and all ranks wait for it", NULL},
	{"gpus[].facts.ecc_enabled", "memory without ECC is faster and can hold wrong data unnoticed", NULL},
	{"gpus[].facts.mig_mode", "only part of a GPU is used next to whole GPUs", NULL},
	{"gpus[].facts.compute_mode", "some GPUs can be shared and others cannot", NULL},
	{"gpus[].facts.persistence", "without persistence mode the driver loads anew for each run", NULL},
	{"gpus[].facts.pcie_*", "the path to host and network is narrower, and all ranks wait for it", NULL},
	{"gpus[].facts.nvlink_count", "the node has fewer links, and they limit every ring through it", NULL},
	{"gpus[].facts.nvlink_active", "the node has fewer links, and they limit every ring through it",
	 NULL},
	{"gpus[].facts.nvlink_rate_gbps", "the links are slower, and they limit every ring through the node",
	 NULL},
	{"gpus[].facts.fabric_*", "a GPU outside the fabric is in no NVLink domain", NULL},
	{"software.nccl*", "algorithms and protocols differ, and versions far apart cannot communicate",
	 "NCCL user guide, Troubleshooting"},
	{"software.cublas*", "another library version has other kernels", NULL},
	{"cpu.model", "the host differs, so copies and launches have another pace", NULL},
	{"cpu.threads", "the host differs, so copies and launches have another pace", NULL},
	{"ports", "the node with the fewest network ports limits the rate between nodes", NULL},
	{"ports[].state", "a port that is down carries no data", NULL},
	{"ports[].rate_gbit", "the slowest port limits the rate between nodes", NULL},
	{"ports[].mtu", "packets of one node can be too large for another", NULL},
};

static const struct hurt *hurt_of(const char *fact)
{
	for (size_t i = 0; i < sizeof(hurts) / sizeof(hurts[0]); i++) {
		size_t n = strlen(hurts[i].fact);
		bool any = hurts[i].fact[n - 1] == '*';

		if (any ? !strncmp(fact, hurts[i].fact, n - 1) : !strcmp(fact, hurts[i].fact))
			return &hurts[i];
	}
	return NULL;
}

/* Turns "gpus[3].vbios" into "gpus[].vbios". */
static void general(char *out, size_t size, const char *path)
{
	size_t n = 0;
	bool inside = false;

	for (; *path && n + 1 < size; path++) {
		inside = inside && *path != ']';
		if (!inside)
			out[n++] = *path;
		inside |= *path == '[';
	}
	out[n] = '\0';
}

static enum status add_fact(struct judgements *out, const char *path, bool how_many, struct error *err)
{
	struct judge_difference *d;
	const struct hurt *hurt;
	char fact[sizeof(d->fact)];

	general(fact, sizeof(fact), path);
	for (size_t i = 0; i < out->difference_count; i++)
		if (!strcmp(out->difference[i].fact, fact)) {
			out->difference[i].how_many |= how_many;
			return STATUS_OK;
		}
	if (out->difference_count == FACTS_MAX)
		return STATUS_OK;
	d = expect_push(&out->difference, &out->difference_count, sizeof(*d), err);
	if (!d)
		return STATUS_NO_RESOURCE;
	*d = (struct judge_difference){.how_many = how_many};
	text_copy(d->fact, sizeof(d->fact), fact);
	hurt = hurt_of(fact);
	if (hurt) {
		d->hurts = hurt->why;
		d->source = hurt->source ? hurt->source : by_methods;
	}
	return STATUS_OK;
}

/* Two lists of different length differ in their length, and in the entries that both have. */
static enum status visit(void *arg, const char *path, const json_t *a, const json_t *b, struct error *err)
{
	bool lists = json_is_array(a) && json_is_array(b);
	enum status st = add_fact(arg, path, lists && json_array_size(a) != json_array_size(b), err);
	char below[128];

	for (size_t i = 0; lists && i < json_array_size(a) && i < json_array_size(b) && !st; i++) {
		snprintf(below, sizeof(below), "%.100s[%zu]", path, i);
		st = facts_difference_walk(below, json_array_get(a, i), json_array_get(b, i), visit, arg,
					   err);
	}
	return st;
}

/* The values of one fact on one node; more than one if its list entries differ. */
struct values {
	struct {
		char text[VALUE];
		unsigned count;
	} value[VALUES_MAX];
	unsigned count;
};

static void add_value(struct values *v, const json_t *leaf)
{
	char text[VALUE];
	unsigned i = 0;

	facts_difference_leaf(leaf, text, sizeof(text));
	while (i < v->count && strcmp(v->value[i].text, text))
		i++;
	if (i == VALUES_MAX)
		return;
	if (i == v->count)
		text_copy(v->value[v->count++].text, VALUE, text);
	v->value[i].count++;
}

/* `path`: the rest of the place, below `at`. */
static void find(struct values *v, const json_t *at, const char *path, bool how_many)
{
	char key[64];
	size_t n = strcspn(path, ".["), i;
	json_t *entry, *length;

	if (!*path) {
		length = how_many ? json_integer((json_int_t)json_array_size(at)) : NULL;
		add_value(v, how_many ? length : at);
		json_decref(length);
		return;
	}
	if (!strncmp(path, "[]", 2)) {
		json_array_foreach((json_t *)at, i, entry)
		{
			find(v, entry, path + 2 + (path[2] == '.'), how_many);
		}
		return;
	}
	snprintf(key, sizeof(key), "%.*s", (int)n, path);
	find(v, json_object_get(at, key), path + n + (path[n] == '.'), how_many);
}

static void value_of(char *out, size_t size, const json_t *machine, const struct judge_difference *d)
{
	struct values v = {.count = 0};
	size_t used = 0;

	find(&v, machine, d->fact, d->how_many);
	text_copy(out, size, v.count ? v.value[0].text : "absent");
	if (v.count < 2)
		return;
	for (unsigned i = 0; i < v.count && used + 1 < size; i++) {
		snprintf(out + used, size - used, "%s%.60s (%u)", i ? ", " : "", v.value[i].text,
			 v.value[i].count);
		used = strlen(out);
	}
}

static enum status add_other(struct judge_difference *d, unsigned node, const char *value, struct error *err)
{
	struct judge_node_value *more = expect_push(&d->other, &d->other_count, sizeof(*more), err);

	if (!more)
		return STATUS_NO_RESOURCE;
	more->node = node;
	text_copy(more->value, sizeof(more->value), value);
	return STATUS_OK;
}

/* Finds the value of most nodes; of equally frequent values, that of the lower node. */
static enum status fill_difference(struct judge_difference *d, const struct record *r, char (*value)[VALUE],
				   struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < r->node_count; i++) {
		unsigned alike = 0;

		for (size_t k = 0; r->node[i].machine && k < r->node_count; k++)
			alike += r->node[k].machine && !strcmp(value[i], value[k]);
		if (alike > d->alike) {
			d->alike = alike;
			text_copy(d->majority, sizeof(d->majority), value[i]);
		}
	}
	for (unsigned i = 0; i < r->node_count && !st; i++)
		if (r->node[i].machine && strcmp(value[i], d->majority))
			st = add_other(d, i, value[i], err);
	return st;
}

static enum status fill_differences(struct judgements *out, const struct record *r, struct error *err)
{
	char(*value)[VALUE] = calloc(r->node_count, sizeof(*value));
	enum status st = STATUS_OK;

	if (!value)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to judge %zu nodes", r->node_count);
	for (size_t i = 0; i < out->difference_count && !st; i++) {
		struct judge_difference *d = &out->difference[i];

		for (size_t k = 0; k < r->node_count; k++)
			if (r->node[k].machine)
				value_of(value[k], sizeof(value[k]), r->node[k].machine, d);
		st = fill_difference(d, r, value, err);
	}
	free(value);
	return st;
}

/* Differences that hurt come first, then by place. */
static int order(const void *a, const void *b)
{
	const struct judge_difference *x = a, *y = b;

	if (!x->hurts != !y->hurts)
		return x->hurts ? -1 : 1;
	return strcmp(x->fact, y->fact);
}

static void settle(struct judgements *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < out->difference_count; i++)
		if (out->difference[i].other_count)
			out->difference[kept++] = out->difference[i];
	out->difference_count = kept;
	if (kept)
		qsort(out->difference, kept, sizeof(*out->difference), order);
}

enum status nodes_judge(struct judgements *out, const struct judge_context *ctx, struct error *err)
{
	const struct record *r = ctx->record;
	const json_t *first = NULL;
	enum status st = STATUS_OK;

	for (size_t i = 0; i < r->node_count && !st; i++) {
		if (first && r->node[i].machine)
			st = facts_difference_walk("", first, r->node[i].machine, visit, out, err);
		if (!first)
			first = r->node[i].machine;
	}
	if (!st && out->difference_count)
		st = fill_differences(out, r, err);
	settle(out);
	return st;
}

void nodes_release(struct judgements *out)
{
	for (size_t i = 0; i < out->difference_count; i++)
		free(out->difference[i].other);
	free(out->difference);
}
