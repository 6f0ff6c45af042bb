/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates in Jinja: compiled once, rendered for each conversation. The output equals that of Python's
 * jinja2 in the sandbox that transformers uses (trim_blocks, lstrip_blocks, loopcontrols, its tojson). All
 * work is bounded. Each byte of the output has a source, so that texts of users never become control tokens.
 *
 * Not supported: include, import, extends, recursive loops, integers beyond 64 bits, identifiers outside
 * ASCII.
 */
#ifndef TEXT_JINJA_JINJA_H
#define TEXT_JINJA_JINJA_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/text/text.h"

/* Where a byte comes from. */
enum jinja_source {
	JINJA_DATA,	/* values of the conversation, numbers, punctuation of JSON */
	JINJA_ANSWER,	/* values of an assistant's message */
	JINJA_TEMPLATE, /* texts of the template, and values that the caller trusts */
};

/* A part of the output; it begins where the part before ends. */
struct jinja_span {
	size_t end;
	enum jinja_source source;
};

struct jinja_output {
	struct text text;
	struct jinja_span *spans;
	size_t count, room;
	bool failed; /* memory ran out */
};
void jinja_output_release(struct jinja_output *o);

struct jinja_limits {
	uint64_t steps;	       /* evaluated nodes, plus one for every 64 bytes that an operation reads */
	size_t memory, output; /* bytes of all values; bytes written, captured text included */
	int depth;	       /* nested evaluations */
};
/* 20 million steps, 512 MiB, 128 MiB, 1000. */
extern const struct jinja_limits jinja_limits_default;
enum {
	JINJA_SOURCE_MAX = 1 << 20,
	JINJA_NODES_MAX = 200000,
	JINJA_NESTING_MAX = 200,
	JINJA_NAMES_MAX = 1024 /* variables */
};

/* A compiled template. It is immutable, so several threads may render it at once. */
struct jinja;
/*
 * Compiles the text of a template. BAD_INPUT: "NAME:LINE:COLUMN: .." says what is wrong; UNSUPPORTED: a
 * statement, filter or test that is not supported. Owner: caller, jinja_destroy.
 */
enum status jinja_compile(struct jinja **out, const char *name, const char *source, size_t size,
			  struct error *err);
void jinja_destroy(struct jinja **j); /* NULL-safe; sets NULL */

/* One rendering: set variables, then render once. */
struct jinja_run;
/* `limits` NULL: the default. `now`: seconds since 1970 for strftime_now, shown in local time. Owner: caller,
 * jinja_run_destroy. */
enum status jinja_run_create(struct jinja_run **out, const struct jinja *j, const struct jinja_limits *limits,
			     int64_t now, struct error *err);
void jinja_run_destroy(struct jinja_run **r);
/* Sets a variable of the template. `value` must stay unchanged until the run is destroyed. */
enum status jinja_run_set(struct jinja_run *r, const char *name, const json_t *value,
			  enum jinja_source source, struct error *err);
/* Sets a variable to a list of objects. Each has a source of its own; members named `trusted` whose text is
 * one of `words` (NULL-terminated) have the source TEMPLATE. */
enum status jinja_run_set_list(struct jinja_run *r, const char *name, const json_t *list,
			       const enum jinja_source *sources, const char *trusted,
			       const char *const *words, struct error *err);
/* Appends the rendered text to *out. BAD_INPUT: an error of the template, with line and column, or a text
 * that the template raised; NO_RESOURCE: a limit or memory. Owner of *out: caller, jinja_output_release. */
enum status jinja_run_render(struct jinja_run *r, struct jinja_output *out, struct error *err);
#endif
