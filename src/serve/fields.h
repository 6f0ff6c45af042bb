/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a server's run, from its request log: X(name, unit, better, help). A percentile with too few
 * answers is left out. */
#ifndef SERVE_FIELDS_H
#define SERVE_FIELDS_H

#define SERVE_TIMES(X, name, what)                                                                           \
	X(name##_p50_s, "s", -1, what ", median")                                                            \
	X(name##_p95_s, "s", -1, what ", 95th percentile")                                                   \
	X(name##_p99_s, "s", -1, what ", 99th percentile")                                                   \
	X(name##_samples, "", 0, what ": number of answers measured")

#define SERVE_FIELDS(X)                                                                                      \
	X(requests, "", 0, "requests for text")                                                              \
	X(answered, "", 0, "requests answered completely")                                                   \
	X(refused, "", -1, "requests refused for their content, key or size (4xx without 429)")              \
	X(limited, "", -1, "requests refused because the queue was full (429)")                              \
	X(failed, "", -1, "requests that ended with a server error (5xx)")                                   \
	X(left, "", 0, "requests whose client left or did not read")                                         \
	X(retried, "", -1, "requests submitted again after the engine was lost")                             \
	X(prompt_tokens, "", 0, "tokens of prompts")                                                         \
	X(tokens, "", 0, "tokens generated")                                                                 \
	X(cache_hit_share, "", 1, "share of the prompts' tokens found in the prefix cache")                  \
	SERVE_TIMES(X, ttft, "time to first token")                                                          \
	SERVE_TIMES(X, tpot, "mean time between two tokens of an answer")                                    \
	SERVE_TIMES(X, e2e, "time of a whole answer")                                                        \
	X(engine_starts, "", 0, "starts of the engine process")                                              \
	X(served_s, "s", 0, "time with a ready engine")
#endif
