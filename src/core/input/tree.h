/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One input grammar: YAML and JSON files, and command lines, become a tree whose nodes know their line, so
 * that an error names file and line. Anchors, aliases, tags and duplicate keys are refused.
 * A byte order mark is passed over; True, TRUE and their kin are what YAML's core says they are.
 * An empty file is a null, and a null (`key:`, `~`, `null`) is as good as an empty map. Limits: 16 MiB, depth
 * 64, 1,000,000 nodes.
 */
#ifndef CORE_INPUT_TREE_H
#define CORE_INPUT_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

enum tree_kind { TREE_NULL, TREE_SCALAR, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	int line;	     /* 1-based; a map's value has its key's line */
	bool quoted;	     /* scalar: text was quoted, so "true" is text */
	char *text;	     /* scalar: UTF-8, NUL-terminated */
	size_t count;	     /* list, map */
	struct tree **items; /* list items, or map values */
	char **keys;	     /* map keys, in file order */
	const char *file;    /* name for messages; owned by the root, shared below */
};

/* Reads a YAML or JSON file (JSON is a subset as far as we take it). Owner: caller, tree_free. */
enum status tree_read(struct tree **out, const char *path, struct error *err);
/* The same from memory; `name` stands for the file in messages. */
enum status tree_parse(struct tree **out, const char *name, const char *text, size_t size, struct error *err);
void tree_free(struct tree *t);
/* The map's value, or NULL. */
const struct tree *tree_get(const struct tree *map, const char *key);
/* Scalar's text or `fallback`. */
const char *tree_text(const struct tree *map, const char *key, const char *fallback);
/* Checked reads of a map's key: absent leaves *out alone and returns OK; a wrong form is BAD_INPUT with
 * "file:line: key: ..." . Numbers are those of core/text/units.h; NaN, infinities and quoted ones are
 * refused. */
enum status tree_f64_unit(const struct tree *map, const char *key, const char *unit, double *out,
			  struct error *err);
enum status tree_bool(const struct tree *map, const char *key, bool *out, struct error *err);
/* Every key of the map must be in `names` (NULL ends); else BAD_INPUT with file, line and the nearest name.
 */
enum status tree_check_keys(const struct tree *map, const char *const *names, struct error *err);
#endif
