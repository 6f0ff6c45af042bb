/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/text.h"

#include <stdint.h>

/* Makes room for `more` bytes and the NUL. False (and `failed` is set) if memory is out. */
static int text_grow(struct text *t, size_t more)
{
	size_t need, room;
	char *data;

	if (t->failed)
		return 0;
	if (more > SIZE_MAX / 2 - t->size - 1) {
		t->failed = 1;
		return 0;
	}
	need = t->size + more + 1;
	if (need <= t->room)
		return 1;
	room = t->room ? t->room : 64;
	while (room < need)
		room *= 2;
	data = realloc(t->data, room);
	if (!data) {
		t->failed = 1;
		return 0;
	}
	t->data = data;
	t->room = room;
	return 1;
}

void text_add_bytes(struct text *t, const char *s, size_t size)
{
	if (!text_grow(t, size))
		return;
	if (size)
		memcpy(t->data + t->size, s, size);
	t->size += size;
	t->data[t->size] = '\0';
}

void text_add(struct text *t, const char *s)
{
	text_add_bytes(t, s, strlen(s));
}

void text_addv(struct text *t, const char *format, va_list args)
{
	enum {
		USUAL = 64
	}; /* most texts are shorter, so they are printed once, not once to find their size */
	va_list again;
	size_t room;
	int size;

	if (!text_grow(t, USUAL))
		return;
	room = t->room - t->size;
	va_copy(again, args);
	size = vsnprintf(t->data + t->size, room, format, again);
	va_end(again);
	if (size < 0) {
		t->data[t->size] = '\0';
		t->failed = 1;
		return;
	}
	if ((size_t)size >= room) {
		t->data[t->size] = '\0';
		if (!text_grow(t, (size_t)size))
			return;
		vsnprintf(t->data + t->size, (size_t)size + 1, format, args);
	}
	t->size += (size_t)size;
}

void text_addf(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_addv(t, format, args);
	va_end(args);
}

const char *text_str(const struct text *t)
{
	return t->data ? t->data : "";
}

void text_release(struct text *t)
{
	free(t->data);
	*t = (struct text){0};
}

void text_add_html(struct text *t, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			text_add(t, "&amp;");
			break;
		case '<':
			text_add(t, "&lt;");
			break;
		case '>':
			text_add(t, "&gt;");
			break;
		case '"':
			text_add(t, "&quot;");
			break;
		case '\'':
			text_add(t, "&#39;");
			break;
		case '\t':
		case '\n':
			text_add_bytes(t, s, 1);
			break;
		default:
			/* XML 1.0 cannot represent the other control characters, not even escaped. */
			if ((unsigned char)*s < 0x20 || *s == 0x7f)
				text_add(t, "\xef\xbf\xbd");
			else
				text_add_bytes(t, s, 1);
		}
	}
}

void text_copy(char *out, size_t size, const char *s)
{
	size_t n;

	if (!size)
		return;
	n = strnlen(s, size - 1);
	memcpy(out, s, n);
	out[n] = '\0';
}

bool text_alike(const char *a, const char *b)
{
	static const char number[] = "0123456789.";

	for (;; a++, b++) {
		a += strspn(a, number);
		b += strspn(b, number);
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
}

int text_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
