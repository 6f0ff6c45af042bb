/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the stub server, and its list of faults. */
#ifndef TESTS_LOAD_OPTIONS_H
#define TESTS_LOAD_OPTIONS_H
#include <stdbool.h>
#include <stdint.h>

/* symbol, word, default of VALUE, meaning */
/* clang-format off */
#define STUB_FAULTS(X) \
	X(NONE, "none", 0, "no fault") \
	X(REFUSE, "refuse", 0, "the connection is closed as soon as it is accepted (a share of connections)") \
	X(RESET, "reset", 0, "RST in the middle of the answer") \
	X(STALL, "stall", 1, "no token for VALUE seconds in the middle of the answer") \
	X(GARBAGE, "garbage", 0, "the answer is not HTTP") \
	X(BAD_CHUNK, "bad_chunk", 0, "a chunk of the stream has a size that is no number") \
	X(ENDLESS_HEADER, "endless_header", 0, "the HTTP header goes on for a megabyte, then the connection is closed") \
	X(BAD_JSON, "bad_json", 0, "one event, or the body, is broken JSON") \
	X(REDIRECT, "redirect", 9, "302 to port VALUE of the same host") \
	X(WRONG_USAGE, "wrong_usage", 2, "usage.completion_tokens is VALUE times the truth") \
	X(NO_USAGE, "no_usage", 0, "no usage although it was asked for") \
	X(LOST_TOKENS, "lost_tokens", 1, "VALUE tokens are counted in usage but not sent") \
	X(DUPLICATE, "duplicate", 0, "one event is sent twice") \
	X(MULTI, "multi", 3, "VALUE tokens per event") \
	X(SPLIT, "split", 0, "each event comes in four writes, one cut within a UTF-8 character") \
	X(EARLY_CLOSE, "early_close", 0, "the connection is closed in the middle of a token's event") \
	X(NO_DONE, "no_done", 0, "no data: [DONE]") \
	X(NO_FINISH, "no_finish", 0, "no finish_reason") \
	X(ERROR_EVENT, "error_event", 0, "an error object in the stream, which then ends") \
	X(LIMITED, "429", 1, "429 with Retry-After: VALUE") \
	X(UNAVAILABLE, "503", 0, "503, with Retry-After: VALUE if VALUE is not 0") \
	X(SLOW_HEADERS, "slow_headers", 1, "the HTTP header takes VALUE seconds, in four pieces") \
	X(CONTENT_LENGTH, "content_length", 0, "a stream with Content-Length instead of chunks") \
	X(HUGE, "huge", 100e6, "one token of VALUE bytes") \
	X(HANG, "hang", 0, "the request is read and never answered") \
	X(STALE, "stale", 0, "a request on a connection that was used before is not answered, and the connection is closed") \
	X(CACHED, "cached", 1, "usage reports VALUE cached tokens, at most those of the prompt") \
	X(HTTP10, "http10", 0, "HTTP/1.0 without a length; the end of the connection ends the answer")
/* clang-format on */
#define X(name, ...) STUB_FAULT_##name,
enum stub_fault { STUB_FAULTS(X) STUB_FAULT_COUNT };
#undef X
const char *stub_fault_word(enum stub_fault f);

enum stub_jitter { STUB_JITTER_NONE, STUB_JITTER_UNIFORM, STUB_JITTER_LOGNORMAL };
enum stub_names {
	STUB_NAMES_VLLM,
	STUB_NAMES_SGLANG,
	STUB_NAMES_TGI,
	STUB_NAMES_LLAMACPP,
	STUB_NAMES_ASSAY,
	STUB_NAMES_COUNT
};

struct stub_options {
	uint16_t port;
	unsigned threads;
	uint64_t seed, ttft_ns, itl_ns;
	uint64_t role_ns; /* UINT64_MAX: together with the first token */
	enum stub_jitter jitter;
	double jitter_size; /* uniform: half the width; lognormal: sigma of the logarithm */
	uint64_t burst;	    /* so many requests in a row have the same fault */
	double rate_most;   /* requests begun in a second; others wait for their turn; 0: no limit */
	uint64_t loading;   /* the first so many requests get 503, as while a server loads its model */
	bool by_content;    /* a request's fault and jitter follow from its body, not from its number */
	double share[STUB_FAULT_COUNT], value[STUB_FAULT_COUNT];
	enum stub_names names;
	const char *model, *truth; /* truth NULL: none */
};

/* 0, or the exit code after a message to stderr (--help: -1, printed to stdout). */
int stub_options_read(struct stub_options *o, int argc, char **argv);
#endif
