/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/tokenizer.h"

#include <errno.h>
#include <sys/stat.h>

#include "core/file/file.h"
#include "core/file/mapped.h"
#include "core/text/utf8.h"
#include "core/gguf/metadata.h"
#include "text/files/tokenizer_files.h"
#include "text/tokenizer/internal.h"

enum { TOKENIZER_JSON_MAX = 256 << 20 };

struct tokenizer_worker {
	const struct tokenizer *t;
	struct pretoken_match *match;
	struct bpe *bpe;
	struct text composed;
	struct token_list *out; /* only during encoding */
};

static void tokenizer_release(struct tokenizer *t)
{
	vocab_release(&t->vocab);
	added_release(&t->added);
	pretoken_release(&t->pretoken);
	nfc_destroy(&t->nfc);
	free(t->chat_template);
	free(t->tool_template);
	for (int i = 0; i < TOKENIZER_SPECIALS; i++)
		free(t->special[i]);
	*t = (struct tokenizer){.bos = -1, .eos = -1};
}

static enum status open_json(struct tokenizer *t, const char *folder, const char *path, struct error *err)
{
	char *text;
	size_t size;
	enum status st = file_read(&text, &size, path, TOKENIZER_JSON_MAX, err);

	if (st)
		return st;
	st = tokenizer_parse_json(t, path, text, size, err);
	free(text);
	return st ? st : tokenizer_read_config(t, folder, err);
}

static enum status open_gguf(struct tokenizer *t, const char *path, struct error *err)
{
	json_t *root = NULL, *config = NULL;
	struct gguf_metadata metadata = {0};
	enum status st = gguf_metadata_open(&metadata, path, err);

	if (st)
		return st;
	st = tokenizer_files_json_of_gguf(&root, &config, &metadata, err);
	if (!st)
		st = tokenizer_take_json(t, path, root, err);
	if (!st)
		st = tokenizer_take_config(t, config, err);
	st = mapped_check(st, err);
	json_decref(root);
	json_decref(config);
	gguf_metadata_release(&metadata);
	return st;
}

static bool is_gguf(const char *path)
{
	char magic[4] = "";
	FILE *f = fopen(path, "rb");
	bool is = f && fread(magic, 1, 4, f) == 4 && !memcmp(magic, "GGUF", 4);

	if (f)
		fclose(f);
	return is;
}

enum status tokenizer_open(struct tokenizer **out, const char *path, struct error *err)
{
	struct tokenizer *t = calloc(1, sizeof(*t));
	struct text file = {0}, folder = {0};
	const char *slash = strrchr(path, '/');
	struct stat info;
	enum status st;

	if (!t)
		return error_set(err, STATUS_NO_RESOURCE, "a tokenizer");
	t->bos = t->eos = -1;
	if (stat(path, &info)) {
		st = error_errno(err, errno, "%s", path);
		goto out;
	}
	if (S_ISDIR(info.st_mode))
		text_add(&folder, path);
	else
		text_add_bytes(&folder, slash ? path : ".", slash ? (size_t)(slash - path) : 1);
	text_addf(&file, "%s%s", path, S_ISDIR(info.st_mode) ? "/tokenizer.json" : "");
	st = S_ISREG(info.st_mode) && is_gguf(path) ? open_gguf(t, path, err)
						    : open_json(t, text_str(&folder), text_str(&file), err);
out:
	text_release(&file);
	text_release(&folder);
	if (st)
		tokenizer_close(&t);
	else
		*out = t;
	return st;
}

void tokenizer_close(struct tokenizer **t)
{
	if (!*t)
		return;
	tokenizer_release(*t);
	free(*t);
	*t = NULL;
}

int32_t tokenizer_size(const struct tokenizer *t)
{
	return t->vocab.count;
}

enum status tokenizer_check_rows(const struct tokenizer *t, int64_t rows, struct error *err)
{
	if (t->vocab.count <= rows)
		return STATUS_OK;
	return error_set(
		err, STATUS_BAD_INPUT,
		"tokenizer and model do not match: token ids go up to %d, but the embedding has %lld rows",
		t->vocab.count - 1, (long long)rows);
}

int32_t tokenizer_added(const struct tokenizer *t, const char *text)
{
	const struct added_token *found = *text ? added_at(&t->added, text, strlen(text)) : NULL;

	return found && !text[found->size] ? found->id : -1;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
	return t->eos;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
	return t->bos;
}

const char *tokenizer_chat_template(const struct tokenizer *t)
{
	return t->chat_template ? t->chat_template : "";
}

const char *tokenizer_tool_template(const struct tokenizer *t)
{
	return t->tool_template ? t->tool_template : "";
}

const char *tokenizer_special(const struct tokenizer *t, enum tokenizer_special which)
{
	return t->special[which] ? t->special[which] : "";
}

enum status tokenizer_worker_create(struct tokenizer_worker **out, const struct tokenizer *t,
				    struct error *err)
{
	struct tokenizer_worker *w = calloc(1, sizeof(*w));
	enum status st;

	if (!w)
		return error_set(err, STATUS_NO_RESOURCE, "the workspace of a tokenizer");
	w->t = t;
	st = pretoken_match_create(&w->match, err);
	if (!st)
		st = bpe_create(&w->bpe, err);
	if (st)
		tokenizer_worker_destroy(&w);
	else
		*out = w;
	return st;
}

void tokenizer_worker_destroy(struct tokenizer_worker **w)
{
	if (!*w)
		return;
	pretoken_match_destroy(&(*w)->match);
	bpe_destroy(&(*w)->bpe);
	text_release(&(*w)->composed);
	free(*w);
	*w = NULL;
}

static enum status encode_word(void *arg, const char *word, size_t size, struct error *err)
{
	struct tokenizer_worker *w = arg;

	return bpe_word(w->bpe, &w->t->vocab, w->t->whole_first, word, size, w->out, err);
}

/* Encodes text between two added tokens. */
static enum status encode_plain(struct tokenizer_worker *w, const char *text, size_t size, struct error *err)
{
	enum status st = STATUS_OK;

	if (w->t->nfc)
		st = nfc_apply(w->t->nfc, text, size, &w->composed, &text, &size, err);
	return st ? st : pretoken_split(&w->t->pretoken, w->match, text, size, encode_word, w, err);
}

static bool is_space(uint32_t code)
{
	return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xa0 || code == 0x1680 ||
	       (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
	       code == 0x205f || code == 0x3000;
}

/* Length of the white space at the end of text[0 .. size). */
static size_t space_before(const char *text, size_t size)
{
	size_t at = size;

	while (at) {
		size_t begin = at - 1, taken;

		while (begin && (text[begin] & 0xc0) == 0x80)
			begin--;
		if (!is_space(utf8_decode(text + begin, &taken)))
			break;
		at = begin;
	}
	return size - at;
}

static size_t space_after(const char *text, size_t size)
{
	size_t at = 0, taken;

	while (at < size && is_space(utf8_decode(text + at, &taken)))
		at += taken;
	return at;
}

/* The first added token at or after `from` that its part allows, and its place *at. NULL: none. */
static const struct added_token *find_added(const struct tokenizer *t, const char *text,
					    const struct text_part *parts, size_t count, size_t from,
					    size_t *at)
{
	size_t size = parts[count - 1].end, part = 0;

	while ((from = added_next(&t->added, text, size, from)) < size) {
		const struct added_token *found = NULL;

		while (parts[part].end <= from)
			part++;
		if (parts[part].added != ADDED_NONE)
			found = added_at(&t->added, text + from, parts[part].end - from);
		if (found && (parts[part].added == ADDED_ALL || !found->control)) {
			*at = from;
			return found;
		}
		from++;
	}
	return NULL;
}

static bool is_utf8(const char *text, size_t size, size_t *bad)
{
	size_t at = 0, taken;

	while (at < size) {
		if (!(text[at] & 0x80)) {
			at++;
			continue;
		}
		/* U+FFFD itself has three bytes; invalid UTF-8 is decoded to it with a length of one */
		if (utf8_decode(text + at, &taken) && (taken == 1 || at + taken > size)) {
			*bad = at;
			return false;
		}
		at += taken;
	}
	return true;
}

enum status tokenizer_encode_parts(struct tokenizer_worker *w, const char *text,
				   const struct text_part *parts, size_t count, struct token_list *out,
				   struct error *err)
{
	size_t size = count ? parts[count - 1].end : 0, done = 0, bad, at, end;
	const struct added_token *found;
	enum status st = STATUS_OK;

	if (!is_utf8(text, size, &bad))
		return error_set(err, STATUS_BAD_INPUT, "byte %zu of the text is not UTF-8", bad);
	w->out = out;
	while (!st && done < size) {
		found = find_added(w->t, text, parts, count, done, &at);
		if (!found)
			return encode_plain(w, text + done, size - done, err);
		end = at + found->size;
		if (found->lstrip)
			at -= space_before(text + done, at - done);
		if (found->rstrip)
			end += space_after(text + end, size - end);
		st = encode_plain(w, text + done, at - done, err);
		if (!st)
			st = token_list_add(out, &found->id, 1, err);
		done = end;
	}
	return st;
}

enum status tokenizer_encode(struct tokenizer_worker *w, const char *text, size_t size,
			     enum tokenizer_added added, struct token_list *out, struct error *err)
{
	const struct text_part whole = {.end = size, .added = added};

	return tokenizer_encode_parts(w, text, &whole, 1, out, err);
}

void tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool control,
		      struct text *out)
{
	size_t i, size;

	for (i = 0; i < count; i++) {
		const char *bytes = vocab_bytes(&t->vocab, ids[i], &size);

		if (bytes && (control || vocab_kind_of(&t->vocab, ids[i]) != VOCAB_CONTROL))
			text_add_bytes(out, bytes, size);
	}
}
