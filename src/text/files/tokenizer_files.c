/* SPDX-License-Identifier: Apache-2.0 */
#include "text/files/tokenizer_files.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/json/file.h"

enum { COPY_MAX = 1 << 28 };

static enum status copy_one(void *dir, const char *name, const char *from, struct error *err)
{
	char to[PATH_MAX];
	size_t size = 0;
	char *data = NULL;
	enum status st = file_read(&data, &size, from, COPY_MAX, err);

	snprintf(to, sizeof(to), "%s/%s", (const char *)dir, name);
	if (!st)
		st = file_write(to, data, size, err);
	free(data);
	return st;
}

static enum status check_one(void *arg, const char *name, const char *from, struct error *err)
{
	const char *dot = strrchr(name, '.');
	json_t *read = NULL;
	enum status st = STATUS_OK;

	(void)arg;
	if (!strcmp(dot, ".json"))
		st = json_file_read(&read, from, COPY_MAX, err);
	json_decref(read);
	return st;
}

/* Calls a function for each of the tokenizer's files that exists. */
static enum status visit(const char *from,
			 enum status (*one)(void *arg, const char *name, const char *from, struct error *err),
			 void *arg, struct error *err)
{
	static const char *const names[] = {"tokenizer.json",	   "tokenizer_config.json",
					    "chat_template.jinja", "special_tokens_map.json",
					    "added_tokens.json",   "generation_config.json",
					    "vocab.json",	   "merges.txt"};
	char path[PATH_MAX];
	enum status st = STATUS_OK;
	struct stat about;

	if (stat(from, &about) || !S_ISDIR(about.st_mode))
		return one(arg, names[0], from, err);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !st; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", from, names[i]) >= (int)sizeof(path))
			return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", from);
		if (!access(path, F_OK))
			st = one(arg, names[i], path, err);
		else if (!i)
			st = error_set(err, STATUS_BAD_INPUT, "%s is missing", path);
	}
	return st;
}

enum status tokenizer_files_check(const char *from, struct error *err)
{
	return visit(from, check_one, NULL, err);
}

enum status tokenizer_files_copy(const char *dir, const char *from, struct error *err)
{
	return visit(from, copy_one, (void *)(uintptr_t)dir, err);
}

/* How text is split into words before BPE, by GGUF's name for it. */
struct pre {
	const char *name;
	const char *regex; /* NULL: single digits, then GPT-2's expression */
	bool nfc, ignore_merges;
};

#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const struct pre pres[] = {
	{"qwen2", WORDS "\\p{N}" REST, true, false},
	{"llama-bpe", WORDS "\\p{N}{1,3}" REST, false, true},
	{"smollm", NULL, false, false},
};

static json_t *pre_tokenizer(const struct pre *p)
{
	json_t *first = p->regex ? json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
					     p->regex, "behavior", "Isolated", "invert", 0)
				 : json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1);

	return json_pack("{s:s, s:[o, {s:s, s:b, s:b, s:b}]}", "type", "Sequence", "pretokenizers", first,
			 "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0, "use_regex",
			 !p->regex);
}

/* Puts the begin-of-text token in front of the encoded text. */
static json_t *post_processor(const struct tokenizer_facts *f)
{
	if (!f->add_bos || !f->bos)
		return json_null();
	return json_pack("{s:s, s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}], s:[{s:{s:s, s:i}}, {s:{s:s, s:i}}, "
			 "{s:{s:s, s:i}}, {s:{s:s, s:i}}], s:{s:{s:s, s:[I], s:[s]}}}",
			 "type", "TemplateProcessing", "single", "SpecialToken", "id", f->bos, "type_id", 0,
			 "Sequence", "id", "A", "type_id", 0, "pair", "SpecialToken", "id", f->bos, "type_id",
			 0, "Sequence", "id", "A", "type_id", 0, "SpecialToken", "id", f->bos, "type_id", 1,
			 "Sequence", "id", "B", "type_id", 1, "special_tokens", f->bos, "id", f->bos, "ids",
			 (json_int_t)f->bos_id, "tokens", f->bos);
}

static json_t *tokenizer_json(struct tokenizer_facts *f, const struct pre *p)
{
	json_t *normalizer = p->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
	json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:O, s:O}", "type", "BPE",
				  "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
				  "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", p->ignore_merges,
				  "vocab", f->vocab, "merges", f->merges);

	return json_pack("{s:s, s:n, s:n, s:O, s:o, s:o, s:o, s:{s:s, s:b, s:b, s:b}, s:o}", "version", "1.0",
			 "truncation", "padding", "added_tokens", f->added, "normalizer", normalizer,
			 "pre_tokenizer", pre_tokenizer(p), "post_processor", post_processor(f), "decoder",
			 "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0, "use_regex", 0,
			 "model", model);
}

static void set_text(json_t *j, const char *key, const char *text)
{
	if (text)
		json_object_set_new(j, key, json_string(text));
}

static void set_id(json_t *j, const char *key, int64_t id)
{
	if (id >= 0)
		json_object_set_new(j, key, json_integer(id));
}

static json_t *config_json(const struct tokenizer_facts *f)
{
	json_t *j = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
			      "clean_up_tokenization_spaces", 0);

	set_text(j, "bos_token", f->bos);
	set_text(j, "eos_token", f->eos);
	set_text(j, "pad_token", f->pad);
	set_text(j, "chat_template", f->chat_template);
	return j;
}

static json_t *generation_json(const struct tokenizer_facts *f)
{
	json_t *j = json_object();

	set_id(j, "bos_token_id", f->bos_id);
	set_id(j, "eos_token_id", f->eos_id);
	set_id(j, "pad_token_id", f->pad_id);
	return j;
}

enum status tokenizer_files_json(json_t **tokenizer, json_t **config, struct tokenizer_facts *f,
				 const char *from, struct error *err)
{
	for (size_t i = 0; i < sizeof(pres) / sizeof(pres[0]); i++) {
		if (strcmp(pres[i].name, f->pre) != 0)
			continue;
		*tokenizer = tokenizer_json(f, &pres[i]);
		*config = config_json(f);
		return STATUS_OK;
	}
	return error_set(err, STATUS_UNSUPPORTED,
			 "%s: pre-tokenizer \"%.40s\" is not supported; qwen2, llama-bpe and smollm are",
			 from, f->pre);
}

enum status tokenizer_files_write(const char *dir, struct tokenizer_facts *f, const char *from,
				  struct error *err)
{
	json_t *tokenizer = NULL, *config = NULL;
	enum status st = tokenizer_files_json(&tokenizer, &config, f, from, err);

	if (st)
		return st;
	st = json_file_write(dir, "tokenizer.json", tokenizer, 0, err);
	if (st) {
		json_decref(config);
		return st;
	}
	st = json_file_write(dir, "tokenizer_config.json", config, JSON_INDENT(2), err);
	if (!st)
		st = json_file_write(dir, "generation_config.json", generation_json(f), JSON_INDENT(2), err);
	return st;
}

json_t *tokenizer_files_added(int64_t id, const char *text, bool special)
{
	json_t *content = json_string(text);

	if (!content)
		return NULL;
	return json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content", content,
			 "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", special);
}
