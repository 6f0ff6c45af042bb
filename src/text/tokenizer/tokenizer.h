/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts text to token ids and back: byte-level BPE as described by a model's Hugging Face files or GGUF
 * metadata. An open tokenizer is immutable and shared by threads; a tokenizer_worker belongs to one thread.
 */
#ifndef TEXT_TOKENIZER_TOKENIZER_H
#define TEXT_TOKENIZER_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"
#include "text/tokenizer/bpe.h"

struct tokenizer;
/*
 * `path`: a tokenizer.json, a folder with one, or a GGUF file. UNSUPPORTED names an unsupported model,
 * normalizer or pre-tokenizer. Errors begin with the file's path. Owner: caller, tokenizer_close.
 */
enum status tokenizer_open(struct tokenizer **out, const char *path, struct error *err);
void tokenizer_close(struct tokenizer **t); /* NULL-safe; sets NULL */
/* One more than the largest id. */
int32_t tokenizer_size(const struct tokenizer *t);
/* BAD_INPUT: a model with `rows` embedding rows has too few for the tokenizer's ids. */
enum status tokenizer_check_rows(const struct tokenizer *t, int64_t rows, struct error *err);
/* The id of an added token, such as "<|im_end|>", by its text; -1: none. */
int32_t tokenizer_added(const struct tokenizer *t, const char *text);
/* The token id that the model's files name as the end of a turn or text, or -1. */
int32_t tokenizer_eos(const struct tokenizer *t);
/* The chat template in Jinja that the model's files contain; and the one for conversations with tools, if it
 * has its own. "" if there is none. */
const char *tokenizer_chat_template(const struct tokenizer *t);
const char *tokenizer_tool_template(const struct tokenizer *t);
/* The texts of special tokens that templates use by these names; "" if the model's files name none. */
enum tokenizer_special { SPECIAL_BOS, SPECIAL_EOS, SPECIAL_PAD, SPECIAL_UNK, TOKENIZER_SPECIALS };
extern const char *const tokenizer_special_names[TOKENIZER_SPECIALS]; /* "bos_token", .. */
const char *tokenizer_special(const struct tokenizer *t, enum tokenizer_special which);
/* The id of the begin-of-text token if the reference encoder puts it before a text without a template, else
 * -1. */
int32_t tokenizer_bos(const struct tokenizer *t);

/* The added tokens that are recognized in a text; others are treated as plain text. Texts of users need
 * ADDED_NONE, or they could end a turn and forge the next one. */
enum tokenizer_added {
	ADDED_NONE,
	ADDED_MARKUP, /* those that readers see: <tool_call>, <think> */
	ADDED_ALL,
};

/* A part of a text; it begins where the part before ends. */
struct text_part {
	size_t end; /* offset in bytes */
	enum tokenizer_added added;
};

struct tokenizer_worker;
enum status tokenizer_worker_create(struct tokenizer_worker **out, const struct tokenizer *t,
				    struct error *err);
void tokenizer_worker_destroy(struct tokenizer_worker **w);
/* Appends the ids of `text`, which must be NUL-terminated after `size` bytes. BAD_INPUT: not UTF-8, with the
 * byte's offset. */
enum status tokenizer_encode(struct tokenizer_worker *w, const char *text, size_t size,
			     enum tokenizer_added added, struct token_list *out, struct error *err);
/* The same for a text whose parts allow different tokens. An added token is recognized only within one part.
 * The text between two added tokens is split into words as a whole. */
enum status tokenizer_encode_parts(struct tokenizer_worker *w, const char *text,
				   const struct text_part *parts, size_t count, struct token_list *out,
				   struct error *err);

/* Appends the bytes of ids, which may end within a character. `control`: includes control tokens. Ids
 * without a token add nothing. */
void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool control,
		      struct text *out);

/* Decodes token by token. Only complete characters are appended, and U+FFFD for invalid bytes. Zeroed is
 * empty. */
struct token_stream {
	char held[4]; /* incomplete character */
	size_t held_size;
};
void token_stream_add(struct token_stream *s, const struct tokenizer *t, int32_t id, bool control,
		      struct text *out);
/* Appends U+FFFD if an incomplete character is left. */
void token_stream_end(struct token_stream *s, struct text *out);
#endif
