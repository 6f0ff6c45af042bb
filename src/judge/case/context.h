/* SPDX-License-Identifier: Apache-2.0 */
/* One case and the facts around it, as the parts of the judge see them. The structures own no memory: all
 * pointers stay valid only as long as the record, the expectations and the machine do. */
#ifndef JUDGE_CASE_CONTEXT_H
#define JUDGE_CASE_CONTEXT_H
#include "judge/expect/expect.h"

struct site;
struct judge_context {
	const struct record *record;
	const struct expectations *e;
	const struct gpu *const *gpu; /* the machine's GPUs, in PCI order */
	size_t gpu_count;
	const struct cpu *cpu;		     /* NULL: not recorded */
	bool ahead;			     /* nothing has run yet; say what would judge the cases */
	const struct site *site;	     /* the user's statements about the machine; NULL: nothing */
	const struct judge_context *of_node; /* for a run on several nodes: one context per node, with its
						part of the record and its own machine. `gpu` above then holds
						the GPUs of all nodes. NULL: the run has one node */
};

/* A choice of NCCL, made or possible; NULL: not known. */
struct choice {
	const char *algorithm, *protocol, *nvls;
};

struct subject {
	const struct judge_context *ctx;
	const struct site *site; /* NULL: nothing is stated */
	const struct record_case *c;
	const struct gpu *gpu;	 /* the case's first GPU; NULL: none */
	const struct gpu *peer;	 /* second GPU of a pair, which receives; NULL: none */
	unsigned gpu_count;	 /* GPUs of the case; in a run on several nodes, those of this rank */
	const struct sku *sku;	 /* NULL: not known */
	const struct sku *flops; /* the SKU or architecture row with the FLOP per clock; NULL: none */
	const char *kind;	 /* "cpu" "gpu" "pair" "node" */
	const char *type;	 /* "bf16" of limit compute.bf16; "" if the limit names no type */
	const struct choice
		*supposed;    /* assumed choice of NCCL if the case does not report one; NULL: none */
	enum require require; /* JUDGED, MEASURED or NOTHING; KNOWN is already resolved to one of them */
	const struct record_phase *phase; /* the phase that is judged; NULL: none was recorded */
	const char *
		phase_name; /* its name; before a run (`ahead`), the name of the phase that would be judged */
	const char *field, *unit; /* of the figure; "" if there is none */
	double figure;
	bool has_figure;
};

/* The word of a condition, and the field of a load test: the number of the server's GPUs. Absent: not known.
 */
#define JUDGE_SERVER_GPUS "server_gpus"

/* The facts tree of the recorded machine (docs/explanation/design/machine.md), owned by the record. NULL: the
 * journal has none. */
const json_t *context_facts(const struct record *r);
/* True if the case is a training run. */
bool subject_trains(const struct subject *s);
/* True if the case is a load test. */
bool subject_loads(const struct subject *s);
/* Fills the subject in the context of the case's node. */
void subject_of(struct subject *s, const struct judge_context *ctx, const struct record_case *c);
/* Returns the first rule that suffices to judge this case; NULL: none. */
const struct rule *subject_judging_rule(const struct subject *s);
/* expect_look for a subject: answers every word of docs/explanation/design/expectations.md. */
const char *subject_word(const void *subject, const char *word, char *buffer, size_t size);
/* Returns the i-th GPU of the case; NULL: the machine does not have it. */
const struct gpu *subject_gpu(const struct subject *s, size_t i);
/* True if the case uses the GPU of this PCI address. */
bool case_uses(const struct record_case *c, const char *pci);
/* Reads a number of the judged phase, else of any phase of the case ("once" first). False: absent. */
bool subject_number(const struct subject *s, const char *field, double *out);
bool case_number(const struct record_case *c, const char *field, double *out);
const char *case_text(const struct record_case *c, const char *field);
/* True if the case ended normally with correct data. */
bool case_right(const struct record_case *c);
/* True if the case is right and its figure can serve as a reference for other cases. Cases that only try
 * other kernels cannot, although they have the key of another case. */
bool case_sound(const struct record_case *c);
/* The series of a signal of the GPU with this PCI address, owned by the record. NULL: not recorded. */
const struct series *gpu_series(const struct record *r, const char *pci, const char *signal);
/* Reads the telemetry of the judged window. False: there is none. */
bool subject_span(const struct subject *s, const char *signal, struct span *out);
/* Reads a share that GPM reports ("tensor", "fp32", "fp64", "sm", "dram"). The record's own readings come
 * first, and only intervals that lie wholly inside the window count. Without readings, the field of the
 * judged phase counts. False: absent. */
bool subject_gpm(const struct subject *s, const char *name, double *out);
/* Reads a hardware counter of some iterations after the judged window, by its name in
 * docs/reference/counters.md. False: absent, or the counted iterations took another number of cycles than
 * those of the window, so they did other work. */
bool subject_counter(const struct subject *s, const char *name, double *out);
/* True if a step moves at least 8 times the L2 size, too much for the cache to raise the rate. If the L2 size
 * is not known: 1 GiB. */
bool subject_beyond_cache(const struct subject *s);

/* Sets verdict, cause and reason if this verdict weighs more than the present one (verdict_weight). The
 * first of several equal weights stays. A judgement without a reason has no verdict yet. */
void finding(struct judgement *j, enum verdict verdict, enum cause cause, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Sets a cause that is worth naming although it changes no verdict. The first cause stays. */
void remark(struct judgement *j, enum cause cause);
#endif
