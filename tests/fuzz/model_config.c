/* SPDX-License-Identifier: Apache-2.0 */
/* Any JSON is a configuration that holds, or a refusal: config.json and adapter_config.json. */
#include "fuzz.h"

#include <math.h>

#include "model/shape/tensor_names.h"
#include "model/files/peft/names.h"
#include "model/files/peft/pattern.h"

static void check_shape(const json_t *j)
{
	struct error err = {0};
	struct shape s, back;
	json_t *again;

	if (shape_of_config(&s, j, "input", &err)) {
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT || err.status == STATUS_UNSUPPORTED);
		FUZZ_CHECK(!strncmp(err.text, "input: ", 7));
		return;
	}
	FUZZ_CHECK(shape_parameters(&s) > 0 && s.heads % s.kv_heads == 0);
	again = shape_config(&s, DTYPE_BF16);
	FUZZ_CHECK(again && !shape_of_config(&back, again, "again", &err));
	FUZZ_CHECK(back.hidden == s.hidden && back.rope_theta == s.rope_theta && back.tied == s.tied);
	json_decref(again);
}

static void check_patterns(const json_t *j, const char *key)
{
	struct error err = {0};
	const struct json_keys r = {j, "input", &err};
	struct peft_patterns *p = NULL;
	double value;

	if (peft_patterns_read(&p, &r, key)) {
		FUZZ_CHECK(!p && !strncmp(err.text, "input: ", 7));
		return;
	}
	value = peft_patterns_find(p, "model.layers.0.self_attn.q_proj", 7);
	FUZZ_CHECK(value > 0 && value <= 1e9);
	peft_patterns_free(&p);
}

static void check_peft(const json_t *j)
{
	struct error err = {0};
	struct peft_config c;

	if (peft_config_parse(&c, j, "input", &err)) {
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT || err.status == STATUS_UNSUPPORTED);
		FUZZ_CHECK(!strncmp(err.text, "input: ", 7));
		return;
	}
	check_patterns(j, "rank_pattern");
	check_patterns(j, "alpha_pattern");
	FUZZ_CHECK(c.rank >= 1 && isfinite(peft_scale(&c)) && peft_scale(&c) > 0 && c.dropout < 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = size <= 65536 ? json_loadb((const char *)data, size,
					       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL)
				  : NULL;

	if (!j)
		return 0;
	check_shape(j);
	check_peft(j);
	json_decref(j);
	return 0;
}
