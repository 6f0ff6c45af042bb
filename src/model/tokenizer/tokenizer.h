/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to token ids and back, as the Hugging Face files or the GGUF metadata of a model say: byte-level BPE.
 * A tokenizer is immutable once opened, and threads share it; a tokenizer_worker is one thread's.
 */
#ifndef MODEL_TOKENIZER_TOKENIZER_H
#define MODEL_TOKENIZER_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "core/text/text.h"
#include "model/tokenizer/bpe.h"

struct tokenizer;
/*
 * `path`: a tokenizer.json, a folder with one, or a GGUF file. An unsupported kind of model, normalizer or
 * pre-tokenizer is UNSUPPORTED and named; errors begin with the file. Owner: caller, tokenizer_close.
 */
enum status tokenizer_open(struct tokenizer **out, const char *path, struct error *err);
void tokenizer_close(struct tokenizer **t); /* NULL is fine; sets NULL */
/* One more than the largest id. */
int32_t tokenizer_size(const struct tokenizer *t);
/* BAD_INPUT where a model of `rows` embedding rows lacks some for the tokenizer's ids. */
enum status tokenizer_check_rows(const struct tokenizer *t, int64_t rows, struct error *err);
/* The id of an added token by its text, "<|im_end|>"; -1 where there is none. */
int32_t tokenizer_added(const struct tokenizer *t, const char *text);
/* What the model's files name as end of a turn or text: id or -1; and their chat template, "" for none. */
int32_t tokenizer_eos(const struct tokenizer *t);
const char *tokenizer_chat_template(const struct tokenizer *t);
/* Whether the reference's encoder puts the token of begin of text before a bare text: its id, else -1. */
int32_t tokenizer_bos(const struct tokenizer *t);

/* Which added tokens are recognised in a text; the others are characters like any. Text that people wrote is
 * ADDED_NONE, or it could end a turn and forge the next one. */
enum tokenizer_added {
	ADDED_NONE,
	ADDED_MARKUP, /* those that readers see as well: <tool_call>, <think> */
	ADDED_ALL,
};

/* A stretch of a text, from the end of the one before it. */
struct text_part {
	size_t end; /* bytes from the text's begin */
	enum tokenizer_added added;
};

struct tokenizer_worker;
enum status tokenizer_worker_create(struct tokenizer_worker **out, const struct tokenizer *t,
				    struct error *err);
void tokenizer_worker_destroy(struct tokenizer_worker **w);
/* Appends the ids of `text`, which has a NUL behind its `size` bytes. Not UTF-8: BAD_INPUT with the byte. */
enum status tokenizer_encode(struct tokenizer_worker *w, const char *text, size_t size,
			     enum tokenizer_added added, struct token_list *out, struct error *err);
/* The same where its parts allow different tokens: an added token is recognised only within one part; the
 * text between two of them is cut into words as a whole. */
enum status tokenizer_encode_parts(struct tokenizer_worker *w, const char *text,
				   const struct text_part *parts, size_t count, struct token_list *out,
				   struct error *err);

/* Appends the bytes of ids, not always whole characters; `control`: tokens of that kind too. An id without a
 * token gives nothing. */
void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool control,
		      struct text *out);

/* Text as it is made, a token at a time: what is appended is always whole characters, U+FFFD for bytes that
 * are none. Zeroed is empty. */
struct token_stream {
	char held[4]; /* the begin of a character */
	size_t held_size;
};
void token_stream_add(struct token_stream *s, const struct tokenizer *t, int32_t id, bool control,
		      struct text *out);
/* What is still held: U+FFFD where it is no character. */
void token_stream_end(struct token_stream *s, struct text *out);
#endif
