/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of an attention plan from an exhaustive search: every engine and knob setting that the library
 * can build. */
#include "gpu/sdpa/sdpa.h"
#include "gpu/sdpa/internal.h"

/* The values that a knob of an engine can take. */
struct knob_range {
	int type;
	int64_t least, most, step;
};

struct engine_knobs {
	struct knob_range range[SDPA_KNOBS_MAX];
	unsigned count;
};

enum { KNOB_INFOS_MAX = 48, VALUES_MAX = 64 };

static bool read_range(struct sdpa *s, cudnnBackendDescriptor_t info, struct knob_range *out)
{
	cudnnBackendKnobType_t type = 0;
	int64_t count;

	*out = (struct knob_range){.step = 1};
	if (s->dnn.desc_get(info, CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &type) ||
	    s->dnn.desc_get(info, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, 1, &count,
			    &out->least) ||
	    s->dnn.desc_get(info, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1, &count,
			    &out->most) ||
	    s->dnn.desc_get(info, CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, 1, &count, &out->step))
		return false;
	out->type = (int)type;
	if (out->step < 1)
		out->step = 1;
	return out->most > out->least; /* else there is no choice */
}

static void read_ranges(struct sdpa *s, cudnnBackendDescriptor_t engine, struct engine_knobs *out)
{
	cudnnBackendDescriptor_t infos[KNOB_INFOS_MAX] = {NULL};
	int64_t count = 0;
	unsigned made = 0;

	out->count = 0;
	while (made < KNOB_INFOS_MAX &&
	       !sdpa_desc_create(s, &infos[made], CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, NULL))
		made++;
	if (s->dnn.desc_get(engine, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &count,
			    infos))
		count = 0;
	for (unsigned i = 0; i < made && i < (unsigned)count && out->count < SDPA_KNOBS_MAX; i++)
		if (read_range(s, infos[i], &out->range[out->count]))
			out->count++;
	for (unsigned i = 0; i < made; i++)
		sdpa_desc_destroy(s, &infos[i]);
}

static enum status make_choice(struct sdpa *s, const struct sdpa_knob *knob, cudnnBackendDescriptor_t *choice,
			       struct error *err)
{
	enum status st = sdpa_desc_create(s, choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, err);

	if (!st)
		st = sdpa_set_word(s, *choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
				   (unsigned)knob->type, err);
	if (!st)
		st = sdpa_set_int(s, *choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob->value, err);
	if (!st)
		st = DNN_CALL(s, err, desc_finalize, *choice);
	return st;
}

/* Makes the configuration of `engine` with the candidate's knobs. */
static enum status make_config(struct sdpa *s, struct sdpa_candidate *c, cudnnBackendDescriptor_t engine,
			       struct error *err)
{
	cudnnBackendDescriptor_t choices[SDPA_KNOBS_MAX] = {NULL};
	enum status st = sdpa_desc_create(s, &c->config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, err);

	if (!st)
		st = sdpa_set_desc(s, c->config, CUDNN_ATTR_ENGINECFG_ENGINE, engine, err);
	for (unsigned i = 0; !st && i < c->knob_count; i++)
		st = make_choice(s, &c->knobs[i], &choices[i], err);
	if (!st && c->knob_count)
		st = DNN_CALL(s, err, desc_set, c->config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
			      CUDNN_TYPE_BACKEND_DESCRIPTOR, c->knob_count, choices);
	if (!st)
		st = DNN_CALL(s, err, desc_finalize, c->config);
	for (unsigned i = 0; i < c->knob_count; i++)
		sdpa_desc_destroy(s, &choices[i]);
	return st;
}

/* State of a listing. */
struct listing {
	struct sdpa_plan *p;
	unsigned limit;
	const struct sdpa_pace *pace; /* NULL: none */
	bool enough;
};

static bool goes_on(const struct listing *l)
{
	return !l->enough && l->p->count < l->limit;
}

static enum status offer(struct listing *l, struct sdpa_candidate *c, cudnnBackendDescriptor_t engine,
			 struct error *err)
{
	enum status st = l->pace ? l->pace->go_on(l->pace->arg, &l->enough, err) : STATUS_OK;

	if (st || l->enough)
		return st;
	if (make_config(l->p->s, c, engine, NULL)) {
		sdpa_desc_destroy(l->p->s, &c->config);
		return STATUS_OK; /* this combination of knobs is not valid */
	}
	return sdpa_candidate_take(l->p, c, NULL, err);
}

/* The knobs that a pass changes, from likely to unlikely. */
enum pass { PASS_NONE, PASS_ONE, PASS_ALL, PASS_COUNT };

static enum status offer_one_turned(struct listing *l, struct sdpa_graph *g, int64_t index,
				    cudnnBackendDescriptor_t engine, const struct engine_knobs *k,
				    struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < k->count; i++) {
		const struct knob_range *r = &k->range[i];
		int64_t value = r->least;

		for (unsigned n = 0; !st && goes_on(l) && n < VALUES_MAX && value <= r->most; n++) {
			struct sdpa_candidate c = {.graph = g, .engine = index, .knob_count = 1};

			c.knobs[0] = (struct sdpa_knob){r->type, value};
			st = offer(l, &c, engine, err);
			value += r->step;
		}
	}
	return st;
}

/* Advances to the next combination of knobs, the first knob fastest. Returns false after the last. */
static bool turn(struct sdpa_candidate *c, const struct engine_knobs *k)
{
	for (unsigned i = 0; i < k->count; i++) {
		c->knobs[i].value += k->range[i].step;
		if (c->knobs[i].value <= k->range[i].most)
			return true;
		c->knobs[i].value = k->range[i].least;
	}
	return false;
}

static enum status offer_all_turned(struct listing *l, struct sdpa_graph *g, int64_t index,
				    cudnnBackendDescriptor_t engine, const struct engine_knobs *k,
				    struct error *err)
{
	struct sdpa_candidate at = {.graph = g, .engine = index, .knob_count = k->count};
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < k->count; i++)
		at.knobs[i] = (struct sdpa_knob){k->range[i].type, k->range[i].least};
	if (k->count < 2)
		return STATUS_OK;
	do {
		struct sdpa_candidate c = at;

		st = offer(l, &c, engine, err);
	} while (!st && goes_on(l) && turn(&at, k));
	return st;
}

static enum status exhaust_engine(struct listing *l, struct sdpa_graph *g, int64_t index, enum pass pass,
				  struct error *err)
{
	struct sdpa *s = l->p->s;
	struct sdpa_candidate plain = {.graph = g, .engine = index};
	cudnnBackendDescriptor_t engine;
	struct engine_knobs knobs;
	enum status st = sdpa_desc_create(s, &engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR, err);

	if (st)
		return st;
	if (sdpa_set_desc(s, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g->graph, NULL) ||
	    sdpa_set_int(s, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index, NULL) ||
	    s->dnn.desc_finalize(engine))
		goto out; /* the engine does not support this graph, device or version */
	read_ranges(s, engine, &knobs);
	switch (pass) {
	case PASS_NONE:
		st = offer(l, &plain, engine, err);
		break;
	case PASS_ONE:
		st = offer_one_turned(l, g, index, engine, &knobs, err);
		break;
	case PASS_ALL:
		st = offer_all_turned(l, g, index, engine, &knobs, err);
		break;
	case PASS_COUNT:
		break;
	}
out:
	sdpa_desc_destroy(s, &engine);
	return st;
}

enum status sdpa_plan_exhaust(struct sdpa_plan *p, unsigned limit, const struct sdpa_pace *pace,
			      struct error *err)
{
	struct listing l = {.p = p, .limit = limit, .pace = pace};
	enum status st = STATUS_OK;

	for (int pass = 0; !st && pass < PASS_COUNT; pass++)
		for (unsigned i = 0; !st && i < p->graph_count; i++) {
			struct sdpa_graph *g = p->graphs[i];
			int64_t engines = 0, one;

			st = DNN_CALL(p->s, err, desc_get, g->graph,
				      CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1,
				      &one, &engines);
			for (int64_t e = 0; !st && e < engines && goes_on(&l); e++)
				st = exhaust_engine(&l, g, e, (enum pass)pass, err);
		}
	return st;
}
