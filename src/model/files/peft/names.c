/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/peft/names.h"

#define PREFIX "base_model.model."
static const char *const parts[] = {
	[PEFT_A] = ".lora_A.weight",
	[PEFT_B] = ".lora_B.weight",
	[PEFT_WHOLE] = ".weight",
	[PEFT_MAGNITUDE] = ".lora_magnitude_vector",
};

struct target {
	const char *leaf, *block;
};

static const struct target targets[] = {
#define X(name, leaf, block) [PEFT_##name] = {leaf, block},
	PEFT_TARGETS(X)
#undef X
};

static const struct {
	const char *name;
	unsigned bit;
} whole[] = {{"model.embed_tokens.weight", PEFT_SAVE_EMBED}, {"lm_head.weight", PEFT_SAVE_HEAD}};

unsigned peft_target_by_name(const char *leaf)
{
	for (int i = 0; i < PEFT_TARGET_COUNT; i++) {
		if (!strcmp(targets[i].leaf, leaf))
			return 1u << i;
	}
	return 0;
}

const char *peft_target_name(enum peft_target target)
{
	return targets[target].leaf;
}

const char *peft_target_block(enum peft_target target)
{
	return targets[target].block;
}

void peft_name(char out[PEFT_NAME_SIZE], const struct peft_place *at)
{
	size_t stem = strlen(at->base.hf) - strlen(".weight");

	snprintf(out, PEFT_NAME_SIZE, PREFIX "%.*s%s", (int)stem, at->base.hf, parts[at->part]);
}

/* A tied head has no tensor of its own, but an adapter may train it separately from the embedding. */
static bool whole_place(struct peft_place *at, const struct shape *s, const char *name)
{
	struct shape untied = *s;

	untied.tied = false;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		if (!strcmp(whole[i].name, name) && names_find(&at->base, &untied, name)) {
			at->part = PEFT_WHOLE;
			at->save_bit = whole[i].bit;
			return true;
		}
	}
	return false;
}

unsigned peft_target_of(const char *hf)
{
	char tail[32];

	for (int i = 0; i < PEFT_TARGET_COUNT; i++) {
		size_t size = strlen(hf);
		int n = snprintf(tail, sizeof(tail), ".%s.%s.weight", targets[i].block, targets[i].leaf);

		if (size > (size_t)n && !strcmp(hf + size - (size_t)n, tail))
			return 1u << i;
	}
	return 0;
}

static bool has_tail(const char *name, const char *tail, size_t *stem)
{
	size_t size = strlen(name), tail_size = strlen(tail);

	*stem = size - tail_size;
	return size > tail_size && !strcmp(name + *stem, tail);
}

bool peft_place_of(struct peft_place *at, const struct shape *s, const char *name)
{
	char base[NAME_SIZE];
	size_t stem;

	*at = (struct peft_place){.part = PEFT_A};
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1))
		return false;
	name += sizeof(PREFIX) - 1;
	if (has_tail(name, parts[PEFT_B], &stem))
		at->part = PEFT_B;
	else if (has_tail(name, parts[PEFT_MAGNITUDE], &stem))
		at->part = PEFT_MAGNITUDE;
	else if (!has_tail(name, parts[PEFT_A], &stem))
		return whole_place(at, s, name);
	if (stem + sizeof(".weight") > sizeof(base))
		return false;
	snprintf(base, sizeof(base), "%.*s.weight", (int)stem, name);
	at->target_bit = peft_target_of(base);
	return at->target_bit && names_find(&at->base, s, base);
}

static int bits(unsigned set)
{
	return __builtin_popcount(set);
}

size_t peft_names_count(const struct shape *s, const struct peft_config *c)
{
	return (size_t)s->layers * 2 * (size_t)bits(c->targets) + (size_t)bits(c->save);
}

void peft_names_at(struct peft_place *at, const struct shape *s, const struct peft_config *c, size_t index)
{
	size_t in_layer = 2 * (size_t)bits(c->targets), adapted = (size_t)s->layers * in_layer, nth;
	char base[NAME_SIZE];
	int i = 0;

	*at = (struct peft_place){0};
	if (index >= adapted) { /* one or two of `whole`, in its order */
		nth = index - adapted;
		whole_place(at, s, whole[c->save & PEFT_SAVE_EMBED ? nth : 1].name);
		return;
	}
	for (nth = index % in_layer / 2; !(c->targets & 1u << i) || nth--; i++)
		;
	snprintf(base, sizeof(base), "model.layers.%zu.%s.%s.weight", index / in_layer, targets[i].block,
		 targets[i].leaf);
	names_find(&at->base, s, base);
	at->part = index % 2 ? PEFT_B : PEFT_A;
	at->target_bit = 1u << i;
}
