/* SPDX-License-Identifier: Apache-2.0 */
/* One case and what surrounds it, as the parts of the judge see it. All pointers are lent. */
#ifndef JUDGE_CASE_CONTEXT_H
#define JUDGE_CASE_CONTEXT_H
#include "judge/expect/expect.h"

struct site;
struct judge_context {
	const struct record *record;
	const struct expectations *e;
	const struct gpu *const *gpu; /* the machine's, PCI order */
	size_t gpu_count;
	const struct cpu *cpu;	 /* NULL: not recorded */
	bool ahead;		 /* nothing ran: say what would judge */
	const struct site *site; /* what is stated of it; NULL: nothing */
	const struct judge_context
		*of_node; /* of several: by node, each of its slice of the record and its own
			     machine; `gpu` is then all of theirs. NULL: this is the only one */
};

/* What NCCL chose, or may; NULL: nothing is told of it. */
struct choice {
	const char *algorithm, *protocol, *nvls;
};

struct subject {
	const struct judge_context *ctx;
	const struct site *site; /* NULL: nothing is stated */
	const struct record_case *c;
	const struct gpu *gpu;		  /* the case's first; NULL: none */
	const struct gpu *peer;		  /* a pair's second, which receives; NULL: none */
	unsigned gpu_count;		  /* of the case; on several nodes this rank's own */
	const struct sku *sku;		  /* NULL: not known */
	const struct sku *flops;	  /* row that gives FLOP a clock: SKU or architecture; NULL: none */
	const char *kind;		  /* "cpu" "gpu" "pair" "node" */
	const char *type;		  /* "bf16" of limit compute.bf16; "" */
	const struct choice *supposed;	  /* of what the case does not tell itself; NULL: nothing */
	enum require require;		  /* JUDGED, MEASURED, NOTHING: KNOWN is settled */
	const struct record_phase *phase; /* judged; NULL: none was recorded */
	const char *phase_name;		  /* of it, or (ahead) of the one that would be */
	const char *field, *unit;	  /* of the figure; "" none */
	double figure;
	bool has_figure;
};

/* The machine's facts tree of a record (docs/explanation/design/machine.md); NULL: the journal has none.
 * Lent. */
const json_t *context_facts(const struct record *r);
/* It is a training run. */
bool subject_trains(const struct subject *s);
/* In the context of the case's node. */
void subject_of(struct subject *s, const struct judge_context *ctx, const struct record_case *c);
/* The first rule that suffices to judge such a case; NULL: none. */
const struct rule *subject_judging_rule(const struct subject *s);
/* expect_look for a subject: every word of docs/explanation/design/expectations.md. */
const char *subject_word(const void *subject, const char *word, char *buffer, size_t size);
/* The i-th GPU of the case; NULL: the machine has it not. */
const struct gpu *subject_gpu(const struct subject *s, size_t i);
/* The GPU of this address is among the case's. */
bool case_uses(const struct record_case *c, const char *pci);
/* A number of the judged phase, else of any phase of the case ("once" first). */
bool subject_number(const struct subject *s, const char *field, double *out);
bool case_number(const struct record_case *c, const char *field, double *out);
const char *case_text(const struct record_case *c, const char *field);
/* The case ended well with data that is right. */
bool case_right(const struct record_case *c);
/* It is right, and fit as an instrument for others: an attempt with other kernels is none, though its key is
 * another case's. */
bool case_sound(const struct record_case *c);
/* What the telemetry says of the judged window; false where there is none. */
bool subject_span(const struct subject *s, const char *signal, struct span *out);
/*
 * A share that GPM tells ("tensor", "fp32", "fp64", "sm", "dram"): from the record's own readings where it
 * has them (whole intervals inside the window alone), else the field of the judged phase. False: absent.
 */
bool subject_gpm(const struct subject *s, const char *name, double *out);
/*
 * A value of hardware counters over some iterations behind the judged window, by its name of
 * docs/reference/counters.md. False: absent, or they took other cycles an iteration than the window's did: it
 * is not the window's work that they saw.
 */
bool subject_counter(const struct subject *s, const char *name, double *out);
/* 8 x L2 or more a step: too large for the cache to flatter. Unknown L2: 1 GiB. */
bool subject_beyond_cache(const struct subject *s);

/* Raises the verdict where this one weighs more (verdict_weight); the first of equal weight stays. A
 * judgement without a reason has no verdict yet. */
void finding(struct judgement *j, enum verdict verdict, enum cause cause, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A cause worth naming although it changes no verdict; the first stays. */
void remark(struct judgement *j, enum cause cause);
#endif
