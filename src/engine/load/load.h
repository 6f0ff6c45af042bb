/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model on a device, ready to generate text: weights and adapter from their files, the memory of a step,
 * and the pages of the KV cache. Everything comes from one block of memory, which is planned before it is
 * taken.
 */
#ifndef ENGINE_LOAD_LOAD_H
#define ENGINE_LOAD_LOAD_H
#include "core/log.h"
#include "engine/load/adapters.h"
#include "model/decoder/paged_step.h"
#include "model/files/weights.h"

/* AUTO: a GPU if one is usable, else the CPU; there is a warning if a GPU exists but is not usable. */
enum load_device { LOAD_AUTO, LOAD_CPU, LOAD_GPU };

/* CHOSEN: by one kernel, if timing at load finds that to be faster. For comparisons: APART, by several
 * kernels; FUSED, by one kernel where it can. */
enum load_adapters { LOAD_ADAPTERS_CHOSEN, LOAD_ADAPTERS_APART, LOAD_ADAPTERS_FUSED };

struct load_options {
	enum load_device device;
	const char *model; /* folder or GGUF file */
	/* PEFT folders; the first NULL ends them. A request chooses one of several, or none. */
	const char *adapter[ADAPTERS_MOST + 1];
	bool merge;    /* add a single adapter to the weights, unless they stay quantized */
	bool any_base; /* an adapter of other weights causes only a warning (model/files/peft/base.h) */
	const struct log *log;	       /* NULL: no warnings */
	void (*before_cpu)(void *arg); /* called before the CPU's library is loaded; may be NULL */
	void *arg;		       /* argument of before_cpu */

	int64_t positions;	/* longest sequence; 0: the model's context */
	int64_t positions_most; /* a limit for the model's context; 0: none */
	int64_t sequences;	/* most sequences at once; 0: a default of the device */
	int64_t rows;		/* most rows of a step; 0: a default of the device */
	int64_t outputs; /* most rows of a step that need logits; 0: 2 * sequences + page_tokens, at least 64
			  */
	int64_t vocab;	 /* ids below this are sampled; 0: all of the model's */
	int32_t page_tokens; /* 16, 32 or 64; 0: LOAD_PAGE_TOKENS */
	/* Pages of the KV cache without page 0. 0: as many as `memory` allows, but no more than all sequences
	 * can fill. */
	int64_t pages;
	uint64_t memory;   /* bytes for everything; 0: 90 % of the GPU's memory, half of the host's */
	bool cache_e4m3;   /* KV cache in E4M3 */
	bool weights_e4m3; /* the layers' matrices in E4M3 with a scale per row, quantized at load (GPU) */
	bool weights_f32;  /* all weights in F32, also those that the file has in blocks or 16 bits (CPU) */
	bool library_gemm; /* no GEMMs by assay's own kernels, for comparisons (GPU) */
	enum load_adapters adapters; /* how GEMMs with several adapters run (GPU) */
	bool penalties;		     /* requests may use penalties */
	bool no_tuning;		     /* GEMMs run as if nothing had been timed (GPU) */
	bool deterministic;
};
enum {
	LOAD_PAGE_TOKENS = 32,
	LOAD_ROWS_CPU = 256,
	LOAD_ROWS_GPU = 8192,
	LOAD_SEQUENCES_CPU = 16,
	LOAD_SEQUENCES_GPU = 256,
};

struct load_plan {
	uint64_t bytes;		       /* of all parts */
	uint64_t kind[MEM_KINDS];      /* these add up to `bytes` */
	uint64_t kind_peak[MEM_KINDS]; /* the largest size of each kind, at different times */
	uint64_t page_bytes;
	int64_t pages, page_tokens, sequences, positions;
	char device[64]; /* set by load_plan: "cpu", the GPU's name, or "gpu" for any GPU of the stated memory
			  */
};

/* What `deterministic` costs a step that decodes `rows` sequences. rows 0: it was not measured. */
struct deterministic_cost {
	int64_t rows;
	double step_s, ordinary_s; /* medians; ordinary: the same step without `deterministic` */
};

struct loaded {
	struct weights weights;
	struct adapters adapters;
	struct model *model;
	struct backend back;
	struct arena arena;
	struct paged_step *step;
	struct paged_limits most;
	bool copies; /* the GPU, or any that the plan is for, copies the pages of prompts */
	int64_t pages, positions;
	struct load_plan planned;
	struct deterministic_cost deterministic_cost;
	void *memory; /* of a CPU's arena */
};

/* Computes the plan of options.device from the files' headers. The device is chosen as load_open chooses it.
 * With GPU and `memory`, the plan is one for any GPU of this memory. NO_RESOURCE: the memory does not hold
 * the weights and one sequence. */
enum status load_plan(struct load_plan *plan, const struct load_options *o, struct error *err);

/* Owner: caller, load_close, also after a failure. */
enum status load_open(struct loaded *l, const struct load_options *o, struct error *err);
void load_close(struct loaded *l);

struct load_facts {
	const char *device; /* "cpu", or the GPU's name; lent */
	bool gpu;
	bool shared;	     /* gpu_backend_is_shared */
	double weight_bytes; /* bytes of weights read per token */
	double memory_rate;  /* bandwidth of the device's memory in B/s, from its clock; 0: unknown */
};
struct load_facts load_facts(const struct loaded *l);
#endif
