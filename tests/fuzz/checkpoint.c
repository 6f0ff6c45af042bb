/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a checkpoint's manifest: refused, or every range lies inside the vector and the shards make it up. */
#include "fuzz.h"

#include "train/checkpoint/manifest.h"

static json_int_t number(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	json_t *j = NULL;
	enum status st = manifest_parse(&j, "f", (const char *)data, size, &err);
	json_int_t length = number(j, "length"), end = 0;
	const json_t *one;
	size_t i;

	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK((st == STATUS_OK) == (j != NULL));
	json_array_foreach(json_object_get(j, "parameters"), i, one)
		FUZZ_CHECK(number(one, "offset") >= 0 &&
			   number(one, "offset") + number(one, "rows") * number(one, "cols") <= length);
	json_array_foreach(json_object_get(j, "shards"), i, one)
	{
		FUZZ_CHECK(number(one, "begin") == end);
		end += number(one, "count");
	}
	FUZZ_CHECK(!j || end == length);
	json_decref(j);
	return 0;
}
