/* SPDX-License-Identifier: Apache-2.0 */
/* Suite to plan: pure, hashed, the same live or replayed. */
#ifndef RUN_PLAN_CASE_H
#define RUN_PLAN_CASE_H
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/require.h"

struct machine;
struct probe;
struct engine;
struct team_shape;

enum { TARGET_GPUS = 16, TARGET_TEXT = 96, TARGET_MEMBERS = 4096 };
/* PAIR: gpu[0] sends, gpu[1] receives; one thread drives both, so it has one rank. NODE: timed, a rank a GPU
 * of gpu[], or a launched process of this node. TEAM: every launched rank, gpu[] this one's own. */
enum target_kind { TARGET_CPU = 1, TARGET_GPU = 2, TARGET_PAIR = 4, TARGET_NODE = 8, TARGET_TEAM = 16 };

struct target {
	enum target_kind kind;
	int numa;		   /* CPU: OS node, -1 all */
	unsigned ranks, gpu_count; /* ranks: 1 but where the case is timed on NODE or TEAM */
	/* TEAM: bit r % 64 of [r / 64] for each rank that takes part; all 0: every rank. */
	uint64_t member[TARGET_MEMBERS / 64];
	uint16_t gpu[TARGET_GPUS]; /* machine_gpu index */
};

struct work { /* one iteration, ONE rank */
	double flop, read_bytes, write_bytes, link_bytes, messages;
	const char *limit; /* "compute.bf16" "memory" "cache" "link.h2d" "latency": picks bound and gap chain;
			      static */
};

/* Memory that a case holds at its peak, as its probe estimates it ahead. */
struct need {
	bool known; /* false: the probe cannot say */
	double device_bytes, host_bytes;
};

/* How the cases of a step follow each other: struct step. */
enum step_order { STEP_IN_ORDER, STEP_TOGETHER, STEP_LOCKSTEP, STEP_ORDERS };
extern const char *const step_words[]; /* by enum step_order: a suite's key, a flag of the journal */

/* HEADLINE: cold, ramp, burst, settle, sustained. BURST: cold, ramp, burst (points of a curve). */
enum phases { PHASES_HEADLINE, PHASES_BURST };
extern const char *const phases_words[]; /* by enum phases, then NULL */

/*
 * key: all options as canonical text, sorted by name, after the probe and with the engine:
 * "gemm engine=cublaslt k=8192 .. type=bf16". key + target + machine is the identity for resume and compare;
 * bands match on its words + SKU, phase, ranks.
 */
struct bench_case {
	unsigned id; /* its place in the plan, 0 first */
	char *key;
	const struct probe *probe;
	const struct engine *engine; /* NULL: a reading */
	void *opts;		     /* the probe's own struct, and behind it the texts it points to */
	struct work work;	     /* timed: what the probe says of these options; for the journal */
	struct need need;	     /* timed: an estimate, no part of the identity */
	struct target target;
	json_t *layout; /* of launched ranks: which GPUs of one node, or on what nodes (rank_layout.h); NULL
			 */
	char target_text[TARGET_TEXT]; /* "cpu", "cpu:node1", "gpu0", "gpu0>gpu1", "node:0,2" */
	enum require require;
	bool require_said; /* the suite asks for judgement in words, not by default */
	enum phases phases;
	unsigned line;	       /* of the suite, 1 first: where ranks of a team wait for each other */
	unsigned team;	       /* the how many-th case of the whole team, 1 first; 0: this rank's own */
	unsigned round;	       /* of several, 1 first; 0: the plan has one */
	uint32_t limit_ms;     /* prepare to end, in the supervisor */
	double seconds;	       /* wish for the sustained window; 0: the rule of METHODS */
	double seconds_capped; /* at least so long where the power limit holds the clock; 0: no matter */
	double search_s;       /* budget for timing variants; 0: half of the limit */
	enum step_order order; /* its step's. Not in order: waits for one `go` with the others; TOGETHER: its
				  windows have a fixed length */
	char group[32];	       /* cases of one group share a worker */
	char setting[300];     /* "": none; else what is set in its worker's environment, NAME=value */
	char beside[160];      /* "": the device was free; else who uses it: measured all the same, not to be
				  trusted */
	enum status skip;      /* STATUS_OK: runs */
	enum cause skip_cause;
	char skip_reason[256];
};

/*
 * In order, in ONE worker while each ends DONE; any other ending costs the worker and that case alone.
 * Together: a worker each, one `go` for all (siblings, both ways). In lockstep: a worker a GPU, which keeps
 * it to the step's end, and one `go` for the cases of one key (all GPUs do the same at the same time). STUCK
 * quarantines its devices.
 */
struct step {
	struct bench_case *cases;
	size_t count;
	enum step_order order;
};

struct plan {
	char suite[64];
	struct step *steps;
	size_t count;
	size_t case_count;
	char hash[65]; /* SHA-256 of the canonical plan text: keys, targets, requirements, phases, skips */
	double seconds_expected;
	double within_s; /* the suite's word on its length; 0: none */
};

/* Suites as data: docs/explanation/design/suite.md. `text` as file contents; `place` for messages. Owner:
 * suite_free. */
struct suite;
/* A built-in suite by name, or a file by its path. */
enum status suite_read(struct suite **s, const char *name_or_file, struct error *err);
enum status suite_parse(struct suite **s, const char *place, const char *text, size_t size,
			struct error *err);
/* A suite of one case (or of a cross product), for `assay probe NAME opt=value..`: */
enum status suite_of_probe(struct suite **s, const char *probe, const char *engine, const char *target,
			   const char *const *options /* "name=value" */, size_t count, struct error *err);
void suite_free(struct suite *s);
const char *suite_name(const struct suite *s);

/* The plan is one line of the journal, which may have 16 MiB. */
enum { PLAN_CASES_MAX = 16000 };

/* What the command line asks beside the suite. */
struct plan_wishes {
	const char *target;		   /* "cpu", "gpu", "gpu0", "pair", "all"; NULL: all */
	const struct team_shape *team;	   /* launched ranks; NULL: alone */
	unsigned rank;			   /* of them */
	double seconds;			   /* sustained window; 0: rule */
	unsigned rounds;		   /* timed cases so many times over; 0 or 1: once */
	double search_seconds;		   /* budget for each case's variants; 0: rule */
	bool beside;			   /* run although others use the device, marked untrusted */
	const volatile sig_atomic_t *stop; /* not 0: planning ends with CANCELLED; NULL: nobody asks */
};

/* Pure: same suite, facts, registry, wishes give the same plan, live or recorded. Every skip has its reason.
 * Takes time in proportion to the number of cases; more than PLAN_CASES_MAX are refused. */
enum status plan_build(struct plan *p, const struct suite *s, const struct machine *m,
		       const struct probe *const *registry, const struct plan_wishes *wishes,
		       struct error *err);
/* What a case will take beside its worker's start, roughly: when it settles at once. 0: it is skipped. */
double plan_case_seconds(const struct bench_case *c);
/* All of it, workers' starts too. A suite's is within 1.25 x. */
double plan_seconds(const struct plan *p);
void plan_release(struct plan *p);
json_t *plan_json(const struct plan *p, const struct machine *m); /* the journal's body; caller decrefs */
/* A worker rebuilds one case from the journal's CASE object. Owner: caller, case_release. */
enum status case_from_json(struct bench_case *c, const json_t *json, const struct machine *m,
			   const struct probe *const *registry, struct error *err);
/* Cases of one place and group that follow each other share a worker: all pairs of GPUs are one place, and so
 * are all parts of a node; it opens each GPU once. Static, or the case's own. */
const char *case_place(const struct bench_case *c);
void case_release(struct bench_case *c);
#endif
