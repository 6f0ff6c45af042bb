/* SPDX-License-Identifier: Apache-2.0 */
#include "load/content/words.h"

#include "core/math/random.h"

enum { FEW_WORDS = 64, LETTERS = 62, BUFFER = 4096, SALT_BITS = 64 };

/* One search for words. */
struct search {
	struct load_words *w;
	struct tokenizer_worker *worker;
	struct token_list ids;
	struct error *err;
};

static enum status count_tokens(struct search *s, const char *text, size_t size, size_t *count)
{
	enum status st;

	s->ids.count = 0;
	st = tokenizer_encode(s->worker, text, size, ADDED_ALL, &s->ids, s->err);
	*count = s->ids.count;
	return st;
}

/* A candidate is a token of a blank and lower-case letters. */
static bool is_candidate(const struct text *token)
{
	if (token->size < 2 || token->size > WORD_BYTES || token->data[0] != ' ')
		return false;
	for (size_t i = 1; i < token->size; i++)
		if (token->data[i] < 'a' || token->data[i] > 'z')
			return false;
	return true;
}

static void keep(struct load_words *w, const char *bytes, size_t size)
{
	struct load_word *word = &w->word[w->count++];

	*word = (struct load_word){.size = (uint8_t)size};
	memcpy(word->bytes, bytes, size);
}

/* Keeps a candidate that is one token with its blank and without. */
static enum status try_word(struct search *s, const struct text *token)
{
	size_t with = 0, without = 0;
	enum status st = count_tokens(s, token->data, token->size, &with);

	if (!st && with == 1)
		st = count_tokens(s, token->data + 1, token->size - 1, &without);
	if (!st && with == 1 && without == 1)
		keep(s->w, token->data, token->size);
	return st;
}

static enum status find_words(struct search *s, const struct tokenizer *t)
{
	struct text token = {0};
	enum status st = STATUS_OK;

	s->w->blanks = true;
	for (int32_t id = 0; !st && id < tokenizer_size(t) && s->w->count < WORDS_MOST; id++) {
		token.size = 0;
		tokenizer_decode(t, &id, 1, false, &token);
		if (token.failed)
			st = error_set(s->err, STATUS_NO_RESOURCE, "a word");
		else if (is_candidate(&token))
			st = try_word(s, &token);
	}
	text_release(&token);
	return st;
}

/* Whether two letters beside each other stay two tokens, in both orders. */
static enum status are_separate(struct search *s, char a, char b, bool *separate)
{
	const char text[] = {a, b, a, 0};
	size_t count;
	enum status st = count_tokens(s, text, 3, &count);

	*separate = count == 3;
	return st;
}

/* Letters that never merge with one another: the words of a vocabulary of bytes. */
static enum status find_letters(struct search *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	struct load_words *w = s->w;
	enum status st = STATUS_OK;

	w->count = 0;
	w->blanks = false;
	for (size_t i = 0; !st && i < LETTERS; i++) {
		bool separate = true;

		st = are_separate(s, letters[i], letters[i], &separate);
		for (size_t k = 0; !st && separate && k < w->count; k++)
			st = are_separate(s, letters[i], w->word[k].bytes[0], &separate);
		if (!st && separate)
			keep(w, &letters[i], 1);
	}
	return st;
}

static void round_count(struct load_words *w)
{
	for (w->bits = 0; (size_t)2 << w->bits <= w->count;)
		w->bits++;
	w->count = (size_t)1 << w->bits;
}

/* Counts the tokens of long texts, in which each word is expected many times. */
static enum status prove(struct search *s)
{
	size_t words = s->w->count * 4, count = 0;
	struct text text = {0};
	enum status st = STATUS_OK;

	s->w->proven = true;
	for (uint64_t id = 0; !st && id < 2; id++) {
		const struct load_words_place place = {.id = id, .use = WORDS_PROOF};

		text.size = 0;
		load_words_add(s->w, &text, &place, words, true);
		st = text.failed ? error_set(s->err, STATUS_NO_RESOURCE, "a text of %zu words", words)
				 : count_tokens(s, text.data, text.size, &count);
		s->w->proven = s->w->proven && !st && count == words;
	}
	text_release(&text);
	return st;
}

enum status load_words_find(struct load_words *w, const struct tokenizer *t, struct tokenizer_worker *worker,
			    struct error *err)
{
	struct load_words *letters = calloc(1, sizeof(*letters));
	struct search s = {.w = w, .worker = worker, .err = err};
	enum status st;

	*w = (struct load_words){0};
	st = letters ? find_words(&s, t) : error_set(err, STATUS_NO_RESOURCE, "a list of words");
	if (!st && w->count < FEW_WORDS) {
		s.w = letters;
		st = find_letters(&s);
		if (letters->count > w->count)
			*w = *letters;
		s.w = w;
	}
	if (!st && w->count < 2)
		st = error_set(err, STATUS_UNSUPPORTED,
			       "the tokenizer has no two words or letters that are one token each");
	if (!st) {
		round_count(w);
		st = prove(&s);
	}
	token_list_release(&s.ids);
	free(letters);
	return st;
}

void load_words_common(struct load_words *w)
{
	static const char *const common[] = {
		"the",	 "of",	 "and",	  "to",	   "in",   "that",  "it",   "was",   "for",  "on",
		"with",	 "as",	 "be",	  "at",	   "by",   "this",  "had",  "not",   "are",  "but",
		"from",	 "or",	 "have",  "an",	   "they", "which", "one",  "you",   "were", "her",
		"all",	 "she",	 "there", "would", "we",   "him",   "been", "has",   "when", "who",
		"will",	 "more", "no",	  "if",	   "out",  "so",    "said", "what",  "up",   "its",
		"about", "into", "than",  "them",  "can",  "only",  "time", "other", "some", "could",
		"these", "two",	 "may",	  "first",
	};
	char bytes[WORD_BYTES];

	*w = (struct load_words){.blanks = true};
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		snprintf(bytes, sizeof(bytes), " %s", common[i]);
		keep(w, bytes, strlen(bytes));
	}
	round_count(w);
}

/* Eight indices of at most 16 bits from one call of the generator. */
static void draw_indices(const struct load_words *w, const struct load_words_place *p, size_t call,
			 uint16_t out[8])
{
	const uint32_t counter[4] = {(uint32_t)call, (uint32_t)p->id, (uint32_t)(p->id >> 32), p->use};
	const uint32_t key[2] = {(uint32_t)p->key, (uint32_t)(p->key >> 32)};
	uint32_t words[4];

	philox4x32(words, counter, key);
	for (size_t i = 0; i < 4; i++) {
		out[2 * i] = (uint16_t)(words[i] & (w->count - 1));
		out[2 * i + 1] = (uint16_t)(words[i] >> 16 & (w->count - 1));
	}
}

void load_words_add(const struct load_words *w, struct text *out, const struct load_words_place *place,
		    size_t count, bool begin)
{
	size_t skip = begin && w->blanks ? 1 : 0, filled = 0;
	char buffer[BUFFER + WORD_BYTES];
	uint16_t index[8];

	for (size_t i = 0; i < count; i++) {
		const struct load_word *word;

		if (i % 8 == 0)
			draw_indices(w, place, i / 8, index);
		word = &w->word[index[i % 8]];
		memcpy(buffer + filled, word->bytes, WORD_BYTES); /* of fixed size, which is faster */
		filled += word->size;
		if (filled >= BUFFER || i + 1 == count) {
			text_add_bytes(out, buffer + skip, filled - skip);
			filled = skip = 0;
		}
	}
}

size_t load_words_for_salt(const struct load_words *w)
{
	return (SALT_BITS + w->bits - 1) / w->bits;
}
