/* SPDX-License-Identifier: Apache-2.0 */
/* A model, with an adapter or without, loaded on the CPU or a GPU to make text. */
#ifndef MODEL_GENERATION_INFERENCE_H
#define MODEL_GENERATION_INFERENCE_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/log.h"
#include "model/generation/sampling.h"

/* AUTO: a GPU where one answers and this program can use it, else the CPU, with a warning where a GPU is
 * there. */
enum inference_device { INFERENCE_AUTO, INFERENCE_CPU, INFERENCE_GPU };

struct inference_options {
	enum inference_device device;
	const char *model;     /* folder or GGUF file */
	const char *adapter;   /* PEFT's folder; NULL: none */
	bool merge;	       /* the adapter into the weights, before the first token */
	bool any_base;	       /* an adapter of other weights is warned of alone (files/peft_base.h) */
	const struct log *log; /* NULL: nobody is warned */
	int64_t positions;     /* prompt and text together */
	void (*before_cpu)(void *arg); /* called before the CPU's library is loaded; NULL: nothing */
	void *arg;		       /* its */
};

struct inference;
/* Owner: caller, inference_close. */
enum status inference_open(struct inference **out, const struct inference_options *o, struct error *err);
void inference_close(struct inference **i); /* NULL-safe */
/* Rows of the embedding: ids are below. */
int64_t inference_vocab(const struct inference *i);
/* Positions that the model was made for; it takes more. */
int64_t inference_context(const struct inference *i);

struct inference_facts {
	const char *device; /* "cpu", or the GPU's name; lent */
	bool gpu;
	double weight_bytes; /* that a token reads */
	double memory_rate;  /* bytes a second that the device's memory has by its clock; 0: not known */
};
struct inference_facts inference_facts(const struct inference *i);

/* Tokens that come together, where each is the likeliest and nobody asks for logits: those of a launch;
 * else 1. Of the speaking that goes on now. */
uint64_t inference_at_once(const struct inference *i);

struct inference_ask {
	struct sampling sampling;
	int64_t tokens;	     /* most to make */
	int64_t vocab;	     /* ids below it may be made */
	const int32_t *stop; /* ids that end the text and are not handed on; -1: none */
	size_t stops;
	bool logits; /* take() wants them; else a GPU gives it NULL */
	const volatile sig_atomic_t
		*cancel; /* set: a prompt being read ends it with CANCELLED; may be NULL */
};
/* Each token goes to take(arg, id, logits) with the logits that it was chosen from, which ends the text by
 * false. *stopped: by one of `stop`. */
enum status inference_speak(struct inference *i, const int32_t *prompt, size_t count,
			    const struct inference_ask *ask,
			    bool (*take)(void *arg, int32_t id, const float *logits), void *arg,
			    bool *stopped, struct error *err);
#endif
