/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of the cache: refused, or the one body that was written under this key. And any bytes as its body,
 * under the right sum: no choices, or some that can be kept and read again. */
#include "fuzz.h"

#include "core/file/file.h"
#include "core/text/text.h"
#include "core/file/user_cache.h"
#include "train/tuning/tuning_choices.h"
#include "train/tuning/tuning_cache.h"

#define KEY "{\"card\":\"x\"}"

static void check_choices(const char *body)
{
	struct gpu_attention_choice *ways = NULL;
	struct gpu_choice *products = NULL;
	size_t count = 0, way_count = 0;
	struct error err = {0};
	json_t *chosen = tuning_cache_parse(body, &err);

	if (!chosen) {
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT);
		return;
	}
	FUZZ_CHECK(!tuning_choices_parse(&products, &count, &ways, &way_count, chosen, &err));
	FUZZ_CHECK(count == json_array_size(json_object_get(chosen, "products")));
	FUZZ_CHECK(way_count == json_array_size(json_object_get(chosen, "attention")));
	for (size_t i = 0; i < count; i++)
		FUZZ_CHECK(products[i].seconds >= 0 && products[i].seconds <= 100 &&
			   (products[i].alike || products[i].seconds > 0));
	free(products);
	free(ways);
	json_decref(chosen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text rest = {0}, file = {0};
	struct error err = {0};
	const char *body;
	char *copy = malloc(size + 1), sum[65];

	FUZZ_CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	if (user_cache_parse(&body, copy, size, KEY, &err))
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT);
	else
		FUZZ_CHECK(body > copy && body < copy + size && copy[size - 1] == '\n');
	text_add(&rest, KEY "\n");
	text_add_bytes(&rest, copy, size);
	text_add(&rest, "\n");
	file_sha256(sum, text_str(&rest), rest.size);
	text_addf(&file, "assay cache 1\n%s\n", sum);
	text_add_bytes(&file, text_str(&rest), rest.size);
	if (!user_cache_parse(&body, text_str(&file), file.size, KEY, &err)) {
		FUZZ_CHECK(!memchr(copy, '\n', size) && !memchr(copy, '\0', size));
		FUZZ_CHECK(strlen(body) == size + 1 && !memcmp(body, copy, size));
		check_choices(copy);
	}
	text_release(&rest);
	text_release(&file);
	free(copy);
	return 0;
}
