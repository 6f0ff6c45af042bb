/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads YAML and JSON files into one kind of tree. Every node knows its line, so that an error can name file
 * and line. Anchors, aliases, tags and duplicate keys are errors. A byte order mark is skipped. True, TRUE
 * and similar words have the meaning that YAML's core schema gives them. An empty file is a null, and a null
 * (`key:`, `~`, `null`) counts as an empty map. Limits: 16 MiB, depth 64, 1,000,000 nodes.
 */
#ifndef CORE_INPUT_TREE_H
#define CORE_INPUT_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum tree_kind { TREE_NULL, TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	int line;	     /* 1-based; the line of a map's value is the line of its key */
	bool quoted;	     /* scalar: the text was quoted, so "true" is text */
	char *text;	     /* scalar: UTF-8, NUL-terminated */
	size_t count;	     /* list, map */
	struct tree **items; /* list items, or map values */
	char **keys;	     /* map keys, in file order */
	const char *file;    /* file name for messages; the root owns it, the other nodes share it */
};

/* Reads a YAML or JSON file. The caller frees the tree with tree_free. */
enum status tree_read(struct tree **out, const char *path, struct error *err);
/* Like tree_read, but from memory; `name` replaces the file name in messages. */
enum status tree_parse(struct tree **out, const char *name, const char *text, size_t size, struct error *err);
void tree_free(struct tree *t);
/* The value of a key in a map; NULL if the key is absent. */
const struct tree *tree_get(const struct tree *map, const char *key);
/* The text of a scalar, or `fallback` if the key is absent or not a scalar. */
const char *tree_text(const struct tree *map, const char *key, const char *fallback);
/* Checked reads of one key. If the key is absent, *out stays unchanged and the result is OK. A value of
 * another type is BAD_INPUT with "file:line: key: ...". Numbers have the form of core/text/units.h; NaN,
 * infinities and quoted numbers are errors. */
enum status tree_f64_unit(const struct tree *map, const char *key, const char *unit, double *out,
			  struct error *err);
enum status tree_bool(const struct tree *map, const char *key, bool *out, struct error *err);
/* Checks that every key of the map is in `names` (NULL ends the list). Otherwise BAD_INPUT with file, line
 * and the nearest name. */
enum status tree_check_keys(const struct tree *map, const char *const *names, struct error *err);
#endif
