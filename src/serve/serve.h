/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP front end of the inference server: OpenAI's API over libmicrohttpd. It holds no model: an engine
 * process, which the supervisor starts, computes token ids. One thread runs all connections; a few others
 * read and tokenize requests.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/log.h"

/* 0 stands for the default, which is given with each. */
struct serve_limits {
	size_t body_bytes;    /* largest body of a request; 32 MiB */
	size_t bodies_bytes;  /* all bodies that are being received; 1 GiB */
	size_t header_bytes;  /* largest request line with headers, and buffer of a connection; 32 KiB */
	size_t messages;      /* most messages of a conversation; 4096 */
	size_t prompt_tokens; /* 1 Mi; the model's context is a limit too */
	size_t connections;   /* 10,000, if the limit of open files allows that */
	size_t queue;	      /* sequences that run or wait, before 429; 4096 */
	size_t unread_bytes;  /* a stream is cancelled if the client leaves that much unread; 1 MiB */
	unsigned read_s;      /* to receive a whole request; 60 */
	unsigned idle_s;      /* without a request on an open connection; 75 */
	unsigned answer_s;    /* from the receipt of a request to the end of its answer; 0: no limit */
	unsigned hang_s;      /* an engine that says nothing for that long is lost; 10 */
	unsigned restart_s;   /* that a retried request waits for a new engine; 120 */
	unsigned drain_s;     /* that requests may take to end after TERM; 600 */
	unsigned workers;     /* threads that read requests; 2 */
};

struct serve_options {
	const char *model;	   /* path for the tokenizer and the chat template */
	const char *chat_template; /* its name; NULL: the model's own */
	const char *const *models; /* served names, at least one; NULL-terminated */
	const char *const
		*adapters;   /* served names of adapters in the engine's order; NULL-terminated, or NULL */
	const char *address; /* to listen on; NULL: 127.0.0.1 */
	uint16_t port;	     /* 0: any free one */
	const char *tls_certificate, *tls_key; /* PEM files; both or none */
	const char *api_key_file;	       /* one key a line; NULL: no key is needed */
	const char *cors_origin;	       /* "*" or one origin; NULL: none */
	const char *request_log;	       /* JSON Lines with lengths, times and status. NULL: none */
	bool log_requests; /* contents of requests too; otherwise they are written nowhere */
	int control;	   /* socket of the supervisor (serve/link/supervisor.h); the front end owns it */
	struct serve_limits limits;
	const struct log *log;
};

struct front_end;
/* Opens tokenizer, keys, log and socket. BAD_INPUT or UNAVAILABLE say which of them is wrong; a port in use
 * is named. Texts of `options` are lent for the front end's life. Owner: caller, front_end_destroy. */
enum status front_end_create(struct front_end **out, const struct serve_options *options, struct error *err);
void front_end_destroy(struct front_end **fe); /* NULL-safe */
/* Tells the supervisor the port, then serves until it is drained or the supervisor is gone. */
enum status front_end_run(struct front_end *fe, struct error *err);
/* Refuses new requests, finishes those that run, and lets front_end_run return. A second call ends them at
 * once. Async-signal-safe. */
void serve_drain(struct front_end *fe);
#endif
