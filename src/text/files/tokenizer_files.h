/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizer's files of a model folder: copied, made from a GGUF's vocabulary, or made for a small
 * vocabulary of bytes. text/tokenizer/tokenizer.h interprets their contents.
 */
#ifndef TEXT_FILES_TOKENIZER_FILES_H
#define TEXT_FILES_TOKENIZER_FILES_H
#include <jansson.h>
#include <stdbool.h>
#include "core/error.h"

struct gguf_metadata;

/* Checks, before anything is written, that each file that tokenizer_files_copy would copy is JSON. */
enum status tokenizer_files_check(const char *from, struct error *err);
/* Copies the existing files of a folder, or of the folder of a tokenizer.json. */
enum status tokenizer_files_copy(const char *dir, const char *from, struct error *err);
/* Writes tokenizer.json, tokenizer_config.json and generation_config.json: byte-level BPE with the
 * pre-tokenizer that the GGUF names (qwen2, llama-bpe, smollm). UNSUPPORTED: another one. */
enum status tokenizer_files_of_gguf(const char *dir, const struct gguf_metadata *m, struct error *err);
/* The first two of these files in memory. Owner: caller, json_decref. */
enum status tokenizer_files_json_of_gguf(json_t **tokenizer, json_t **config, const struct gguf_metadata *m,
					 struct error *err);
/* Writes the same three files for a vocabulary of the 256 bytes and the chat markers of ChatML and Llama 3,
 * with the ChatML template. */
enum status tokenizer_files_of_bytes(const char *dir, struct error *err);

/* The facts from which the three files are made. */
struct tokenizer_facts {
	json_t *vocab, *merges, *added; /* in the form of tokenizer.json; owned by the caller */
	const char *pre;		/* "qwen2", "llama-bpe" or "smollm" */
	const char *bos, *eos, *pad;	/* texts; NULL: none */
	int64_t bos_id, eos_id, pad_id; /* -1: none */
	bool add_bos;			/* each text begins with bos */
	const char *chat_template;	/* NULL: none */
};

/* Writes the three files. UNSUPPORTED: another pre-tokenizer; the message begins with `from`. */
enum status tokenizer_files_write(const char *dir, struct tokenizer_facts *f, const char *from,
				  struct error *err);
/* tokenizer.json and tokenizer_config.json in memory. Owner: caller, json_decref. */
enum status tokenizer_files_json(json_t **tokenizer, json_t **config, struct tokenizer_facts *f,
				 const char *from, struct error *err);
/* An entry for an added token that is searched in the unchanged text. NULL: not UTF-8. */
json_t *tokenizer_files_added(int64_t id, const char *text, bool special);
#endif
