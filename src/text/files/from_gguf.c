/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a GGUF's vocabulary to the tokenizer files of a model folder. */
#include <inttypes.h>
#include "core/gguf/metadata.h"
#include "text/files/tokenizer_files.h"

#define KEY(rest) "tokenizer.ggml." rest

/* Special types of tokens in a GGUF; all others are text. */
enum { TOKEN_CONTROL = 3, TOKEN_USER = 4, TOKEN_UNUSED = 5 };

static enum status array_of(const struct gguf_metadata *m, const char *key, enum gguf_type item,
			    const struct gguf_value **out, struct error *err)
{
	*out = gguf_find(m, key);
	if (*out && (*out)->type == GGUF_ARRAY && (*out)->item == item)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT, "%s: %s is missing or not an array of %s", m->path, key,
			 item == GGUF_TEXT ? "texts" : "numbers");
}

/* False: the token is already there, or is not a text. */
static bool add_token(struct tokenizer_facts *f, const struct gguf_text *token, int64_t id, int64_t type)
{
	char *text = strndup(token->data, token->size);
	bool is_new = text && strlen(text) == token->size && !json_object_get(f->vocab, text) &&
		      !json_object_set_new(f->vocab, text, json_integer(id));

	if (is_new && (type == TOKEN_CONTROL || type == TOKEN_USER))
		is_new = !json_array_append_new(f->added,
						tokenizer_files_added(id, text, type == TOKEN_CONTROL));
	free(text);
	return is_new;
}

static enum status add_tokens(struct tokenizer_facts *f, const struct gguf_metadata *m, struct error *err)
{
	const struct gguf_value *tokens, *types;
	enum status st = array_of(m, KEY("tokens"), GGUF_TEXT, &tokens, err);

	if (!st)
		st = array_of(m, KEY("token_type"), GGUF_I32, &types, err);
	if (st)
		return st;
	if (types->count != tokens->count)
		return error_set(err, STATUS_BAD_INPUT, "%s: %" PRIu64 " tokens have %" PRIu64 " types",
				 m->path, tokens->count, types->count);
	for (uint64_t i = 0; i < tokens->count && !st; i++) {
		if (gguf_item(types, i) != TOKEN_UNUSED &&
		    !add_token(f, &tokens->texts[i], (int64_t)i, gguf_item(types, i)))
			st = error_set(err, STATUS_BAD_INPUT,
				       "%s: token %" PRIu64 " occurs twice or is not UTF-8", m->path, i);
	}
	return st;
}

static enum status add_merges(struct tokenizer_facts *f, const struct gguf_metadata *m, struct error *err)
{
	const struct gguf_value *merges;
	enum status st = array_of(m, KEY("merges"), GGUF_TEXT, &merges, err);

	for (uint64_t i = 0; !st && i < merges->count; i++) {
		if (json_array_append_new(f->merges,
					  json_stringn(merges->texts[i].data, merges->texts[i].size)))
			st = error_set(err, STATUS_BAD_INPUT, "%s: merge %" PRIu64 " is not UTF-8", m->path,
				       i);
	}
	return st;
}

/* A token that the metadata name by id. The caller frees its text. */
static enum status named_token(const struct gguf_metadata *m, const char *key, int64_t *id, char **text,
			       struct error *err)
{
	const struct gguf_value *tokens = gguf_find(m, KEY("tokens"));
	enum status st;

	*id = -1;
	st = gguf_i64(m, key, 0, (int64_t)tokens->count - 1, id, err);
	if (!st && *id >= 0)
		*text = strndup(tokens->texts[*id].data, tokens->texts[*id].size);
	return st;
}

static enum status text_of(const struct gguf_metadata *m, const char *key, char **out, struct error *err)
{
	struct gguf_text text = {0};
	enum status st = gguf_string(m, key, &text, err);

	if (!st && text.size)
		*out = strndup(text.data, text.size);
	return st;
}

/* NUL-terminated copies. */
struct texts {
	char *model, *pre, *template, *bos, *eos, *pad;
};

static enum status read_words(struct tokenizer_facts *f, struct texts *t, const struct gguf_metadata *m,
			      struct error *err)
{
	enum status st = text_of(m, KEY("model"), &t->model, err);

	if (!st && (!t->model || strcmp(t->model, "gpt2")))
		st = error_set(
			err, STATUS_UNSUPPORTED,
			"%s: tokenizer.ggml.model is \"%.40s\"; only gpt2 (byte-level BPE) is supported",
			m->path, t->model ? t->model : "");
	if (!st)
		st = text_of(m, KEY("pre"), &t->pre, err);
	if (!st)
		st = text_of(m, "tokenizer.chat_template", &t->template, err);
	if (!st)
		st = named_token(m, KEY("bos_token_id"), &f->bos_id, &t->bos, err);
	if (!st)
		st = named_token(m, KEY("eos_token_id"), &f->eos_id, &t->eos, err);
	if (!st)
		st = named_token(m, KEY("padding_token_id"), &f->pad_id, &t->pad, err);
	f->pre = t->pre ? t->pre : "";
	f->add_bos = !strcmp(f->pre, "llama-bpe");
	if (!st)
		st = gguf_bool(m, KEY("add_bos_token"), &f->add_bos, err);
	f->chat_template = t->template;
	f->bos = t->bos;
	f->eos = t->eos;
	f->pad = t->pad;
	return st;
}

static enum status facts_of(struct tokenizer_facts *f, struct texts *t, const struct gguf_metadata *m,
			    struct error *err)
{
	enum status st;

	*f = (struct tokenizer_facts){.vocab = json_object(), .merges = json_array(), .added = json_array()};
	st = add_tokens(f, m, err);
	if (!st)
		st = add_merges(f, m, err);
	return st ? st : read_words(f, t, m, err);
}

static void facts_release(struct tokenizer_facts *f, struct texts *t)
{
	json_decref(f->vocab);
	json_decref(f->merges);
	json_decref(f->added);
	free(t->model);
	free(t->pre);
	free(t->template);
	free(t->bos);
	free(t->eos);
	free(t->pad);
}

enum status tokenizer_files_of_gguf(const char *dir, const struct gguf_metadata *m, struct error *err)
{
	struct tokenizer_facts f;
	struct texts t = {0};
	enum status st = facts_of(&f, &t, m, err);

	if (!st)
		st = tokenizer_files_write(dir, &f, m->path, err);
	facts_release(&f, &t);
	return st;
}

enum status tokenizer_files_json_of_gguf(json_t **tokenizer, json_t **config, const struct gguf_metadata *m,
					 struct error *err)
{
	struct tokenizer_facts f;
	struct texts t = {0};
	enum status st = facts_of(&f, &t, m, err);

	if (!st)
		st = tokenizer_files_json(tokenizer, config, &f, m->path, err);
	facts_release(&f, &t);
	return st;
}
