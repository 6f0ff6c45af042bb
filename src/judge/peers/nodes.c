/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between nodes is found by the walk that `assay compare` uses, and told by fact: what most
 * nodes have, and who has what else. A table knows which differences hurt a team.
 */
#include "judge/peers/nodes.h"
#include "core/text/text.h"
#include "judge/expect/expect.h"
#include "judge/compare/facts_difference.h"

enum { FACTS_MAX = 200, VALUES_MAX = 16, VALUE = 96 };

/* A team case is as fast as its slowest rank: a difference in what sets a rank's pace hurts all of them. */
static const char by_methods[] = "METHODS, Nodes held against each other";
static const struct hurt {
	const char *fact; /* with '*' at its end: and all that begins so */
	const char *why;
	const char *source; /* NULL: by_methods */
} hurts[] = {
	{"driver.version", "another driver manages clocks, power and links in its own way", NULL},
	{"gpus", "a team waits for the node with the fewest, or leaves GPUs idle", NULL},
	{"gpus[].name", "other parts: the slowest sets the pace of all", NULL},
	{"gpus[].vbios", "tables of power and clocks are the VBIOS's", NULL},
	{"gpus[].inforom", "data of power and board are the inforom's", NULL},
	{"gpus[].gsp_firmware", "the firmware manages clocks and links", NULL},
	{"gpus[].facts.power_limit*", "less power is a lower clock under load, and all wait for it", NULL},
	{"gpus[].facts.sm_clock_max_mhz", "a lower clock, and all wait for it", NULL},
	{"gpus[].facts.memory_clock_max_mhz", "a lower rate of memory, and all wait for it", NULL},
	{"gpus[].facts.memory_bytes", "the smallest memory bounds the model", NULL},
	{"gpus[].facts.sm_count", "fewer SMs, and all wait for them", NULL},
	{"gpus[].facts.ecc_enabled", "memory without ECC is faster and may be wrong", NULL},
	{"gpus[].facts.mig_mode", "a part of a GPU beside whole ones", NULL},
	{"gpus[].facts.compute_mode", "some GPUs may be shared and others not", NULL},
	{"gpus[].facts.persistence", "without it the driver is loaded anew for each run", NULL},
	{"gpus[].facts.pcie_*", "a narrower way to host and network, and all wait for it", NULL},
	{"gpus[].facts.nvlink_count", "fewer links: a ring through the node has their rate", NULL},
	{"gpus[].facts.nvlink_active", "fewer links: a ring through the node has their rate", NULL},
	{"gpus[].facts.nvlink_rate_gbps", "slower links: a ring through the node has their rate", NULL},
	{"gpus[].facts.fabric_*", "a GPU outside the fabric is in no NVLink domain", NULL},
	{"software.nccl*",
	 "algorithms and protocols differ, and versions far apart do not talk to each other",
	 "NCCL user guide, Troubleshooting"},
	{"software.cublas*", "another library has other kernels", NULL},
	{"cpu.model", "another host: copies and launches have another pace", NULL},
	{"cpu.threads", "another host: copies and launches have another pace", NULL},
	{"ports", "the node with the fewest network ports sets the rate between nodes", NULL},
	{"ports[].state", "a port that is down carries nothing", NULL},
	{"ports[].rate_gbit", "the slowest port sets the rate between nodes", NULL},
	{"ports[].mtu", "packets of one node are too large for another", NULL},
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

/* "gpus[3].vbios" to "gpus[].vbios" */
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

/* Lists of unequal length differ in that, and in what their entries are as far as both go. */
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

/* Values of one fact on one node: several where its entries differ. */
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

/* `path`: what is left of the place below `at`. */
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

/* What most nodes have; of as many the lower node's. */
static enum status tell(struct judge_difference *d, const struct record *r, char (*value)[VALUE],
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

static enum status tell_all(struct judgements *out, const struct record *r, struct error *err)
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
		st = tell(d, r, value, err);
	}
	free(value);
	return st;
}

/* What hurts first, else by place. What all nodes have in the end (entries in another order) goes. */
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
		st = tell_all(out, r, err);
	settle(out);
	return st;
}

void nodes_release(struct judgements *out)
{
	for (size_t i = 0; i < out->difference_count; i++)
		free(out->difference[i].other);
	free(out->difference);
}
