/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a checkpoint's trainer_state.json: refused with a sentence, or a state that is written and read back to
 * the same; and what it says was chosen by time. */
#include "fuzz.h"

#include "train/tuning/tuning_choices.h"
#include "train/config/config.h"
#include "train/checkpoint/trainer_state.h"

static void check_chosen(const json_t *chosen)
{
	struct gpu_attention_choice *ways = NULL;
	struct gpu_choice *products = NULL;
	size_t count = 0, attentions = 0;
	struct error err = {0};

	if (!tuning_choices_parse(&products, &count, &ways, &attentions, chosen, &err)) {
		FUZZ_CHECK(count <= json_array_size(json_object_get(chosen, "products")));
		for (size_t i = 0; i < count; i++)
			FUZZ_CHECK(memchr(products[i].product, 0, sizeof(products[i].product)));
		for (size_t i = 0; i < attentions; i++)
			FUZZ_CHECK(memchr(ways[i].candidate, 0, sizeof(ways[i].candidate)) && ways[i].docs >= 0 &&
				   ways[i].length >= 0);
	}
	free(products);
	free(ways);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = json_loadb((const char *)data, size, 0, NULL), *again;
	const struct config_training training = {0};
	struct train_state s, back;
	struct error err = {0};

	if (!j)
		return 0;
	if (train_state_parse(&s, j, "input", &err)) {
		FUZZ_CHECK(!strncmp(err.text, "input:", 6));
	} else {
		check_chosen(s.chosen);
		again = train_state_json(&s, &training);
		FUZZ_CHECK(again);
		FUZZ_CHECK(!train_state_parse(&back, again, "again", &err));
		FUZZ_CHECK(back.step == s.step && back.tokens == s.tokens && back.rows == s.rows && back.worse == s.worse);
		train_state_release(&back);
		json_decref(again);
	}
	train_state_release(&s);
	json_decref(j);
	return 0;
}
