/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a refusal that names the file, or values and tensors within it; a shape made of them is one
 * that is done. */
#include "fuzz.h"

#include "model/files/gguf/gguf.h"
#include "model/shape/tensor_names.h"

static void walk_values(const struct gguf *g, const uint8_t *begin, const uint8_t *end)
{
	for (size_t i = 0; i < g->metadata.value_count; i++) {
		const struct gguf_value *v = &g->metadata.values[i];
		enum gguf_type type = v->type == GGUF_ARRAY ? v->item : v->type;

		FUZZ_CHECK(gguf_find(&g->metadata, v->key) == v && type != GGUF_ARRAY &&
			   type < GGUF_TYPE_COUNT);
		for (uint64_t k = 0; type == GGUF_TEXT && k < v->count; k++) {
			const uint8_t *text = (const uint8_t *)v->texts[k].data;

			FUZZ_CHECK(text >= begin && v->texts[k].size <= (size_t)(end - text));
		}
		if (type != GGUF_TEXT) {
			FUZZ_CHECK(v->data >= begin && v->data <= end && v->count <= (size_t)(end - v->data));
			if (v->count)
				(void)gguf_item(v, v->count - 1);
		}
	}
}

static void walk_tensors(const struct gguf *g, const uint8_t *begin, const uint8_t *end)
{
	for (size_t i = 0; i < g->tensor_count; i++) {
		const struct tensor *t = &g->tensors[i];

		FUZZ_CHECK(gguf_tensor(g, t->name) == t && t->data >= begin);
		FUZZ_CHECK(t->data <= end && t->size <= (size_t)(end - t->data));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = (uint8_t *)fuzz_text(data, size);
	struct error err = {0};
	struct shape shape;
	struct gguf g;
	enum status st = gguf_parse(&g, "input", copy, size, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input: ", 7));
	if (!st) {
		walk_values(&g, copy, copy + size);
		walk_tensors(&g, copy, copy + size);
		st = shape_of_gguf(&shape, &g, &err);
		FUZZ_CHECK(st == STATUS_OK ? names_count(&shape) > 0 && shape_parameters(&shape) > 0
					   : st == STATUS_BAD_INPUT || st == STATUS_UNSUPPORTED);
	}
	gguf_release(&g);
	free(copy);
	return 0;
}
