/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nfc.h"

#include <utf8proc.h>

/* No canonical decomposition, mark or composition lies beyond; the compatibility ideographs are the last. */
enum { NFC_CODES = 0x30000, NFC_PARTS_MAX = 16 };

struct nfc {
	uint8_t unsure[NFC_CODES / 8]; /* may change, or change what stands before it */
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
		for (i = 1; i < count; i++) /* composes with what stands before it */
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

/* True where no character of the text asks for the long way. */
static int is_composed(const struct nfc *n, const unsigned char *s, size_t size)
{
	size_t i = 0;

	while (i < size) {
		unsigned code = s[i];

		if (code < 0x80) {
			i++;
			continue;
		}
		if (code < 0xe0) {
			code = (code & 0x1f) << 6 | (s[i + 1] & 0x3f);
			i += 2;
		} else if (code < 0xf0) {
			code = (code & 0xf) << 12 | (unsigned)(s[i + 1] & 0x3f) << 6 | (s[i + 2] & 0x3f);
			i += 3;
		} else {
			code = (code & 7) << 18 | (unsigned)(s[i + 1] & 0x3f) << 12 |
			       (unsigned)(s[i + 2] & 0x3f) << 6 | (s[i + 3] & 0x3f);
			i += 4;
		}
		if (code < NFC_CODES && n->unsure[code / 8] >> code % 8 & 1)
			return 0;
	}
	return 1;
}

enum status nfc_apply(const struct nfc *n, const char *text, size_t size, struct text *scratch,
		      const char **out, size_t *out_size, struct error *err)
{
	utf8proc_uint8_t *made;
	utf8proc_ssize_t made_size;

	*out = text;
	*out_size = size;
	if (is_composed(n, (const unsigned char *)text, size))
		return STATUS_OK;
	made_size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &made,
				 UTF8PROC_STABLE | UTF8PROC_COMPOSE);
	if (made_size < 0)
		return error_set(err, STATUS_NO_RESOURCE, "composing %zu bytes: %s", size,
				 utf8proc_errmsg(made_size));
	scratch->size = 0;
	text_add_bytes(scratch, (const char *)made, (size_t)made_size);
	free(made);
	if (scratch->failed)
		return error_set(err, STATUS_NO_RESOURCE, "composing %zu bytes", size);
	*out = text_str(scratch);
	*out_size = scratch->size;
	return STATUS_OK;
}
