/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of an attention plan from the library's heuristics. */
#include "gpu/sdpa/sdpa.h"
#include "gpu/sdpa/internal.h"
#include "core/text/text.h"

static void candidate_release(struct sdpa *s, struct sdpa_candidate *c)
{
	sdpa_desc_destroy(s, &c->plan);
	sdpa_desc_destroy(s, &c->config);
}

void sdpa_candidates_clear(struct sdpa_plan *p)
{
	for (unsigned i = 0; i < p->count; i++)
		candidate_release(p->s, &p->candidates[i]);
	p->count = p->selected = 0;
}

static enum status make_room(struct sdpa_plan *p, struct error *err)
{
	unsigned room = 2 * p->room + 16;
	struct sdpa_candidate *more;

	if (p->count < p->room)
		return STATUS_OK;
	more = realloc(p->candidates, room * sizeof(*more));
	if (!more)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %u attention plans", room);
	p->candidates = more;
	p->room = room;
	return STATUS_OK;
}

/* Compiles the kernel. The first build takes a second or more. */
static enum status build(struct sdpa_plan *p, struct sdpa_candidate *c, struct error *err)
{
	struct sdpa *s = p->s;
	int64_t bytes = 0, count = 0;
	enum status st;

	st = sdpa_desc_create(s, &c->plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, err);
	if (!st)
		st = DNN_CALL(s, err, desc_set, c->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
			      1, &s->handle);
	if (!st)
		st = sdpa_set_desc(s, c->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, c->config, err);
	if (!st)
		st = DNN_CALL(s, err, desc_finalize, c->plan);
	if (!st)
		st = DNN_CALL(s, err, desc_get, c->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
			      CUDNN_TYPE_INT64, 1, &count, &bytes);
	if (st)
		return st;
	c->workspace_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
	if (sdpa_candidate_bytes(c) > s->workspace_max)
		return error_set_cause(
			err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			"cuDNN's attention needs %llu bytes of workspace, but only %llu are allowed",
			(unsigned long long)sdpa_candidate_bytes(c), (unsigned long long)s->workspace_max);
	return STATUS_OK;
}

static void read_knobs(struct sdpa *s, struct sdpa_candidate *c)
{
	cudnnBackendDescriptor_t choices[SDPA_KNOBS_MAX] = {NULL};
	int64_t count = 0, one = 0;
	unsigned made = 0;

	while (made < SDPA_KNOBS_MAX &&
	       !sdpa_desc_create(s, &choices[made], CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, NULL))
		made++;
	if (s->dnn.desc_get(c->config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made,
			    &count, choices))
		count = 0;
	for (unsigned i = 0; i < made && i < (unsigned)count; i++) {
		struct sdpa_knob *knob = &c->knobs[c->knob_count];
		cudnnBackendKnobType_t type = 0;

		if (!s->dnn.desc_get(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
				     &one, &type) &&
		    !s->dnn.desc_get(choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one,
				     &knob->value)) {
			knob->type = (int)type;
			c->knob_count++;
		}
	}
	for (unsigned i = 0; i < made; i++)
		sdpa_desc_destroy(s, &choices[i]);
}

/* Reads the engine and knobs of a heuristic, for the candidate's name. Values that cannot be read stay 0. */
static void read_config(struct sdpa *s, struct sdpa_candidate *c)
{
	cudnnBackendDescriptor_t engine;
	int64_t count = 0;

	if (sdpa_desc_create(s, &engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR, NULL))
		return;
	if (!s->dnn.desc_get(c->config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
			     &engine) &&
	    s->dnn.desc_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &c->engine))
		c->engine = 0;
	sdpa_desc_destroy(s, &engine);
	read_knobs(s, c);
}

static bool same_knobs(const struct sdpa_candidate *a, const struct sdpa_candidate *b)
{
	if (a->knob_count != b->knob_count)
		return false;
	for (unsigned i = 0; i < a->knob_count; i++) {
		unsigned j = 0;

		while (j < b->knob_count && b->knobs[j].type != a->knobs[i].type)
			j++;
		if (j == b->knob_count || b->knobs[j].value != a->knobs[i].value)
			return false;
	}
	return true;
}

static bool already(const struct sdpa_plan *p, const struct sdpa_candidate *c)
{
	for (unsigned i = 0; i < p->count; i++) {
		const struct sdpa_candidate *other = &p->candidates[i];

		if (other->graph == c->graph && other->engine == c->engine && same_knobs(other, c))
			return true;
	}
	return false;
}

enum status sdpa_candidate_take(struct sdpa_plan *p, struct sdpa_candidate *c, struct error *why,
				struct error *err)
{
	enum status st = make_room(p, err);

	if (!st && already(p, c)) {
		candidate_release(p->s, c);
		return STATUS_OK;
	}
	if (st) {
		candidate_release(p->s, c);
		return st;
	}
	if (build(p, c, why))
		candidate_release(p->s, c);
	else
		p->candidates[p->count++] = *c;
	return STATUS_OK;
}

static enum status ask_heuristics(struct sdpa_plan *p, struct sdpa_graph *g,
				  cudnnBackendDescriptor_t *heuristics, int64_t *count, struct error *err)
{
	struct sdpa *s = p->s;
	enum status st = sdpa_desc_create(s, heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, err);

	if (!st)
		st = sdpa_set_desc(s, *heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph, err);
	if (!st)
		st = sdpa_set_word(s, *heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
				   CUDNN_HEUR_MODE_A, err);
	if (!st)
		st = DNN_CALL(s, err, desc_finalize, *heuristics);
	if (!st)
		st = DNN_CALL(s, err, desc_get, *heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
			      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, count, NULL);
	return st;
}

enum { RESULTS_MAX = 64 };

/* Reads up to RESULTS_MAX configurations of the graph, best first. The caller destroys `made` of them. */
static enum status read_heuristics(struct sdpa_plan *p, struct sdpa_graph *g,
				   cudnnBackendDescriptor_t *configs, int64_t *made, int64_t *count,
				   struct error *err)
{
	struct sdpa *s = p->s;
	cudnnBackendDescriptor_t heuristics;
	enum status st = ask_heuristics(p, g, &heuristics, count, err);

	while (!st && *made < *count && *made < RESULTS_MAX) {
		st = sdpa_desc_create(s, &configs[*made], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, err);
		*made += !st;
	}
	*count = 0;
	if (!st && *made)
		st = DNN_CALL(s, err, desc_get, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
			      CUDNN_TYPE_BACKEND_DESCRIPTOR, *made, count, configs);
	sdpa_desc_destroy(s, &heuristics);
	/* The reported count is the number considered. The number returned is what the library's own check
	 * accepted. */
	if (!st && !*count)
		st = error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				     "cuDNN has no engine for this attention on this device");
	return st;
}

/* Adds the graph's heuristics until there are `wanted` candidates. *why: the reason why the first was
 * omitted. */
static enum status list_graph(struct sdpa_plan *p, struct sdpa_graph *g, unsigned wanted, struct error *why,
			      struct error *err)
{
	cudnnBackendDescriptor_t configs[RESULTS_MAX] = {NULL};
	int64_t made = 0, count = 0, i = 0;
	enum status st = STATUS_OK;

	if (read_heuristics(p, g, configs, &made, &count, why))
		count = 0;
	for (; !st && i < count && i < made && p->count < wanted; i++) {
		struct sdpa_candidate c = {.graph = g, .config = configs[i]};

		read_config(p->s, &c);
		st = sdpa_candidate_take(p, &c, why, err);
	}
	for (; i < made; i++)
		sdpa_desc_destroy(p->s, &configs[i]);
	return st;
}

enum status sdpa_plan_candidates(struct sdpa_plan *p, unsigned wanted, struct error *err)
{
	struct error why = {0};
	enum status st = STATUS_OK;

	sdpa_candidates_clear(p);
	for (unsigned i = 0; !st && i < p->graph_count && p->count < wanted; i++)
		st = list_graph(p, p->graphs[i], wanted, &why, err);
	if (st)
		return st;
	return p->count ? sdpa_plan_select(p, 0, err)
			: error_set_cause(err, why.status, why.cause, "%s", why.text);
}

enum status sdpa_plan_first(struct sdpa_plan *p, struct error *err)
{
	return sdpa_plan_candidates(p, 1, err);
}

unsigned sdpa_plan_count(const struct sdpa_plan *p)
{
	return p->count;
}

void sdpa_plan_describe(const struct sdpa_plan *p, unsigned candidate, struct sdpa_description *out)
{
	const struct sdpa_candidate *c;
	struct text t = {0};

	*out = (struct sdpa_description){.graph = ""};
	if (candidate >= p->count)
		return;
	c = &p->candidates[candidate];
	out->graph = c->graph->name;
	out->engine = c->engine;
	out->knob_count = c->knob_count;
	memcpy(out->knobs, c->knobs, sizeof(out->knobs));
	out->workspace_bytes = sdpa_candidate_bytes(c);
	text_addf(&t, "%s engine%lld", out->graph, (long long)c->engine);
	for (unsigned i = 0; i < c->knob_count; i++)
		text_addf(&t, " knob%d=%lld", c->knobs[i].type, (long long)c->knobs[i].value);
	text_copy(out->name, sizeof(out->name), text_str(&t));
	text_release(&t);
}
