/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the front end and the engine say to each other: requests in, events out. Both know only token ids. The
 * same structs serve callers within one process (engine/engine.h) and, as frames, two processes
 * (engine/frame/frame.h).
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ENGINE_TOP_MOST = 20,	     /* most alternatives of a token with log probabilities */
	ENGINE_STOPS_MOST = 64,	     /* most stop token ids of a request */
	ENGINE_BIAS_MOST = 1024,     /* most entries of a request's logit bias */
	ENGINE_PRIORITY_FIRST = -16, /* others are refused */
	ENGINE_PRIORITY_LAST = 15,
};

/* The order of work on logits: repetition, presence and frequency penalty; bias; grammar mask; temperature;
 * top_k; top_p; min_p. Log probabilities that are returned come from the logits before all of these. */
struct engine_sampling {
	float temperature;	   /* 0: greedy: the most likely token; of equals, the lowest id */
	float top_p;		   /* (0, 1]; 1: all */
	float min_p;		   /* [0, 1]: least probability relative to the most likely token's; 0: all */
	float repetition;	   /* > 0; 1: none. Applies to tokens of the prompt and of the text */
	float presence, frequency; /* 0: none. They apply to tokens of the text */
	int32_t top_k;		   /* 0: all */
	uint64_t seed;
};

struct engine_bias {
	int32_t id;
	float add; /* -INFINITY: never */
};

/* All pointers are lent for the call. */
struct engine_request {
	uint64_t id;	  /* chosen by the caller; unique among running requests */
	uint64_t client;  /* requests of one client share its part of the device */
	int32_t priority; /* a lower number comes first */
	int32_t adapter;  /* number of the adapter in the order of loading; -1: the base model */
	const int32_t *prompt;
	size_t prompt_count; /* at least 1 */
	int64_t max_tokens;  /* of the text; 0: as many as the context allows; -1: none, only score the prompt
			      */
	int64_t min_tokens;  /* stop ids cannot occur before, unless the grammar allows nothing else */
	const int32_t *stop; /* ids that end the text; they are reported, with end ENGINE_END_STOP */
	size_t stops;
	const struct engine_bias *bias;
	size_t biases;
	struct engine_sampling sampling;
	int32_t logprobs;	 /* alternatives per token, 0 .. ENGINE_TOP_MOST; -1: no log probabilities */
	int32_t prompt_logprobs; /* the same for each token of the prompt but the first */
	uint64_t cache_salt;	 /* pages are shared only among requests with the same salt */
	uint64_t deadline_ns;	 /* monotonic clock; 0: none */
	/* A grammar that the text must follow (engine/grammar/grammar.h): its JSON source; NULL: none. */
	const char *grammar;
	size_t grammar_size;
};

enum engine_end {
	ENGINE_END_STOP,      /* a stop id, or the grammar's end */
	ENGINE_END_LENGTH,    /* max_tokens, or the context is full */
	ENGINE_END_CANCELLED, /* the caller asked for it */
	ENGINE_END_DEADLINE,
	ENGINE_END_REFUSED, /* the request cannot run, or its own fields forbid to go on; text says why */
	ENGINE_END_FAILED,  /* NaN logits, or a mask without any token; text says what */
};

struct engine_logprob {
	int32_t id;
	float logprob; /* natural logarithm */
};

enum engine_event_kind {
	ENGINE_EVENT_BEGUN, /* the request left the queue: prefill begins */
	ENGINE_EVENT_TOKEN,
	ENGINE_EVENT_PROMPT, /* log probability of one token of the prompt; in order, before the first token
			      */
	ENGINE_EVENT_END     /* exactly once for each submitted request; the last one */
};

struct engine_event {
	enum engine_event_kind kind;
	uint64_t id; /* of the request */
	/* TOKEN and PROMPT */
	int32_t token;
	float logprob; /* if the request asked for log probabilities */
	int32_t tops;
	struct engine_logprob top[ENGINE_TOP_MOST]; /* most likely first */
	/* END */
	enum engine_end end;
	int32_t prompt_tokens, cached_tokens, tokens;
	bool bad_grammar; /* REFUSED: no text can follow the grammar, or it is no grammar. Frames do not have
			     it. */
	char text[256];	  /* REFUSED and FAILED: a message for the client; otherwise "" */
};

/* Gauges and counters of the engine, sent with each step's events (names: journal/metrics). */
struct engine_facts {
	uint64_t steps, tokens, prompt_tokens, cached_tokens, preemptions, ended; /* since the start */
	int32_t running, waiting, pages, pages_used, pages_cached;
	double step_s; /* duration of the last step */
	double busy_s; /* sum over all steps */
};

/* What the engine says once its weights are loaded. */
struct engine_ready {
	char device[96]; /* "cpu", or the GPU's name */
	bool shared;	 /* other programs have memory of the GPU, so its GEMMs have no wide clusters */
	int64_t vocab, context, pages, page_tokens, sequences;
	double weight_bytes, cache_bytes, load_s;
	/* Of a deterministic engine on a GPU: seconds of a step that decodes `measured_rows` sequences, and
	 * of the same step without `deterministic`. measured_rows 0: not measured. */
	int64_t measured_rows;
	double deterministic_s, ordinary_s;
};
#endif
