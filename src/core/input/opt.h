/* SPDX-License-Identifier: Apache-2.0 */
/* Options of probes, commands and configuration files. One row of a table drives parsing, limits,
 * canonical text, help, shell completion and the manual page. The option's type comes from the C type of
 * its field. The default is text, and the same parser reads it. */
#ifndef CORE_INPUT_OPT_H
#define CORE_INPUT_OPT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

enum opt_kind { OPT_KIND_BOOL, OPT_KIND_U32, OPT_KIND_U64, OPT_KIND_F64, OPT_KIND_TEXT };

struct opt {
	const char *name; /* `--size` on a command line, `size:` in YAML, `size=` in a key */
	const char *help;
	const char *preset; /* default as text; NULL: text stays NULL, bool false, number 0 */
	const char *unit;   /* "B", "s", "ms", "W": the unit shown; suffixes of its dimension are accepted */
	double min, max;    /* accepted range, inclusive; both 0: unlimited */
	/* The accepted words; NULL ends the list. A uint32_t field holds the index of the word, a `const
	 * char *` field the word itself. */
	const char *const *choices;
	const char *also;  /* names in other tools, separated by blanks; an error about one of them suggests
			      `name` */
	const char *shown; /* placeholder of the value in help: "FILE", "N"; NULL: derived from the type */
	size_t offset;
	enum opt_kind kind;
	char letter;	 /* short form on the command line; 0: none */
	bool positional; /* commands only: set by a word without an option name, in row order */
	bool many;	 /* positional text, last row only: takes all remaining words; the field is a struct
			    opt_words */
	bool no_key;	 /* not part of the identity of a case or run (for example a path) */
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

/* The rows of a table and the size of the struct that they describe. */
struct opt_table {
	const struct opt *rows;
	size_t count, size; /* number of rows; bytes of the struct */
};

/* Sets all of *values to zero, then sets every default. STATUS_BUG if a row rejects its own default. */
enum status opt_defaults(const struct opt_table *t, void *values, struct error *err);
/* Sets one option from text. `place` ("file:12", "command line") is the beginning of an error message. An
 * unknown name is BAD_INPUT with the nearest known name. Text values are stored as pointers, so `text`
 * must outlive *values. */
enum status opt_set(const struct opt_table *t, void *values, const char *name, const char *text,
		    const char *place, struct error *err);
/* Reports an unknown option name: BAD_INPUT with a suggestion. The suggestion is the row whose `also`
 * lists the name, or else the nearest name. `dashes` precedes both names: "--" on a command line. */
enum status opt_refuse(const struct opt_table *t, const char *name, const char *dashes, const char *place,
		       struct error *err);
/* Finds a row by name. With `also`, names of other tools match too. NULL if there is none. */
const struct opt *opt_row(const struct opt_table *t, const char *name, bool also);
/* Reads a command line after the subcommand: --name value, --name=value, --no-bool, -x and positional
 * words. "--" ends the options; the words after it go to `rest`, or, if `rest` is NULL, they are
 * positional words too. An option that is given twice is an error. Reorders argv: positional words come
 * first, in their order. */
enum status opt_from_argv(const struct opt_table *t, void *values, int argc, char **argv,
			  struct opt_words *rest, struct error *err);
/* Writes the value as canonical text, which parses back to the same value: "true", the word of a choice,
 * or the shortest decimal. A row of unit "B" uses the largest binary unit that is exact ("64MiB"). */
void opt_value_text(const struct opt *row, const void *values, char *out, size_t size);
/* Appends " name=value" to `key` for every row without no_key, sorted by name. Defaults are written too; a
 * NULL text is not. BAD_INPUT if a value contains blanks or is longer than 254 bytes. */
enum status opt_canonical(const struct opt_table *t, const void *values, char *key, size_t size,
			  struct error *err);
/* The known word with the smallest edit distance to `word`; NULL if none is near. */
const char *opt_nearest(const char *word, const char *const *known, size_t count);
#endif
