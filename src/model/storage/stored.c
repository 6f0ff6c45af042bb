/* SPDX-License-Identifier: Apache-2.0 */
#include "model/storage/stored.h"

static const struct {
	const char *word;
	struct storage storage;
} words[] = {
	{"nf4", {STORAGE_BNB4, BNB4_NF4, false}},
	{"nf4 with double quantization", {STORAGE_BNB4, BNB4_NF4, true}},
	{"fp4", {STORAGE_BNB4, BNB4_FP4, false}},
	{"fp4 with double quantization", {STORAGE_BNB4, BNB4_FP4, true}},
};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

const char *storage_word(const struct storage *s)
{
	for (int i = 0; s->form == STORAGE_BNB4 && i < WORDS; i++)
		if (words[i].storage.type == s->type && words[i].storage.nested == s->nested)
			return words[i].word;
	return "";
}

bool storage_of_word(struct storage *s, const char *word)
{
	for (int i = 0; i < WORDS; i++)
		if (!strcmp(words[i].word, word)) {
			*s = words[i].storage;
			return true;
		}
	return false;
}

uint64_t stored_bytes(const struct stored *s)
{
	return bnb4_bytes(s->bnb4.rows, s->bnb4.cols, s->bnb4.nested);
}

enum status stored_place(struct stored *s, struct arena *a, const char *name, struct error *err)
{
	struct mat bytes = {.rows = 1, .cols = (int64_t)stored_bytes(s), .dtype = DTYPE_U8};
	enum status st = arena_mat(a, MEM_WEIGHTS, &bytes, name, err);

	if (!st)
		bnb4_place(&s->bnb4, bytes.data);
	return st;
}
