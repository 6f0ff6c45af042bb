/* SPDX-License-Identifier: Apache-2.0 */
/* 200 prompts of a tiny model. Half of them share their beginning with an earlier one. */
#ifndef TESTS_UNIT_ENGINE_PROMPTS_H
#define TESTS_UNIT_ENGINE_PROMPTS_H
#include <stdint.h>
#include <string.h>

enum { PROMPTS = 200, PROMPT_MOST = 96, PROMPT_ANSWER = 16 };

struct prompt {
	int32_t count, id[PROMPT_MOST];
};

/* splitmix64 */
static inline uint64_t prompt_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline void prompts_make(struct prompt prompt[PROMPTS], int32_t vocab)
{
	uint64_t random = 23;

	for (int32_t i = 0; i < PROMPTS; i++) {
		struct prompt *p = &prompt[i];
		int32_t shared = 0;

		p->count = 1 + (int32_t)(prompt_random(&random) % PROMPT_MOST);
		if (i % 2) {
			const struct prompt *from = &prompt[prompt_random(&random) % (uint64_t)i];

			shared = from->count < p->count ? from->count : p->count;
			memcpy(p->id, from->id, (size_t)shared * sizeof(*p->id));
		}
		for (int32_t k = shared; k < p->count; k++)
			p->id[k] = (int32_t)(prompt_random(&random) % (uint64_t)vocab);
	}
}
#endif
