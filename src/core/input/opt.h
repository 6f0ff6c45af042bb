/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: one row drives parsing, limits, canonical text, help, completion and manual. The kind comes from
 * the field's own C type; the default is text and goes through the same parser as a user's. A probe's
 * options, a command's flags and a configuration file use the same rows.
 */
#ifndef CORE_INPUT_OPT_H
#define CORE_INPUT_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum opt_kind { OPT_KIND_BOOL, OPT_KIND_U32, OPT_KIND_U64, OPT_KIND_F64, OPT_KIND_TEXT };

struct opt {
	const char *name; /* "size": `--size` on a command line, `size:` in YAML, `size=` in a key */
	const char *help;
	const char *preset; /* default as text; NULL: text stays NULL, bool false, number 0 */
	const char *unit;   /* "B", "s", "ms", "W": suffixes accepted and shown */
	double min, max;    /* inclusive, accepted range; both 0: unlimited */
	/* A uint32_t with choices holds the index of the text chosen; NULL ends. A `const char *` with
	 * choices must be one of them. */
	const char *const *choices;
	const char *also;  /* what other tools call it, blanks between: who writes that is told `name` */
	const char *shown; /* help's word for the value: "FILE", "N"; NULL: from the kind */
	size_t offset;
	enum opt_kind kind;
	char letter;	 /* short form on the command line; 0: none */
	bool positional; /* commands: filled by a bare word, in row order */
	bool many;	 /* positional TEXT, last row: field is struct opt_words */
	bool no_key;	 /* not part of a case's identity (e.g. a path) */
};

struct opt_words {
	const char *const *word;
	size_t count;
};

/* clang-format off */
#define OPT_KIND(type, field)                      \
	_Generic(((type *)0)->field,               \
		bool: OPT_KIND_BOOL,               \
		uint32_t: OPT_KIND_U32,            \
		uint64_t: OPT_KIND_U64,            \
		double: OPT_KIND_F64,              \
		struct opt_words: OPT_KIND_TEXT,   \
		const char *: OPT_KIND_TEXT)
/* clang-format on */
#define OPT_ROW(type, field, ...)                                                                            \
	{                                                                                                    \
		.offset = offsetof(type, field), .kind = OPT_KIND(type, field), __VA_ARGS__                  \
	}

/* Rows and the struct they describe, as one value to pass on. */
struct opt_table {
	const struct opt *rows;
	size_t count, size; /* rows; bytes of the struct */
};

/* Zeroes *values and sets every preset. A preset that its own row refuses is STATUS_BUG. */
enum status opt_defaults(const struct opt_table *t, void *values, struct error *err);
/* Sets one option from text. `place` ("file:12", "command line") leads the message. Unknown name: BAD_INPUT
 * with the nearest one. Text values are kept as pointers: `text` must outlive *values. */
enum status opt_set(const struct opt_table *t, void *values, const char *name, const char *text,
		    const char *place, struct error *err);
/* BAD_INPUT for a name that no row has: the row that other tools call so, else the nearest one. `dashes`
 * stands before both names: "--" on a command line. */
enum status opt_refuse(const struct opt_table *t, const char *name, const char *dashes, const char *place,
		       struct error *err);
/* A row by its name; `also`: by a name of other tools too. NULL: none. */
const struct opt *opt_row(const struct opt_table *t, const char *name, bool also);
/* A command line after the subcommand: --name value, --name=value, --no-bool, -x, bare words. "--" ends
 * options: what follows is `rest`, or, where that is NULL, bare words like those before it. An option given
 * twice is refused. Reorders argv: bare words come first, in order. */
enum status opt_from_argv(const struct opt_table *t, void *values, int argc, char **argv,
			  struct opt_words *rest, struct error *err);
/* The value as canonical text that parses back to the same value: "true", the chosen word, the shortest
 * decimal; rows of unit "B" in the largest binary unit that is exact ("64MiB"). */
void opt_value_text(const struct opt *row, const void *values, char *out, size_t size);
/* Appends " name=value" for every row without no_key, sorted by name, to `key`. Presets are written too,
 * a NULL text is not. A value with blanks, or longer than 254 bytes, is BAD_INPUT. */
enum status opt_canonical(const struct opt_table *t, const void *values, char *key, size_t size,
			  struct error *err);
/* The known word nearest to `word` by edit distance, or NULL where none is near. */
const char *opt_nearest(const char *word, const char *const *known, size_t count);
#endif
