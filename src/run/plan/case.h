/* SPDX-License-Identifier: Apache-2.0 */
/* Cases, steps and plans. A plan is made from a suite and the facts of a machine. Planning is pure, so it
 * gives the same plan live and from a recording. */
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
/* PAIR: gpu[0] sends and gpu[1] receives; one thread drives both GPUs, so it has one rank. NODE: a timed case
 * has one rank per GPU of gpu[], or one per launched process of this node. TEAM: every launched rank; gpu[]
 * has the rank's own GPUs. */
enum target_kind { TARGET_CPU = 1, TARGET_GPU = 2, TARGET_PAIR = 4, TARGET_NODE = 8, TARGET_TEAM = 16 };

struct target {
	enum target_kind kind;
	int numa;		   /* CPU: OS node, -1: all */
	unsigned ranks, gpu_count; /* ranks: 1, except for timed cases on NODE or TEAM */
	/* TEAM: bit r % 64 of [r / 64] is set for each rank r that takes part. All 0: every rank takes part.
	 */
	uint64_t member[TARGET_MEMBERS / 64];
	uint16_t gpu[TARGET_GPUS]; /* indices of machine_gpu() */
};

struct work { /* work of one iteration of one rank */
	double flop, read_bytes, write_bytes, link_bytes, messages;
	/* "compute.bf16", "memory", "cache", "link.h2d", "latency": selects the bound and the gap chain;
	 * static */
	const char *limit;
};

/* Peak memory of a case, as its probe estimates it before the run. */
struct need {
	bool known; /* false: the probe has no estimate */
	double device_bytes, host_bytes;
};

/* Order of the cases in a step; see struct step. */
enum step_order { STEP_IN_ORDER, STEP_TOGETHER, STEP_LOCKSTEP, STEP_ORDERS };
extern const char *const step_words[]; /* by enum step_order: a key of the suite and a flag in the journal */

/* HEADLINE: cold, ramp, burst, settle, sustained. BURST: cold, ramp, burst (points of a curve). */
enum phases { PHASES_HEADLINE, PHASES_BURST };
extern const char *const phases_words[]; /* by enum phases, then NULL */

/*
 * A case. `key` has all options as canonical text, sorted by name, after the probe and with the engine: "gemm
 * engine=cublaslt k=8192 .. type=bf16". Resume and compare identify a case by key, target and machine.
 * Expected ranges match words of the key, the GPU model, the phase and the number of ranks.
 */
struct bench_case {
	unsigned id; /* position in the plan, 0 first */
	char *key;
	const struct probe *probe;
	const struct engine *engine; /* NULL: a reading */
	void *opts;		     /* the probe's own struct, followed by the texts that it points to */
	struct work work;	     /* timed cases: the probe's figures for these options; for the journal */
	struct need need;	     /* timed cases: an estimate, not part of the identity */
	struct target target;
	/* launched ranks: the GPUs of one node, or the nodes (rank_layout.h); otherwise NULL */
	json_t *layout;
	char target_text[TARGET_TEXT]; /* "cpu", "cpu:node1", "gpu0", "gpu0>gpu1", "node:0,2" */
	enum require require;
	bool require_said; /* the suite states `require: judged` explicitly */
	enum phases phases;
	unsigned line;	   /* line of the suite, 1 first; the ranks of a team begin a line together */
	unsigned team;	   /* number of the team case, 1 first; 0: a case of this rank only */
	unsigned round;	   /* number of the round, 1 first; 0: the plan has one round */
	uint32_t limit_ms; /* from prepare to end; the supervisor checks it */
	/* requested length of the sustained window; 0: docs/explanation/methods/measuring.md, "Sustained
	 * window" */
	double seconds;
	/* shortest sustained window if the power limit lowers the clock; 0: no minimum */
	double seconds_capped;
	double search_s; /* time limit for timing variants; 0: half of limit_ms */
	/* order of its step. TOGETHER and LOCKSTEP: the case waits for one `go` with the others. TOGETHER:
	 * its windows have a fixed length */
	enum step_order order;
	char group[32];	   /* cases of one group share a worker */
	char setting[300]; /* NAME=value in its worker's environment; "": none */
	/* who else uses the device; "": nobody. The case is measured, but its figures are not trusted */
	char beside[160];
	enum status skip; /* STATUS_OK: the case runs */
	enum cause skip_cause;
	char skip_reason[256];
};

/*
 * A step: cases that belong together. IN_ORDER: they run one after the other in one worker. If a case does
 * not end as DONE, only that case fails and the next one gets a new worker. TOGETHER: each case has its own
 * worker, and all start with one `go`. LOCKSTEP: each GPU has a worker until the end of the step, and the
 * cases of one key start with one `go`, so that all GPUs do the same at the same time. A STUCK case
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
	double within_s; /* the suite's time limit for a second round; 0: none */
};

/* Suites as data: docs/explanation/design/suite.md. `text` is the content of a file, `place` its name in
 * messages. The caller frees a suite with suite_free(). */
struct suite;
/* Reads a built-in suite by name, or a file by path. */
enum status suite_read(struct suite **s, const char *name_or_file, struct error *err);
enum status suite_parse(struct suite **s, const char *place, const char *text, size_t size,
			struct error *err);
/* Makes a suite of one case, or of a cross product, for `assay probe NAME opt=value..`. */
enum status suite_of_probe(struct suite **s, const char *probe, const char *engine, const char *target,
			   const char *const *options /* "name=value" */, size_t count, struct error *err);
void suite_free(struct suite *s);
const char *suite_name(const struct suite *s);

/* The plan is one line of the journal, and such a line has at most 16 MiB. */
enum { PLAN_CASES_MAX = 16000 };

/* Settings of the command line that change the plan. */
struct plan_options {
	const char *target;	       /* "cpu", "gpu", "gpu0", "pair", "all"; NULL: all */
	const struct team_shape *team; /* the launched ranks; NULL: no team */
	unsigned rank;		       /* this rank's number in the team */
	double seconds;		       /* length of the sustained window; 0: the default rule */
	unsigned rounds;	       /* number of repetitions of timed cases; 0 or 1: once */
	double search_seconds;	       /* time limit for each case's variants; 0: the default rule */
	/* run although others use the device; the figures are not trusted */
	bool beside;
	/* not 0: planning ends with CANCELLED; NULL: it cannot be stopped */
	const volatile sig_atomic_t *stop;
};

/* Pure: the same suite, facts, registry and wishes give the same plan, live and from a recording. Every
 * skipped case has a reason. The time is proportional to the number of cases. More than PLAN_CASES_MAX cases
 * are an error. The caller frees *p with plan_release(). */
enum status plan_build(struct plan *p, const struct suite *s, const struct machine *m,
		       const struct probe *const *registry, const struct plan_options *wishes,
		       struct error *err);
/* Estimated time of a case without the start of its worker, if it settles at once. 0: it is skipped. */
double plan_case_seconds(const struct bench_case *c);
/* Estimated time of the plan, including the starts of workers. Within a factor of 1.25 for a suite. */
double plan_seconds(const struct plan *p);
void plan_release(struct plan *p);
json_t *plan_json(const struct plan *p, const struct machine *m); /* the journal's body; caller decrefs */
/* Rebuilds a case from the journal's CASE object, in a worker. The caller frees it with case_release(). */
enum status case_from_json(struct bench_case *c, const json_t *json, const struct machine *m,
			   const struct probe *const *registry, struct error *err);
/* Consecutive cases of the same place and group share a worker, which opens each GPU once. All pairs of GPUs
 * are one place, and so are all parts of a node. The text is static or belongs to the case. */
const char *case_place(const struct bench_case *c);
void case_release(struct bench_case *c);

/* One option and its value; place: "file:line", the prefix of messages. */
struct assignment {
	const char *name, *value, *place;
};

/* Sets the presets of the probe, then those of the case's engine, then these assignments, and runs the
 * probe's own check. The option block has copies of the texts. After a failure call case_release(). */
enum status case_options(struct bench_case *c, const struct assignment *a, size_t count, struct error *err);
enum status case_key(struct bench_case *c, struct error *err);
/* caller decrefs; NULL: out of memory */
json_t *case_json(const struct bench_case *c, const struct machine *m);

/* NULL: not found. */
const struct probe *probe_by_name(const struct probe *const *registry, const char *name);
const struct engine *engine_by_name(const struct probe *p, const char *name);
#endif
