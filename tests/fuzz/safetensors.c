/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a refusal that names the file, or tensors that lie in the file side by side and can be read.
 */
#include "fuzz.h"

#include "model/tensor/dtype.h"
#include "model/files/safetensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy =
		(uint8_t *)fuzz_text(data, size); /* a block of its own: a read past its end is seen */
	struct error err = {0};
	struct safetensors s;
	const uint8_t *at = NULL;
	enum status st = safetensors_parse(&s, "input", copy, size, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input: ", 7));
	for (size_t i = 0; !st && i < s.count; i++) {
		const struct tensor *t = &s.tensors[i];
		float first[256];

		FUZZ_CHECK(t->data >= copy && t->size <= size && t->data + t->size <= copy + size);
		FUZZ_CHECK(!at || t->data == at);
		FUZZ_CHECK(t->rank >= 0 && t->rank <= TENSOR_RANK_MAX && t->name);
		at = t->data + t->size;
		if (t->size && dtype_unpacks(t->dtype))
			dtype_unpack(t->dtype, t->data, first, 1);
	}
	FUZZ_CHECK(st || !at || at == copy + size);
	safetensors_release(&s);
	free(copy);
	return 0;
}
