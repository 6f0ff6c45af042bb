/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by cuDNN: the library, the limits of its versions, and plans. */
#include "gpu/sdpa/sdpa.h"
#include "gpu/sdpa/internal.h"
#include <math.h>
#include "core/text/text.h"

#define WORKSPACE_MAX (4ull << 30)

/*
 * Limits of the releases, from their release notes and from what cuDNN's own frontend refuses. Before OLDEST,
 * different lengths of queries and keys had to be multiples of 64, and the caller had to clear the sums of
 * the backward pass.
 */
enum {
	OLDEST = 90600,
	WRONG_FROM = 91000,
	WRONG_TO = 91001,
	WINDOW_BOTH_SIDES_FROM = 91002,
	WINDOW_WRONG = 91400,
	FUSED_FROM = 91301,
	BACKWARD_ANY_LENGTH_FROM = 91501,
	EMPTY_SEQUENCES_FROM = 92500,
	BACKWARD_KEYS_MULTIPLE = 128,
};

static void version_text(int version, char *out, size_t size)
{
	snprintf(out, size, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

struct meaning {
	enum status st;
	enum cause cause;
};

/* The thousands digit is the kind of error: 1 library state, 2 bad parameter, 3 not supported, 4 internal, 5
 * execution. */
static struct meaning meaning_of(cudnnStatus_t code)
{
	switch (code) {
	case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
	case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
	case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
		return (struct meaning){STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING};
	case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
		return (struct meaning){STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH};
	case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
		return (struct meaning){STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD};
	case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
	case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
		return (struct meaning){STATUS_NO_RESOURCE, CAUSE_NO_MEMORY};
	default:
		break;
	}
	if (code / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000)
		return (struct meaning){STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED};
	return (struct meaning){STATUS_VENDOR, CAUSE_VENDOR_CALL};
}

enum status sdpa_check(const struct sdpa *s, cudnnStatus_t code, const char *call, struct error *err)
{
	const char *name = s->dnn.status_text(code);
	struct meaning m = meaning_of(code);
	char why[256] = "", version[24];

	if (code == CUDNN_STATUS_SUCCESS)
		return STATUS_OK;
	if (s->dnn.last_text)
		s->dnn.last_text(why, sizeof(why));
	why[strcspn(why, "\n")] = 0;
	version_text(s->fact.version, version, sizeof(version));
	return error_set_cause(err, m.st, m.cause, "cuDNN %s %s returned %s (%u)%s%s", version, call,
			       name ? name : "", (unsigned)code, *why ? ": " : "", why);
}

static enum status check_version(int version, struct error *err)
{
	char found[24];

	version_text(version, found, sizeof(found));
	if (version < OLDEST)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH,
				       "cuDNN %s is too old for attention: 9.6 or newer is needed", found);
	if (version >= WRONG_FROM && version <= WRONG_TO)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH,
				       "cuDNN %s computes attention wrongly: 9.10.2 or newer is needed",
				       found);
	return STATUS_OK;
}

enum status sdpa_open(struct sdpa **s, struct gpu_device *d, const char *lib_path, uint64_t workspace_max,
		      struct error *err)
{
	struct sdpa *m = calloc(1, sizeof(*m));
	enum status st;

	*s = NULL;
	if (!m)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a cuDNN handle");
	m->device = d;
	m->workspace_max = workspace_max ? workspace_max : WORKSPACE_MAX;
	st = lib_open(&m->dnn, &cudnn_lib, lib_path, &m->fact, err);
	if (!st)
		st = check_version(m->fact.version, err);
	if (!st)
		st = DNN_CALL(m, err, create, &m->handle);
	if (st)
		sdpa_close(&m);
	*s = m;
	return st;
}

void sdpa_close(struct sdpa **s)
{
	struct sdpa *m = *s;

	if (!m)
		return;
	if (m->handle)
		m->dnn.destroy(m->handle);
	lib_fact_release(&m->fact);
	free(m);
	*s = NULL;
}

int sdpa_version(const struct sdpa *s)
{
	return s->fact.version;
}

const char *sdpa_path(const struct sdpa *s)
{
	return s->fact.path ? s->fact.path : "";
}

static enum status cannot(const struct sdpa *s, const struct attention_problem *p, const char *why,
			  struct error *err)
{
	char version[24], problem[128];

	version_text(s->fact.version, version, sizeof(version));
	attention_describe(p, problem, sizeof(problem));
	return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "cuDNN %s: attention %s: %s",
			       version, problem, why);
}

static enum status check_lengths(const struct sdpa *s, const struct attention_problem *p, struct error *err)
{
	for (uint32_t b = 0; b < p->batch; b++)
		if ((!attention_q_len(p, b) || !attention_kv_len(p, b)) &&
		    s->fact.version < EMPTY_SEQUENCES_FROM)
			return cannot(s, p, "sequences without tokens give NaN before 9.25", err);
	if ((uint64_t)p->q_starts[p->batch] * attention_q_strides(p).row > INT32_MAX ||
	    (uint64_t)p->kv_starts[p->batch] * attention_k_strides(p).row > INT32_MAX ||
	    (uint64_t)p->kv_starts[p->batch] * attention_v_strides(p).row > INT32_MAX ||
	    (uint64_t)p->q_starts[p->batch] * attention_o_strides(p).row > INT32_MAX)
		return cannot(s, p,
			      "all sequences together have more elements than a 32-bit offset can address",
			      err);
	return STATUS_OK;
}

/* Refuses problems that the library computes wrongly or refuses without a helpful message. */
static enum status check_problem(const struct sdpa *s, const struct attention_problem *p,
				 enum sdpa_direction direction, struct error *err)
{
	bool backward = direction == SDPA_BACKWARD;
	bool left = p->mask == ATTENTION_WINDOW && p->window_left != ATTENTION_UNBOUNDED;
	bool right = p->mask == ATTENTION_CAUSAL ||
		     (p->mask == ATTENTION_WINDOW && p->window_right != ATTENTION_UNBOUNDED);
	int version = s->fact.version;
	enum status st = attention_check(p, err);

	if (st)
		return st;
	if (backward && p->type == ATTENTION_E4M3)
		return cannot(s, p, "backward supports only 16-bit types", err);
	if (p->q_len == 1 && p->kv_len == 1)
		return cannot(s, p, "one query with one key is not supported", err);
	if ((left || right) && p->q_len > p->kv_len && !p->q_starts)
		return cannot(s, p,
			      "a mask that is aligned at the last key needs at least as many keys as queries",
			      err);
	if (left && !(p->window_right == 0) && version < WINDOW_BOTH_SIDES_FROM)
		return cannot(s, p, "a window that is not causal needs 9.10.2 or newer", err);
	if (left && p->window_right != 0 && version == WINDOW_WRONG && p->kv_len > 1024)
		return cannot(
			s, p,
			"a window that is not causal gives wrong results above 1024 keys in this version",
			err);
	return p->q_starts ? check_lengths(s, p, err) : STATUS_OK;
}

static uint64_t take(uint64_t *at, uint64_t bytes)
{
	uint64_t was = *at;

	*at += (bytes + 15) / 16 * 16;
	return was;
}

static struct sdpa_numbers place_numbers(const struct attention_problem *p)
{
	struct sdpa_numbers n = {0};
	uint64_t lens = p->batch * sizeof(int32_t), starts = lens + sizeof(int32_t), at = 0;

	n.one = take(&at, sizeof(float));
	n.scale_s = take(&at, sizeof(float));
	n.descale_s = take(&at, sizeof(float));
	n.amax_s = take(&at, sizeof(float));
	n.amax_o = take(&at, sizeof(float));
	n.q_lens = take(&at, lens);
	n.kv_lens = take(&at, lens);
	n.q_starts = take(&at, starts);
	n.k_starts = take(&at, starts);
	n.v_starts = take(&at, starts);
	n.o_starts = take(&at, starts);
	n.bytes = at;
	return n;
}

static void put_f32(char *host, uint64_t at, float value)
{
	memcpy(host + at, &value, sizeof(value));
}

static void put_i32(char *host, uint64_t at, uint64_t index, uint64_t value)
{
	int32_t v = (int32_t)value;

	memcpy(host + at + index * sizeof(v), &v, sizeof(v));
}

/* P is at most 1. The factor 256 uses E4M3's range up to 448 and is a power of two. */
#define SCALE_S 256.0F

static void fill_numbers(char *host, const struct sdpa_numbers *n, const struct attention_problem *p)
{
	put_f32(host, n->one, 1.0F);
	put_f32(host, n->scale_s, SCALE_S);
	put_f32(host, n->descale_s, 1.0F / SCALE_S);
	for (uint32_t b = 0; b < p->batch; b++) {
		put_i32(host, n->q_lens, b, attention_q_len(p, b));
		put_i32(host, n->kv_lens, b, attention_kv_len(p, b));
	}
	for (uint32_t b = 0; p->q_starts && b <= p->batch; b++) {
		put_i32(host, n->q_starts, b, p->q_starts[b] * attention_q_strides(p).row);
		put_i32(host, n->k_starts, b, p->kv_starts[b] * attention_k_strides(p).row);
		put_i32(host, n->v_starts, b, p->kv_starts[b] * attention_v_strides(p).row);
		put_i32(host, n->o_starts, b, p->q_starts[b] * attention_o_strides(p).row);
	}
}

static enum status make_numbers(struct sdpa_plan *p, struct error *err)
{
	char *host;
	enum status st;

	p->numbers = place_numbers(&p->problem);
	host = calloc(1, p->numbers.bytes);
	if (!host)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention plan");
	fill_numbers(host, &p->numbers, &p->problem);
	st = gpu_alloc(p->s->device, &p->own, p->numbers.bytes, err);
	if (!st)
		st = gpu_copy_to(p->s->device, p->own, host, p->numbers.bytes, err);
	free(host);
	return st;
}

typedef void draw_graph(struct sdpa_graph *g, const struct sdpa_drawing *d);

static enum status add_graph(struct sdpa_plan *p, const char *name, draw_graph *draw,
			     const struct sdpa_drawing *d, struct error *err)
{
	struct sdpa_graph *g = calloc(1, sizeof(*g));
	enum status st;

	if (!g)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention graph");
	*g = (struct sdpa_graph){.s = p->s, .name = name, .io = sdpa_type_code(p->problem.type), .err = err};
	draw(g, d);
	st = sdpa_graph_finish(g);
	g->err = NULL;
	if (st) {
		sdpa_graph_release(g);
		free(g);
	} else {
		p->graphs[p->graph_count++] = g;
	}
	return st;
}

/* Makes the graphs. A graph that the library refuses is omitted if another one works. */
static enum status make_graphs(struct sdpa_plan *p, struct error *err)
{
	const struct attention_problem *a = &p->problem;
	int version = p->s->fact.version;
	struct sdpa_drawing d = {.p = a, .numbers = &p->numbers, .padded = a->q_starts, .version = version};
	struct error refused = {0};
	enum status st;

	if (p->direction == SDPA_BACKWARD) {
		d.padded |= a->kv_len % BACKWARD_KEYS_MULTIPLE && version < BACKWARD_ANY_LENGTH_FROM;
		return add_graph(p, "composite", sdpa_draw_backward, &d, err);
	}
	if (version >= FUSED_FROM && a->mask == ATTENTION_FULL && a->type != ATTENTION_E4M3 && !a->q_starts) {
		st = add_graph(p, "fused", sdpa_draw_fused, &d, &refused);
		if (st && st != STATUS_UNSUPPORTED)
			return error_set_cause(err, st, refused.cause, "%s", refused.text);
	}
	st = add_graph(p, "composite", sdpa_draw_forward, &d, p->graph_count ? NULL : err);
	return p->graph_count ? STATUS_OK : st;
}

enum status sdpa_plan_create(struct sdpa_plan **p, struct sdpa *s, const struct attention_problem *problem,
			     enum sdpa_direction direction, struct error *err)
{
	struct sdpa_plan *m;
	enum status st = check_problem(s, problem, direction, err);

	*p = NULL;
	if (st)
		return st;
	m = calloc(1, sizeof(*m));
	if (!m)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention plan");
	m->s = s;
	m->problem = *problem;
	m->direction = direction;
	st = make_numbers(m, err);
	if (!st)
		st = make_graphs(m, err);
	m->problem.q_starts = m->problem.kv_starts = NULL;
	if (st)
		sdpa_plan_destroy(&m);
	*p = m;
	return st;
}

void sdpa_plan_destroy(struct sdpa_plan **p)
{
	struct sdpa_plan *m = *p;

	if (!m)
		return;
	sdpa_packs_clear(m);
	sdpa_candidates_clear(m);
	free(m->candidates);
	for (unsigned i = 0; i < m->graph_count; i++) {
		sdpa_graph_release(m->graphs[i]);
		free(m->graphs[i]);
	}
	gpu_free(m->s->device, &m->workspace);
	gpu_free(m->s->device, &m->own);
	free(m);
	*p = NULL;
}
