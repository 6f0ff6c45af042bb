/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer/nfc.h"

#include <utf8proc.h>

/* No canonical decomposition, combining mark or composition is beyond; the compatibility ideographs are the
 * last. */
enum { NFC_CODES = 0x30000, NFC_PARTS_MAX = 16 };

struct nfc {
	uint8_t unsure[NFC_CODES / 8]; /* characters that may change, or change the one before */
};

static void mark(struct nfc *n, utf8proc_int32_t code)
{
	if (code < NFC_CODES)
		n->unsure[code / 8] |= (uint8_t)(1 << code % 8);
}

/* Whether the decomposition composes to this character again. */
static int comes_back(utf8proc_int32_t code, utf8proc_int32_t *parts, utf8proc_ssize_t count)
{
	count = utf8proc_normalize_utf32(parts, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
	return count == 1 && parts[0] == code;
}

enum status nfc_create(struct nfc **out, struct error *err)
{
	struct nfc *n = calloc(1, sizeof(*n));
	utf8proc_int32_t code, parts[NFC_PARTS_MAX];
	utf8proc_ssize_t count, i;
	int last_class = 0;

	if (!n)
		return error_set(err, STATUS_NO_RESOURCE, "the table of composed characters");
	for (code = 0x80; code < NFC_CODES; code++) {
		if (utf8proc_get_property(code)->combining_class)
			mark(n, code);
		count = utf8proc_decompose_char(code, parts, NFC_PARTS_MAX, UTF8PROC_DECOMPOSE, &last_class);
		if (count < 1 || count > NFC_PARTS_MAX || (count == 1 && parts[0] == code))
			continue;
		for (i = 1; i < count; i++) /* composes with the character before */
			mark(n, parts[i]);
		if (!comes_back(code, parts, count))
			mark(n, code);
	}
	*out = n;
	return STATUS_OK;
}

void nfc_destroy(struct nfc **n)
{
	free(*n);
	*n = NULL;
}

static unsigned next_code(const unsigned char *s, size_t *size)
{
	if (s[0] < 0x80) {
		*size = 1;
		return s[0];
	}
	if (s[0] < 0xe0) {
		*size = 2;
		return (unsigned)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
	}
	if (s[0] < 0xf0) {
		*size = 3;
		return (unsigned)(s[0] & 0xf) << 12 | (unsigned)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
	}
	*size = 4;
	return (unsigned)(s[0] & 7) << 18 | (unsigned)(s[1] & 0x3f) << 12 | (unsigned)(s[2] & 0x3f) << 6 |
	       (s[3] & 0x3f);
}

/* Finds the first part from `from` on that may change: unsure characters, and the one before them, with
 * which they may compose. False: there is none. */
static int find_unsure(const struct nfc *n, const unsigned char *s, size_t size, size_t from, size_t *begin,
		       size_t *end)
{
	size_t at = from, before = from, taken;
	int found = 0;

	for (; at < size; at += taken) {
		unsigned code = next_code(s + at, &taken);
		int unsure = code < NFC_CODES && n->unsure[code / 8] >> code % 8 & 1;

		if (unsure && !found)
			*begin = before;
		found |= unsure;
		if (found && !unsure)
			break;
		before = at;
	}
	*end = at;
	return found;
}

static enum status compose(const char *text, size_t size, struct text *out, struct error *err)
{
	utf8proc_uint8_t *made;
	utf8proc_ssize_t made_size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size,
						  &made, UTF8PROC_STABLE | UTF8PROC_COMPOSE);

	if (made_size < 0)
		return error_set(err, STATUS_NO_RESOURCE, "composing %zu bytes: %s", size,
				 utf8proc_errmsg(made_size));
	text_add_bytes(out, (const char *)made, (size_t)made_size);
	free(made);
	return STATUS_OK;
}

enum status nfc_apply(const struct nfc *n, const char *text, size_t size, struct text *scratch,
		      const char **out, size_t *out_size, struct error *err)
{
	size_t done = 0, begin, end;
	enum status st = STATUS_OK;

	*out = text;
	*out_size = size;
	scratch->size = 0;
	while (!st && find_unsure(n, (const unsigned char *)text, size, done, &begin, &end)) {
		text_add_bytes(scratch, text + done, begin - done);
		st = compose(text + begin, end - begin, scratch, err);
		done = end;
	}
	if (st || !done)
		return st;
	text_add_bytes(scratch, text + done, size - done);
	*out = text_str(scratch);
	*out_size = scratch->size;
	return scratch->failed ? error_set(err, STATUS_NO_RESOURCE, "composing %zu bytes", size) : STATUS_OK;
}
