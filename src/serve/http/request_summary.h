/* SPDX-License-Identifier: Apache-2.0 */
/* A summary of the request log (request_log.h): counts, tokens and percentiles of times. */
#ifndef SERVE_HTTP_REQUEST_SUMMARY_H
#define SERVE_HTTP_REQUEST_SUMMARY_H
#include <jansson.h>
#include <stdint.h>
#include "core/error.h"

enum { REQUEST_SUMMARY_LINES = 4000000 }; /* later lines are not read */

/* Reads the log from byte `begin` on. *out: an object with the fields of serve/fields.h that a request log
 * can give; times without a sample are absent. Lines that are not whole JSON objects are left out. Owner of
 * *out: caller. UNAVAILABLE: the file cannot be read. */
enum status request_summary_read(json_t **out, const char *path, uint64_t begin, struct error *err);
#endif
