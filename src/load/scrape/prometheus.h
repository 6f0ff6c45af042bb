/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text that inference servers give at /metrics (Prometheus' text format 0.0.4), and finds the few
 * readings that most of them have. Nothing here knows of sockets.
 */
#ifndef LOAD_SCRAPE_PROMETHEUS_H
#define LOAD_SCRAPE_PROMETHEUS_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum { PROMETHEUS_MOST = 1 << 24 }; /* bytes of a text */

struct prometheus_sample {
	const char *name; /* lent from the text, as all here; not NUL-terminated */
	size_t name_size;
	const char *labels; /* between the braces, as written */
	size_t labels_size;
	double value; /* may be NaN or infinite */
};
/*
 * Calls `take` for each sample. BAD_INPUT: a line is no sample and no comment, or the text is larger than
 * PROMETHEUS_MOST; names the line.
 */
enum status prometheus_read(const char *text, size_t size,
			    void (*take)(void *arg, const struct prometheus_sample *s), void *arg,
			    struct error *err);

/* name, word in files, unit, whether it only grows, meaning */
/* clang-format off */
#define LOAD_READINGS(X)                                                                          \
	X(RUNNING, "running", "", false, "requests that the server computes")                     \
	X(WAITING, "waiting", "", false, "requests in the server's queue")                        \
	X(KV_USE, "kv_use", "", false, "share of the KV cache in use, mean of the engines")       \
	X(PROMPT_TOKENS, "prompt_tokens", "", true, "tokens of prompts")                          \
	X(GENERATED_TOKENS, "generated_tokens", "", true, "tokens generated")                     \
	X(CACHE_QUERIES, "cache_queries", "", true, "tokens looked up in the prefix cache")       \
	X(CACHE_HITS, "cache_hits", "", true, "tokens found in the prefix cache")                 \
	X(PREEMPTIONS, "preemptions", "", true, "requests that were preempted")
/* clang-format on */
#define X(name, ...) LOAD_READING_##name,
enum load_reading { LOAD_READINGS(X) LOAD_READING_COUNT };
#undef X
struct load_reading_row {
	const char *word, *unit, *meaning;
	bool grows; /* a counter: its difference over a time counts */
};
const struct load_reading_row *load_reading_row(enum load_reading r);

struct load_scrape {
	const char *server; /* "vllm", "sglang", ..; NULL: none of those that are known */
	double value[LOAD_READING_COUNT];
	bool known[LOAD_READING_COUNT]; /* false: this server does not report it */
};
/*
 * Samples of one name with different labels (engines, ranks, models) are added up; of KV_USE the mean is
 * taken. Only the names of one server count, because servers repeat figures under other servers' names.
 * BAD_INPUT as prometheus_read.
 */
enum status load_scrape_read(struct load_scrape *out, const char *text, size_t size, struct error *err);
#endif
