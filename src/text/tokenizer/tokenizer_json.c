/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tokenizer.json of Hugging Face's tokenizers, and the small files next to it. */
#include <jansson.h>
#include <unistd.h>

#include "core/file/file.h"
#include "core/json/member.h"
#include "text/tokenizer/byte_level.h"
#include "core/json/read.h"
#include "text/tokenizer/internal.h"

enum { CONFIG_MAX = 16 << 20 };

struct reading {
	struct tokenizer *t;
	const char *name; /* of the file */
	struct byte_level bytes;
	bool byte_level;   /* a step is ByteLevel */
	struct text token; /* buffer for a token's bytes */
	struct error *err;
};

#define REFUSE(r, status, format, ...) error_set((r)->err, (status), "%s: " format, (r)->name, __VA_ARGS__)

static bool is_set(const json_t *map, const char *key)
{
	const json_t *v = json_object_get(map, key);

	return v && !json_is_null(v) && !json_is_false(v) && !(json_is_string(v) && !json_string_length(v)) &&
	       !(json_is_number(v) && json_number_value(v) == 0);
}

static enum status parse(json_t **out, const char *name, const char *text, size_t size, struct error *err)
{
	struct json_wrong why;

	*out = json_read(text, size, JSON_ALLOW_NUL, &why);
	if (!*out)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s", name, why.line, why.text);
	if (!json_is_object(*out)) {
		json_decref(*out);
		*out = NULL;
		return error_set(err, STATUS_BAD_INPUT, "%s: it is not a JSON object", name);
	}
	return STATUS_OK;
}

/* Puts the file's name in front of an error of a lower layer. */
static enum status name_it(const struct reading *r, enum status st, const struct error *why)
{
	return st ? REFUSE(r, st, "%s", why->text) : STATUS_OK;
}

static enum status add_vocab(struct reading *r, json_t *vocab)
{
	const char *key;
	json_t *value;

	if (!json_is_object(vocab))
		return REFUSE(r, STATUS_BAD_INPUT, "%s", "model.vocab is not an object");
	json_object_foreach(vocab, key, value)
	{
		size_t size = strlen(key), made = size;
		json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
		struct error why = {0};
		bool written;

		if (id < 0 || id >= VOCAB_IDS_MAX)
			return REFUSE(r, STATUS_BAD_INPUT, "model.vocab: the id of \"%.60s\" is not 0 to %d",
				      key, VOCAB_IDS_MAX - 1);
		r->token.size = 0;
		text_add_bytes(&r->token, key, size);
		if (r->token.failed)
			return REFUSE(r, STATUS_NO_RESOURCE, "%s", "out of memory");
		written = size && byte_level_decode(&r->bytes, key, size, r->token.data, &made);
		/* a token outside the byte alphabet cannot result from merges; it can be decoded, but never
		 * encoded */
		if (name_it(r,
			    vocab_add(&r->t->vocab, (int32_t)id, written ? r->token.data : key,
				      written ? made : size, written ? VOCAB_TEXT : VOCAB_MARKUP, &why),
			    &why))
			return r->err->status;
	}
	return STATUS_OK;
}

/* Whether the vocabulary has this text under this id, as characters or in the byte alphabet. */
static bool is_same_token(struct reading *r, const struct added_token *token)
{
	size_t size, made;
	const char *bytes = vocab_bytes(&r->t->vocab, token->id, &size);

	if (size == token->size && !memcmp(bytes, token->text, size))
		return true;
	r->token.size = 0;
	text_add_bytes(&r->token, token->text, token->size);
	return !r->token.failed &&
	       byte_level_decode(&r->bytes, token->text, token->size, r->token.data, &made) && made == size &&
	       !memcmp(bytes, r->token.data, size);
}

/* An added token that is already in the vocabulary is the same token, but matched as a whole. */
static enum status add_added(struct reading *r, size_t i, const json_t *entry)
{
	const json_t *id_value = json_object_get(entry, "id"), *content = json_object_get(entry, "content");
	json_int_t id = json_is_integer(id_value) ? json_integer_value(id_value) : -1;
	size_t size = json_string_length(content);
	bool control = json_is_true(json_object_get(entry, "special"));
	enum vocab_kind kind = control ? VOCAB_CONTROL : VOCAB_MARKUP;
	const struct added_token token = {
		.text = (char *)json_string_value(content),
		.size = size,
		.id = (int32_t)id,
		.control = control,
		.lstrip = json_is_true(json_object_get(entry, "lstrip")),
		.rstrip = json_is_true(json_object_get(entry, "rstrip")),
	};
	struct error why = {0};
	enum status st = STATUS_OK;

	if (id < 0 || id >= VOCAB_IDS_MAX || !size)
		return REFUSE(r, STATUS_BAD_INPUT, "added_tokens[%zu] has no id or no content", i);
	if (json_is_true(json_object_get(entry, "single_word")))
		return REFUSE(r, STATUS_UNSUPPORTED,
			      "added token \"%.100s\" is single_word, which is not supported", token.text);
	if (vocab_kind_of(&r->t->vocab, token.id) != VOCAB_HOLE && !is_same_token(r, &token))
		return REFUSE(r, STATUS_BAD_INPUT,
			      "added token \"%.100s\": its id %d belongs to another token", token.text,
			      token.id);
	if (vocab_kind_of(&r->t->vocab, token.id) == VOCAB_HOLE)
		st = vocab_add(&r->t->vocab, token.id, token.text, size, kind, &why);
	else
		vocab_set_kind(&r->t->vocab, token.id, kind);
	if (!st)
		st = added_add(&r->t->added, &token, &why);
	return name_it(r, st, &why);
}

/* Splits a merge, "a b" or an array of two, into its parts. */
static bool merge_parts(const json_t *merge, const char *part[2], size_t size[2])
{
	const char *space;

	if (json_is_array(merge) && json_array_size(merge) == 2) {
		for (size_t i = 0; i < 2; i++) {
			part[i] = json_string_value(json_array_get(merge, i));
			size[i] = json_string_length(json_array_get(merge, i));
		}
		return part[0] && part[1];
	}
	part[0] = json_string_value(merge);
	space = part[0] ? strchr(part[0], ' ') : NULL;
	if (!space)
		return false;
	part[1] = space + 1;
	size[0] = (size_t)(space - part[0]);
	size[1] = json_string_length(merge) - size[0] - 1;
	return true;
}

enum { MERGE_PART_MAX = 1024 }; /* limit for the characters of a part; far more than in any vocabulary */

static enum status add_merges(struct reading *r, const json_t *merges)
{
	struct error why = {0};
	size_t i, count = json_array_size(merges);
	enum status st = vocab_merges_room(&r->t->vocab, count, &why);

	if (!json_is_array(merges))
		return REFUSE(r, STATUS_BAD_INPUT, "%s", "model.merges is not an array");
	for (i = 0; !st && i < count; i++) {
		char bytes[2][MERGE_PART_MAX];
		const char *part[2];
		size_t size[2];

		if (!merge_parts(json_array_get(merges, i), part, size) || size[0] > MERGE_PART_MAX ||
		    size[1] > MERGE_PART_MAX ||
		    !byte_level_decode(&r->bytes, part[0], size[0], bytes[0], &size[0]) ||
		    !byte_level_decode(&r->bytes, part[1], size[1], bytes[1], &size[1]))
			return REFUSE(r, STATUS_BAD_INPUT,
				      "model.merges[%zu] is not a pair of byte-level tokens", i);
		st = vocab_add_merge(&r->t->vocab, (int32_t)i, bytes[0], size[0], bytes[1], size[1], &why);
	}
	return name_it(r, st, &why);
}

static enum status read_normalizer(struct reading *r, const json_t *n)
{
	const char *type = json_member_text(n, "type");
	struct error why = {0};
	const json_t *part;
	enum status st = STATUS_OK;
	size_t i;

	if (!n || json_is_null(n))
		return STATUS_OK;
	if (!strcmp(type, "Sequence")) {
		json_array_foreach(json_object_get(n, "normalizers"), i, part)
		{
			st = json_is_object(part) && strcmp(json_member_text(part, "type"), "Sequence") != 0
				     ? read_normalizer(r, part)
				     : REFUSE(r, STATUS_UNSUPPORTED, "%s",
					      "a normalizer within two others is not supported");
			if (st)
				return st;
		}
		return STATUS_OK;
	}
	if (strcmp(type, "NFC") != 0)
		return REFUSE(r, STATUS_UNSUPPORTED, "the normalizer \"%.60s\" is not supported; only NFC is",
			      type);
	if (!r->t->nfc)
		st = nfc_create(&r->t->nfc, &why);
	return name_it(r, st, &why);
}

static enum status add_step(struct reading *r, const char *pattern)
{
	struct error why = {0};

	return name_it(r, pretoken_add(&r->t->pretoken, pattern, &why), &why);
}

static enum status add_split(struct reading *r, const json_t *step)
{
	const char *behaviour = json_member_text(step, "behavior");
	const char *regex = json_member_text(json_object_get(step, "pattern"), "Regex");
	bool invert = json_is_true(json_object_get(step, "invert"));

	if (!*regex)
		return REFUSE(r, STATUS_UNSUPPORTED, "%s", "a Split without a Regex is not supported");
	/* both variants keep the matches, because these expressions match every character */
	if (strcmp(behaviour, "Isolated") != 0 && !(invert && !strcmp(behaviour, "Removed")))
		return REFUSE(r, STATUS_UNSUPPORTED, "the Split behaviour \"%.60s\" is not supported",
			      behaviour);
	return add_step(r, regex);
}

static enum status read_pre_tokenizer(struct reading *r, const json_t *step, bool inner)
{
	const char *type = json_member_text(step, "type");
	const json_t *part;
	size_t i;

	if (!strcmp(type, "Sequence") && !inner) {
		json_array_foreach(json_object_get(step, "pretokenizers"), i, part)
		{
			enum status st = read_pre_tokenizer(r, part, true);

			if (st)
				return st;
		}
		return STATUS_OK;
	}
	if (!*type)
		return REFUSE(r, STATUS_BAD_INPUT, "%s", "it has no pre_tokenizer, or one without a type");
	if (!strcmp(type, "Split"))
		return add_split(r, step);
	if (!strcmp(type, "Digits"))
		return add_step(r, is_set(step, "individual_digits") ? pretoken_digit : pretoken_digits);
	if (strcmp(type, "ByteLevel") != 0)
		return REFUSE(r, STATUS_UNSUPPORTED, "the pre-tokenizer \"%.60s\" is not supported", type);
	if (is_set(step, "add_prefix_space"))
		return REFUSE(r, STATUS_UNSUPPORTED, "%s",
			      "a ByteLevel with add_prefix_space is not supported");
	r->byte_level = true;
	part = json_object_get(step, "use_regex");
	return !part || json_is_true(part) ? add_step(r, pretoken_gpt2) : STATUS_OK;
}

/* The first special token of a TemplateProcessing is put before a text without a template. */
static void read_post_processor(struct reading *r, const json_t *p)
{
	const json_t *part, *special;
	size_t i;

	json_array_foreach(json_object_get(p, "processors"), i,
			   part) if (!strcmp(json_member_text(part, "type"), "TemplateProcessing"))
		read_post_processor(r, part);
	special = json_object_get(json_array_get(json_object_get(p, "single"), 0), "SpecialToken");
	if (special)
		r->t->bos = tokenizer_added(r->t, json_member_text(special, "id"));
}

static enum status check_model(struct reading *r, const json_t *model)
{
	static const char *const unknown[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
					      "byte_fallback"};
	const char *type = json_member_text(model, "type");

	if (!json_is_object(model))
		return REFUSE(r, STATUS_BAD_INPUT, "%s", "it has no model");
	if (*type && strcmp(type, "BPE") != 0)
		return REFUSE(r, STATUS_UNSUPPORTED, "the model \"%.60s\" is not supported; only BPE is",
			      type);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		if (is_set(model, unknown[i]))
			return REFUSE(r, STATUS_UNSUPPORTED, "model.%s is set, which is not supported",
				      unknown[i]);
	return STATUS_OK;
}

static enum status read_model(struct reading *r, const json_t *root)
{
	const json_t *model = json_object_get(root, "model"), *entry;
	enum status st = check_model(r, model);
	struct error why = {0};
	size_t i;

	if (!st)
		st = add_vocab(r, json_object_get(model, "vocab"));
	json_array_foreach(json_object_get(root, "added_tokens"), i, entry) if (!st) st =
		add_added(r, i, entry);
	if (!st)
		st = name_it(r, vocab_index(&r->t->vocab, &why), &why);
	if (!st)
		st = add_merges(r, json_object_get(model, "merges"));
	if (st)
		return st;
	for (i = 0; is_set(model, "unk_token") && i < 256; i++)
		if (r->t->vocab.of_byte[i] < 0 && i != 0xc0 && i != 0xc1 && i < 0xf5)
			return REFUSE(r, STATUS_UNSUPPORTED,
				      "it has an unk_token and no token for byte %zu, which is not supported",
				      i);
	added_index(&r->t->added);
	r->t->whole_first = is_set(model, "ignore_merges");
	return STATUS_OK;
}

enum status tokenizer_take_json(struct tokenizer *t, const char *name, const json_t *root, struct error *err)
{
	struct reading r = {.t = t, .name = name, .err = err};
	enum status st;

	byte_level_init(&r.bytes);
	st = read_model(&r, root);
	if (!st)
		st = read_normalizer(&r, json_object_get(root, "normalizer"));
	if (!st)
		st = read_pre_tokenizer(&r, json_object_get(root, "pre_tokenizer"), false);
	if (!st && !r.byte_level)
		st = REFUSE(&r, STATUS_UNSUPPORTED, "%s",
			    "no pre-tokenizer is ByteLevel; others are not supported");
	if (!st)
		read_post_processor(&r, json_object_get(root, "post_processor"));
	text_release(&r.token);
	return st;
}

enum status tokenizer_parse_json(struct tokenizer *t, const char *name, const char *text, size_t size,
				 struct error *err)
{
	json_t *root;
	enum status st = parse(&root, name, text, size, err);

	if (st)
		return st;
	st = tokenizer_take_json(t, name, root, err);
	json_decref(root);
	return st;
}

/* Reads a small file next to tokenizer.json. *out is NULL if it does not exist. */
static enum status read_beside(json_t **out, const char *folder, const char *name, struct error *err)
{
	struct text path = {0};
	char *text;
	size_t size;
	enum status st = STATUS_OK;

	*out = NULL;
	text_addf(&path, "%s/%s", folder, name);
	if (!access(text_str(&path), F_OK)) {
		st = file_read(&text, &size, text_str(&path), CONFIG_MAX, err);
		if (!st) {
			st = parse(out, text_str(&path), text, size, err);
			free(text);
		}
	}
	text_release(&path);
	return st;
}

const char *const tokenizer_special_names[TOKENIZER_SPECIALS] = {
	[SPECIAL_BOS] = "bos_token",
	[SPECIAL_EOS] = "eos_token",
	[SPECIAL_PAD] = "pad_token",
	[SPECIAL_UNK] = "unk_token",
};

/* The template of a name from a list of named ones; a single template is "default". */
static const char *template_of(const json_t *config, const char *name)
{
	const json_t *value = json_object_get(config, "chat_template"), *entry;
	size_t i;

	json_array_foreach(value, i, entry)
	{
		if (!strcmp(json_member_text(entry, "name"), name))
			return json_member_text(entry, "template");
	}
	return strcmp(name, "default") ? "" : json_member_text(config, "chat_template");
}

/* Replaces *to unless the text is empty. */
static enum status keep_text(char **to, const char *text, struct error *err)
{
	if (!*text)
		return STATUS_OK;
	free(*to);
	*to = strdup(text);
	return *to ? STATUS_OK
		   : error_set(err, STATUS_NO_RESOURCE, "a text of the tokenizer's configuration");
}

enum status tokenizer_take_config(struct tokenizer *t, const json_t *config, struct error *err)
{
	enum status st = keep_text(&t->chat_template, template_of(config, "default"), err);

	if (!st)
		st = keep_text(&t->tool_template, template_of(config, "tool_use"), err);
	for (int i = 0; i < TOKENIZER_SPECIALS && !st; i++) {
		const json_t *token = json_object_get(config, tokenizer_special_names[i]);

		st = keep_text(&t->special[i],
			       json_is_object(token) ? json_member_text(token, "content")
						     : json_member_text(config, tokenizer_special_names[i]),
			       err);
	}
	t->eos = tokenizer_added(t, tokenizer_special(t, SPECIAL_EOS));
	return st;
}

static enum status read_jinja(struct tokenizer *t, const char *folder, struct error *err)
{
	struct text path = {0};
	char *text;
	size_t size;
	enum status st = STATUS_OK;

	text_addf(&path, "%s/chat_template.jinja", folder);
	if (!access(text_str(&path), F_OK)) {
		st = file_read(&text, &size, text_str(&path), CONFIG_MAX, err);
		if (!st) {
			st = keep_text(&t->chat_template, text, err);
			free(text);
		}
	}
	text_release(&path);
	return st;
}

enum status tokenizer_read_config(struct tokenizer *t, const char *folder, struct error *err)
{
	json_t *config;
	enum status st = read_beside(&config, folder, "tokenizer_config.json", err);

	if (!st && config)
		st = tokenizer_take_config(t, config, err);
	json_decref(config);
	return st ? st : read_jinja(t, folder, err);
}
