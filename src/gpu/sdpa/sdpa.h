/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention by cuDNN: plans and search, forward and backward, for probes and for training.
 * gpu/attention/problem.h defines the computation. A plan never times: it lists candidates, and the caller
 * times them and selects.
 *
 * The library takes graphs of operations. Two graphs describe the same attention. "fused" is one operation
 * (16 bits, no mask). "composite" consists of GEMMs, softmax and mask; every version accepts it, and most
 * problems need it. Both are queried for engines, the fused one first, as in cuDNN's own frontend.
 */
#ifndef GPU_SDPA_SDPA_H
#define GPU_SDPA_SDPA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

/* name, text */
#define SDPA_DIRECTIONS(X)                                                                                   \
	X(FORWARD, "forward")                                                                                \
	X(BACKWARD, "backward")
#define X(name, ...) SDPA_##name,
enum sdpa_direction { SDPA_DIRECTIONS(X) SDPA_DIRECTION_COUNT };
#undef X

/* Operands of the backward pass in addition to forward's, whose O and lse it reads. They have the layouts of
 * O, Q, K and V. */
struct sdpa_gradients {
	gpu_ptr d_o, d_q, d_k, d_v;
};

enum { SDPA_KNOBS_MAX = 12 };
struct sdpa_knob {
	int type; /* the library's number: cudnnBackendKnobType_t */
	int64_t value;
};

/* Description of a candidate. */
struct sdpa_description {
	const char *graph; /* "fused", "composite" */
	int64_t engine;	   /* the library's engine number within that graph */
	struct sdpa_knob knobs[SDPA_KNOBS_MAX];
	unsigned knob_count;
	uint64_t workspace_bytes; /* everything that the plan allocates when this candidate is selected */
	char name[128];		  /* e.g. "composite engine4 knob24=31 knob27=2" */
};

struct sdpa; /* library and handle; only one stream may use it at a time */
struct sdpa_plan;

/* Opens the library (lib_path NULL: search) on the device whose context is current. Candidates that need more
 * workspace than workspace_max (0: 4 GiB) are omitted. Owner: caller, sdpa_close. UNAVAILABLE: the library, a
 * part of it or a symbol is missing. UNSUPPORTED: the version is older than 9.6, or its attention is known to
 * be wrong. */
enum status sdpa_open(struct sdpa **s, struct gpu_device *d, const char *lib_path, uint64_t workspace_max,
		      struct error *err);
void sdpa_close(struct sdpa **s);	     /* call after destroying its plans */
int sdpa_version(const struct sdpa *s);	     /* 91900 for 9.19.0 */
const char *sdpa_path(const struct sdpa *s); /* path of the library; lent */

/* Checks the problem and builds the graphs. No candidate is selected. The problem is copied, and its starts
 * are not read later. Backward reads forward's lse, even if the problem does not have want_lse. Owner:
 * caller, sdpa_plan_destroy. UNSUPPORTED: this version does not support the attention; err has our message or
 * the library's. */
enum status sdpa_plan_create(struct sdpa_plan **p, struct sdpa *s, const struct attention_problem *problem,
			     enum sdpa_direction direction, struct error *err);
void sdpa_plan_destroy(struct sdpa_plan **p);

/* Candidate 0 becomes the library's first heuristic that it can build, and is selected. UNSUPPORTED, with the
 * library's message, if it has none. NO_RESOURCE if every one needs too much workspace. Building compiles
 * kernels, which takes up to seconds. */
enum status sdpa_plan_first(struct sdpa_plan *p, struct error *err);
/* Candidates 0..count-1 become the library's first `wanted` heuristics, best first; 0 is selected. */
enum status sdpa_plan_candidates(struct sdpa_plan *p, unsigned wanted, struct error *err);
/* go_on is called before each configuration. If it returns an error, the listing ends with that error. If it
 * sets *enough, the listing ends with the candidates found so far. */
struct sdpa_pace {
	enum status (*go_on)(void *arg, bool *enough, struct error *err);
	void *arg;
};
/*
 * Adds every configuration of every engine that the library can build, without duplicates. It stops at
 * `limit` candidates, or when the pace (NULL: none) ends the listing. First no knob differs from its default,
 * then one, then all combinations.
 */
enum status sdpa_plan_exhaust(struct sdpa_plan *p, unsigned limit, const struct sdpa_pace *pace,
			      struct error *err);
unsigned sdpa_plan_count(const struct sdpa_plan *p);
/* Allocates the candidate's workspace. Must not be called while the plan runs. */
enum status sdpa_plan_select(struct sdpa_plan *p, unsigned candidate, struct error *err);
void sdpa_plan_describe(const struct sdpa_plan *p, unsigned candidate, struct sdpa_description *out);
/* Runs the selected candidate; may be captured. `gradients`: for backward; NULL for forward. */
enum status sdpa_plan_enqueue(struct sdpa_plan *p, const struct attention_operands *o,
			      const struct sdpa_gradients *gradients, struct gpu_stream *stream,
			      struct error *err);
#endif
