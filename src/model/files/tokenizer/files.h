/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizer's files of a model folder: copied, made from a GGUF's vocabulary, or a small one of bytes.
 * What they hold is another file's subject (model/tokenizer/tokenizer.h).
 */
#ifndef MODEL_FILES_TOKENIZER_FILES_H
#define MODEL_FILES_TOKENIZER_FILES_H
#include <jansson.h>
#include <stdbool.h>
#include "core/error.h"

struct gguf;

/* Whether each that tokenizer_files_copy would take is JSON, before anything else is written. */
enum status tokenizer_files_check(const char *from, struct error *err);
/* From a folder, or from a tokenizer.json alone: each that is there. */
enum status tokenizer_files_copy(const char *dir, const char *from, struct error *err);
/* tokenizer.json, tokenizer_config.json, generation_config.json: byte-level BPE with the pre-tokenizer that
 * the GGUF names (qwen2, llama-bpe, smollm); another is UNSUPPORTED. */
enum status tokenizer_files_of_gguf(const char *dir, const struct gguf *g, struct error *err);
/* The first two of these in memory. Owner: caller, json_decref. */
enum status tokenizer_files_json_of_gguf(json_t **tokenizer, json_t **config, const struct gguf *g,
					 struct error *err);
/* The same three for a vocabulary of the 256 bytes and the markers of chats in ChatML and of Llama 3; its
 * template is ChatML. */
enum status tokenizer_files_of_bytes(const char *dir, struct error *err);

/* What the three files are made of. */
struct tokenizer_facts {
	json_t *vocab, *merges, *added; /* as tokenizer.json has them; the caller's */
	const char *pre;		/* "qwen2", "llama-bpe" or "smollm" */
	const char *bos, *eos, *pad;	/* texts; NULL: none */
	int64_t bos_id, eos_id, pad_id; /* -1: none */
	bool add_bos;			/* each text begins with bos */
	const char *chat_template;	/* NULL: none */
};

/* Writes them. UNSUPPORTED: another pre-tokenizer; `from` leads the message. */
enum status tokenizer_files_write(const char *dir, struct tokenizer_facts *f, const char *from,
				  struct error *err);
/* tokenizer.json and tokenizer_config.json in memory, likewise. Owner: caller, json_decref. */
enum status tokenizer_files_json(json_t **tokenizer, json_t **config, struct tokenizer_facts *f,
				 const char *from, struct error *err);
/* An added token, and nothing of its text is changed before it is looked for. NULL: not UTF-8. */
json_t *tokenizer_files_added(int64_t id, const char *text, bool special);
#endif
