/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a tree or a refusal that names file and line; a tree can be walked and keeps its limits. */
#include "fuzz.h"

#include "core/input/tree.h"

static size_t walk(const struct tree *t, int depth)
{
	size_t nodes = 1, i;

	FUZZ_CHECK(depth <= 64 && t->line >= 1 && t->file);
	FUZZ_CHECK((t->kind == TREE_SCALAR) == (t->text != NULL));
	FUZZ_CHECK(t->kind == TREE_MAP || !t->keys);
	for (i = 0; i < t->count; i++) {
		if (t->keys) {
			const struct tree *found = tree_get(t, t->keys[i]);

			FUZZ_CHECK(found == t->items[i]);
		}
		nodes += walk(t->items[i], depth + 1);
	}
	return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct tree *tree = NULL;
	enum status st;

	if (size > 65536)
		return 0;
	st = tree_parse(&tree, "input", (const char *)data, size, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK((st == STATUS_OK) == (tree != NULL) && st == err.status);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input:", 6));
	if (tree)
		FUZZ_CHECK(walk(tree, 1) <= 1000000);
	tree_free(tree);
	return 0;
}
