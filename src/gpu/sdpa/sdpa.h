/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention by cuDNN: plans and search, forward and backward, for probes and for a training engine. What is
 * computed is gpu/attention/problem.h's. A plan never times: it lists candidates, the caller times them and
 * selects.
 *
 * The library takes graphs of operations. Two describe the same attention: one fused operation (16 bits, no
 * mask), and the composite of products, softmax and mask that every version takes and most others are run by.
 * Both are asked for kernels; the fused one comes first, as in cuDNN's own front.
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

/* Backward's own, beside forward's operands (whose O and lse it reads): laid out as O, Q, K and V. */
struct sdpa_gradients {
	gpu_ptr d_o, d_q, d_k, d_v;
};

enum { SDPA_KNOBS_MAX = 12 };
struct sdpa_knob {
	int type; /* the library's number: cudnnBackendKnobType_t */
	int64_t value;
};

/* What a candidate is. */
struct sdpa_description {
	const char *graph; /* "fused", "composite" */
	int64_t engine;	   /* the library's number within that graph */
	struct sdpa_knob knobs[SDPA_KNOBS_MAX];
	unsigned knob_count;
	uint64_t workspace_bytes; /* all that the plan allocates when this candidate is selected */
	char name[128];		  /* "composite engine4 knob24=31 knob27=2" */
};

struct sdpa; /* library and handle: one stream at a time */
struct sdpa_plan;

/* Opens the library (lib_path NULL: searched) on the device whose context is current. Candidates that need
 * more workspace than workspace_max are left out; 0: 4 GiB. Owner: caller, sdpa_close. UNAVAILABLE: no
 * library, a part of it or a symbol; UNSUPPORTED: a version older than 9.6, or one whose attention is known
 * to be wrong. */
enum status sdpa_open(struct sdpa **s, struct gpu_device *d, const char *lib_path, uint64_t workspace_max,
		      struct error *err);
void sdpa_close(struct sdpa **s);	     /* after its plans */
int sdpa_version(const struct sdpa *s);	     /* 91900 for 9.19.0 */
const char *sdpa_path(const struct sdpa *s); /* of the library; lent */

/* Checks the problem and builds the graphs; nothing is selected. The problem is copied, its starts are not
 * read later. Backward reads forward's lse whatever the problem says of it. Owner: caller, sdpa_plan_destroy.
 * UNSUPPORTED: this version has no such attention, in our words or the library's. */
enum status sdpa_plan_create(struct sdpa_plan **p, struct sdpa *s, const struct attention_problem *problem,
			     enum sdpa_direction direction, struct error *err);
void sdpa_plan_destroy(struct sdpa_plan **p);

/* Candidate 0 becomes the library's first heuristic that it can build, and is selected. UNSUPPORTED in the
 * library's words where it has none; NO_RESOURCE where each needs too much workspace. Building compiles
 * kernels: up to seconds. */
enum status sdpa_plan_first(struct sdpa_plan *p, struct error *err);
/* Candidates 0..count-1 become the library's first `wanted` heuristics, best first; 0 is selected. */
enum status sdpa_plan_candidates(struct sdpa_plan *p, unsigned wanted, struct error *err);
/* Asked before each configuration. An error ends the listing with it; *enough ends it with what was found. */
struct sdpa_pace {
	enum status (*go_on)(void *arg, bool *enough, struct error *err);
	void *arg;
};
/*
 * Adds every configuration of every engine that the library builds, without repeating a candidate, until
 * there are `limit` or the pace (NULL: none) says so: engines with no knob turned, then with one, then with
 * all.
 */
enum status sdpa_plan_exhaust(struct sdpa_plan *p, unsigned limit, const struct sdpa_pace *pace,
			      struct error *err);
unsigned sdpa_plan_count(const struct sdpa_plan *p);
/* Allocates the candidate's workspace; not while the plan runs. */
enum status sdpa_plan_select(struct sdpa_plan *p, unsigned candidate, struct error *err);
void sdpa_plan_describe(const struct sdpa_plan *p, unsigned candidate, struct sdpa_description *out);
/* Runs the selected candidate; may be captured. `gradients`: backward's, NULL for forward. */
enum status sdpa_plan_enqueue(struct sdpa_plan *p, const struct attention_operands *o,
			      const struct sdpa_gradients *gradients, struct gpu_stream *stream,
			      struct error *err);
#endif
