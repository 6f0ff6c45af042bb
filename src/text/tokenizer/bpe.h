/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair merges of one word: the adjacent pair with the lowest rank merges first, the leftmost of equals.
 */
#ifndef TEXT_TOKENIZER_BPE_H
#define TEXT_TOKENIZER_BPE_H
#include <stdbool.h>
#include "text/tokenizer/vocab.h"

/* A growing list of token ids. Zeroed is empty; token_list_release frees. */
struct token_list {
	int32_t *id;
	size_t count, room;
};
enum status token_list_add(struct token_list *list, const int32_t *ids, size_t count, struct error *err);
void token_list_release(struct token_list *list);

struct bpe; /* workspace of one thread, with a cache of recent words */
enum status bpe_create(struct bpe **b, struct error *err);
void bpe_destroy(struct bpe **b);
/* Appends the word's ids. `whole_first`: a word that is itself a token becomes that token without merges. */
enum status bpe_word(struct bpe *b, const struct vocab *v, bool whole_first, const char *word, size_t size,
		     struct token_list *out, struct error *err);
#endif
