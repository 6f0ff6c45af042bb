/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/serve/negotiate.h"

#include <ctype.h>

/* One element of such a header: a word and its parameters. */
struct element {
	const char *word;
	size_t size;
	double quality;	 /* 0 to 1 */
	char version[8]; /* "": none */
};

static size_t blanks(const char *s)
{
	return strspn(s, " \t");
}

static bool is_word(const char *s, size_t size, const char *word)
{
	return size == strlen(word) && !strncasecmp(s, word, size);
}

/* A quality is 0 to 1 with three digits. Anything else counts as 0: the client wants something unusual. */
static double quality_of(const char *s, size_t size)
{
	double value = 0, digit = 1;

	if (!size || size > 5 || (s[0] != '0' && s[0] != '1') || (size > 1 && s[1] != '.'))
		return 0;
	value = s[0] - '0';
	for (size_t i = 2; i < size; i++) {
		if (!isdigit((unsigned char)s[i]))
			return 0;
		digit /= 10;
		value += digit * (s[i] - '0');
	}
	return value > 1 ? 1 : value;
}

static void take_parameter(struct element *e, const char *s, size_t size)
{
	const char *equals = memchr(s, '=', size), *value = equals ? equals + 1 : NULL;
	size_t name_size = equals ? (size_t)(equals - s) : 0, value_size = equals ? size - name_size - 1 : 0;

	if (!equals)
		return;
	if (value_size > 1 && *value == '"' && value[value_size - 1] == '"') {
		value++;
		value_size -= 2;
	}
	if (is_word(s, name_size, "q"))
		e->quality = quality_of(value, value_size);
	else if (is_word(s, name_size, "version"))
		snprintf(e->version, sizeof(e->version), "%.*s", (int)(value_size < 7 ? value_size : 7),
			 value);
}

static size_t trimmed(const char *s, size_t size)
{
	while (size && (s[size - 1] == ' ' || s[size - 1] == '\t'))
		size--;
	return size;
}

/* Takes the next element and moves *at behind it. False: there are no more. */
static bool next_element(const char **at, struct element *e)
{
	const char *s = *at;
	size_t size;

	s += strspn(s, " \t,");
	if (!*s)
		return false;
	size = strcspn(s, ",;");
	*e = (struct element){.word = s, .size = trimmed(s, size), .quality = 1};
	s += size;
	while (*s == ';') {
		s++;
		s += blanks(s);
		size = strcspn(s, ",;");
		take_parameter(e, s, trimmed(s, size));
		s += size;
	}
	*at = s;
	return true;
}

static bool is_openmetrics(const struct element *e)
{
	return is_word(e->word, e->size, "application/openmetrics-text") &&
	       (!*e->version || !strcmp(e->version, "1.0.0") || !strcmp(e->version, "0.0.1"));
}

static bool is_text(const struct element *e)
{
	return is_word(e->word, e->size, "*/*") || is_word(e->word, e->size, "text/*") ||
	       (is_word(e->word, e->size, "text/plain") && (!*e->version || !strcmp(e->version, "0.0.4")));
}

enum page_format negotiate_format(const char *accept)
{
	double text = 0, open = 0;
	struct element e;

	while (accept && next_element(&accept, &e)) {
		if (is_openmetrics(&e) && e.quality > open)
			open = e.quality;
		if (is_text(&e) && e.quality > text)
			text = e.quality;
	}
	return open > 0 && open >= text ? PAGE_OPENMETRICS : PAGE_TEXT;
}

bool negotiate_gzip(const char *accept_encoding)
{
	struct element e;
	bool any = false;

	while (accept_encoding && next_element(&accept_encoding, &e)) {
		if (is_word(e.word, e.size, "gzip") || is_word(e.word, e.size, "x-gzip"))
			return e.quality > 0;
		if (is_word(e.word, e.size, "*"))
			any = e.quality > 0;
	}
	return any;
}
