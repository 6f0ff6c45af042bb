/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/answer.h"

#include <string.h>
#include "core/text/text.h"

enum form { FORM_TEXT, FORM_NUMBER, FORM_SUM, FORM_STATE, FORM_STREAM, FORM_FILE, FORM_SAME, FORM_NOTHING };

struct answer_row {
	const char *word;
	enum form form;
};
#define X(name, word, form) {word, FORM_##form},
static const struct answer_row rows[ANSWER_KIND_COUNT] = {ANSWERS(X)};
#undef X

static bool part_is_safe(const char *part, size_t size)
{
	static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@:+=,-";

	if (!size || (size == 1 && *part == '.') || (size == 2 && !strncmp(part, "..", 2)))
		return false;
	return strspn(part, good) >= size;
}

bool answer_name_is_safe(const char *name)
{
	unsigned depth = 0;

	if (!strcmp(name, "out") || !strcmp(name, "err"))
		return true;
	if (strncmp(name, "work/", 5) != 0 || strlen(name) >= ANSWER_NAME)
		return false;
	for (const char *at = name, *end;; at = end + 1) {
		end = at + strcspn(at, "/");
		if (!part_is_safe(at, (size_t)(end - at)) || ++depth > ANSWER_DEPTH)
			return false;
		if (!*end)
			return true;
	}
}

/* Takes the next word of a line; *at moves behind the space after it. */
static bool next_word(const char **at, char *out, size_t size)
{
	size_t n = strcspn(*at, " ");

	if (!n || n >= size)
		return false;
	memcpy(out, *at, n);
	out[n] = '\0';
	*at += n + ((*at)[n] == ' ');
	return true;
}

/* Decimal digits only, at most 18. */
static bool next_number(const char **at, uint64_t *out)
{
	char word[20];

	if (!next_word(at, word, sizeof(word)) || strlen(word) > 18 || word[strspn(word, "0123456789")])
		return false;
	*out = 0;
	for (const char *c = word; *c; c++)
		*out = *out * 10 + (uint64_t)(*c - '0');
	return true;
}

static bool next_sum(const char **at, char sum[65])
{
	return next_word(at, sum, 65) && strlen(sum) == 64 && !sum[strspn(sum, "0123456789abcdef")];
}

static bool next_file(const char **at, struct answer_event *e)
{
	if (!next_sum(at, e->sum) || !answer_name_is_safe(*at))
		return false;
	e->text = *at;
	return true;
}

static bool next_state(const char **at, struct answer_event *e)
{
	static const char *const states[] = {"none", "running", "ended", "gone"};
	char word[16];

	if (!next_word(at, word, sizeof(word)))
		return false;
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (!strcmp(word, states[i])) {
			e->run = (enum node_run)i;
			return i != NODE_ENDED || (next_number(at, &e->number) && e->number <= 255);
		}
	return false;
}

static bool read_form(enum form form, const char *at, struct answer_event *e)
{
	static const char *const streams[] = {"out", "err"};
	char name[ANSWER_NAME];

	e->text = at;
	switch (form) {
	case FORM_TEXT:
		return *at;
	case FORM_NUMBER:
		return next_number(&at, &e->number) && !*at;
	case FORM_SUM:
		return next_sum(&at, e->sum) && !*at;
	case FORM_STATE:
		return next_state(&at, e) && !*at;
	case FORM_STREAM:
		if (!next_word(&at, name, sizeof(name)) || !next_number(&at, &e->number) || *at)
			return false;
		e->text = streams[!strcmp(name, "err")];
		return !strcmp(name, e->text);
	case FORM_FILE:
		return next_number(&at, &e->number) && next_file(&at, e);
	case FORM_SAME:
		return next_file(&at, e);
	default:
		return !*at;
	}
}

static enum status refuse(const char *line, struct error *err)
{
	char shown[81];

	text_copy(shown, sizeof(shown), line);
	for (char *c = shown; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return error_set(err, STATUS_MISMATCH, "its answer has a line that assay does not know: \"%s\"",
			 shown);
}

static enum status whole_line(struct answer *a, struct error *err)
{
	struct answer_event e = {.kind = ANSWER_KIND_COUNT};
	const char *at = a->line;
	char word[16];
	enum status st;

	a->line[a->size] = '\0';
	if (strlen(a->line) != a->size)
		return a->begun ? refuse("a zero byte", err) : STATUS_OK;
	if (!strcmp(a->line, "begin")) {
		a->begun = true;
		return STATUS_OK;
	}
	if (!a->begun)
		return STATUS_OK; /* a greeting */
	if (!next_word(&at, word, sizeof(word)))
		return refuse(a->line, err);
	for (unsigned i = 0; i < ANSWER_KIND_COUNT; i++)
		if (!strcmp(word, rows[i].word))
			e.kind = (enum answer_kind)i;
	if (e.kind == ANSWER_KIND_COUNT || !read_form(rows[e.kind].form, at, &e))
		return refuse(a->line, err);
	a->ended = e.kind == ANSWER_END;
	st = a->take(a->arg, &e, err);
	if (st || (e.kind != ANSWER_FILE && e.kind != ANSWER_BYTES))
		return st;
	a->left = e.number;
	e = (struct answer_event){.kind = ANSWER_DATA_END};
	return a->left ? STATUS_OK : a->take(a->arg, &e, err);
}

/* Passes on bytes of a file or stream; *used is their number. */
static enum status pass_bytes(struct answer *a, const char *data, size_t size, size_t *used,
			      struct error *err)
{
	struct answer_event e = {.kind = ANSWER_DATA, .data = data};
	enum status st;

	e.size = *used = a->left < size ? (size_t)a->left : size;
	a->left -= e.size;
	st = a->take(a->arg, &e, err);
	e = (struct answer_event){.kind = ANSWER_DATA_END};
	return st || a->left ? st : a->take(a->arg, &e, err);
}

/* Takes bytes up to the end of a line. */
static enum status pass_line(struct answer *a, const char *data, size_t size, size_t *used, struct error *err)
{
	const char *end = memchr(data, '\n', size);
	size_t n = end ? (size_t)(end - data) : size;
	enum status st;

	*used = n + (end != NULL);
	a->greeting += a->begun ? 0 : *used;
	if (a->greeting > ANSWER_GREETING)
		return error_set(err, STATUS_MISMATCH,
				 "its shell printed more than %d KiB before the first line of the answer",
				 ANSWER_GREETING / 1024);
	if (a->size + n >= sizeof(a->line)) {
		if (a->begun)
			return refuse("a line of more than 2047 bytes", err);
		n = a->size = 0; /* of a greeting */
	}
	memcpy(a->line + a->size, data, n);
	a->size += n;
	if (!end)
		return STATUS_OK;
	st = whole_line(a, err);
	a->size = 0;
	return st;
}

enum status answer_feed(struct answer *a, const char *data, size_t size, struct error *err)
{
	enum status st = STATUS_OK;
	size_t used;

	for (; size && !st && !a->ended; data += used, size -= used)
		st = a->left ? pass_bytes(a, data, size, &used, err) : pass_line(a, data, size, &used, err);
	return st;
}
