/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request: its header, and what the stub needs of its JSON body. */
#ifndef TESTS_LOAD_REQUEST_H
#define TESTS_LOAD_REQUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	REQUEST_HEADER_MOST = 65536,
	REQUEST_BODY_MOST = 64 << 20,
	REQUEST_TOKENS_MOST = 1000000,
	REQUEST_TOKENS_PRESET = 16
};

struct request {
	size_t head, body; /* bytes; head 0: the header is not complete */
	bool close;	   /* the client wants the connection closed after the answer */
	bool expect;	   /* it waits for 100 Continue */
	char method[8], path[64];
	/* of the body: */
	bool chat, stream, usage;
	uint64_t prompt_tokens; /* words of all contents; token ids count as words */
	uint32_t max_tokens;
};

/* 0: fine, or more bytes are needed (head is 0); otherwise the HTTP status of a refusal. */
int request_read_header(struct request *r, const char *bytes, size_t size);
/* 0, or 400 with a message. */
int request_read_body(struct request *r, const char *bytes, const char **message);
#endif
