/* SPDX-License-Identifier: Apache-2.0 */
/* Errors for clients in OpenAI's shape, {"error": {"message", "type", "param", "code"}}. */
#ifndef SERVE_PROTOCOL_ERROR_H
#define SERVE_PROTOCOL_ERROR_H
#include <stdbool.h>
#include "core/error.h"
#include "core/text/text.h"

struct api_error {
	int http;	   /* status of the response; 0: no error */
	const char *type;  /* static: "invalid_request_error", .. */
	const char *code;  /* static; NULL: null */
	unsigned retry_s;  /* Retry-After; 0: none */
	char param[96];	   /* the field; "": null */
	char message[512]; /* a sentence */
};

/* Both keep the first error, and return false, so that callers can write `return api_wrong(..)`. */
/* 400: a field is wrong. `param` may be "". */
bool api_wrong(struct api_error *e, const char *param, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Any other error. The type follows from the status. `code` is static or NULL. */
bool api_fail(struct api_error *e, int http, const char *code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The error of a function of assay: 400 for BAD_INPUT and UNSUPPORTED, else 500. */
bool api_from(struct api_error *e, const char *param, const struct error *err);
/* Appends the body. */
void api_error_body(struct text *out, const struct api_error *e);
/* The same in Anthropic's shape, {"type": "error", "error": {"type", "message"}}. */
void api_error_body_messages(struct text *out, const struct api_error *e);
#endif
