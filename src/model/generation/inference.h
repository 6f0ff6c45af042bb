/* SPDX-License-Identifier: Apache-2.0 */
/* A model with an optional adapter, loaded on the CPU or a GPU for text generation. */
#ifndef MODEL_GENERATION_INFERENCE_H
#define MODEL_GENERATION_INFERENCE_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/log.h"
#include "model/generation/sampling.h"

/* AUTO: a GPU if one is usable, else the CPU; there is a warning if a GPU exists but is not usable. */
enum inference_device { INFERENCE_AUTO, INFERENCE_CPU, INFERENCE_GPU };

struct inference_options {
	enum inference_device device;
	const char *model;   /* folder or GGUF file */
	const char *adapter; /* PEFT folder; NULL: none */
	bool merge;	     /* merge the adapter into the weights before generating */
	/* An adapter of other weights causes only a warning (model/files/peft/base.h). */
	bool any_base;
	const struct log *log;	       /* NULL: no warnings */
	int64_t positions;	       /* prompt and text together */
	void (*before_cpu)(void *arg); /* called before the CPU's library is loaded; may be NULL */
	void *arg;		       /* argument of before_cpu */
};

struct inference;
/* Owner: caller, inference_close. */
enum status inference_open(struct inference **out, const struct inference_options *o, struct error *err);
void inference_close(struct inference **i); /* NULL-safe */
/* Rows of the embedding; token ids are below this. */
int64_t inference_vocab(const struct inference *i);
/* Positions that the model was trained for; more are allowed. */
int64_t inference_context(const struct inference *i);

struct inference_facts {
	const char *device; /* "cpu", or the GPU's name; lent */
	bool gpu;
	double weight_bytes; /* bytes of weights read per token */
	double memory_rate;  /* bandwidth of the device's memory in B/s, from its clock; 0: unknown */
};
struct inference_facts inference_facts(const struct inference *i);

/* Number of tokens that arrive together in the present generation: those of a launch for greedy decode
 * without logits; else 1. */
uint64_t inference_at_once(const struct inference *i);

struct inference_ask {
	struct sampling sampling;
	int64_t tokens;	     /* limit of new tokens */
	int64_t vocab;	     /* only token ids below this are generated */
	const int32_t *stop; /* ids that end the text and are not passed to take(); -1: none */
	size_t stops;
	bool logits;			     /* take() needs the logits; otherwise a GPU passes NULL */
	const volatile sig_atomic_t *cancel; /* when set, prefill ends with CANCELLED; may be NULL */
};
/* Generates text. Each token is passed to take(arg, id, logits) with the logits that it was chosen from;
 * false ends the text. *stopped: the text ended by one of `stop`. */
enum status inference_generate(struct inference *i, const int32_t *prompt, size_t count,
			       const struct inference_ask *ask,
			       bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
			       bool *stopped, struct error *err);
#endif
