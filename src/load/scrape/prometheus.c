/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "load/scrape/prometheus.h"

enum { NUMBER_MOST = 64 };

/* A line while it is read. */
struct line {
	const char *at, *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_blanks(struct line *l)
{
	while (l->at < l->end && is_blank(*l->at))
		l->at++;
}

static bool take(struct line *l, char sign)
{
	if (l->at >= l->end || *l->at != sign)
		return false;
	l->at++;
	return true;
}

static bool is_name_part(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!first && c >= '0' && c <= '9');
}

static size_t read_name(struct line *l)
{
	const char *from = l->at;

	while (l->at < l->end && is_name_part(*l->at, l->at == from))
		l->at++;
	return (size_t)(l->at - from);
}

/* name="value", with \\, \" and \n in the value */
static bool skip_label(struct line *l)
{
	if (!read_name(l))
		return false;
	skip_blanks(l);
	if (!take(l, '='))
		return false;
	skip_blanks(l);
	if (!take(l, '"'))
		return false;
	while (l->at < l->end && *l->at != '"')
		l->at += *l->at == '\\' && l->at + 1 < l->end ? 2 : 1;
	return take(l, '"');
}

static bool read_labels(struct line *l, struct prometheus_sample *s)
{
	s->labels = l->at;
	for (skip_blanks(l); !take(l, '}'); skip_blanks(l)) {
		if (!skip_label(l))
			return false;
		skip_blanks(l);
		if (!take(l, ',') && (l->at >= l->end || *l->at != '}'))
			return false;
	}
	s->labels_size = (size_t)(l->at - 1 - s->labels);
	return true;
}

static bool read_number(struct line *l, double *value)
{
	char digits[NUMBER_MOST], *end;
	size_t size = 0;

	while (l->at < l->end && !is_blank(*l->at) && size + 1 < sizeof(digits))
		digits[size++] = *l->at++;
	digits[size] = '\0';
	/* strtod takes more: blanks before, hexadecimal, "nan(..)" */
	if (!size || strspn(digits, "0123456789+-.eEInfNa") != size)
		return false;
	*value = strtod(digits, &end);
	return !*end && (l->at >= l->end || is_blank(*l->at));
}

/* A time in milliseconds may follow, and in OpenMetrics "# {..} value". */
static bool read_rest(struct line *l)
{
	double ignored;

	skip_blanks(l);
	if (l->at < l->end && *l->at != '#' && !read_number(l, &ignored))
		return false;
	skip_blanks(l);
	return l->at >= l->end || *l->at == '#';
}

static bool read_sample(struct line *l, struct prometheus_sample *s)
{
	*s = (struct prometheus_sample){.name = l->at};
	s->name_size = read_name(l);
	if (!s->name_size)
		return false;
	skip_blanks(l);
	s->labels = l->at;
	if (take(l, '{') && !read_labels(l, s))
		return false;
	skip_blanks(l);
	return read_number(l, &s->value) && read_rest(l);
}

enum status prometheus_read(const char *text, size_t size,
			    void (*take_sample)(void *arg, const struct prometheus_sample *s), void *arg,
			    struct error *err)
{
	const char *at = text, *end = text + size;

	if (size > PROMETHEUS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "metrics: the text is larger than %d bytes",
				 PROMETHEUS_MOST);
	for (size_t number = 1; at < end; number++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct line l = {at, stop ? stop : end};
		struct prometheus_sample s;

		at = stop ? stop + 1 : end;
		if (l.end > l.at && l.end[-1] == '\r')
			l.end--;
		skip_blanks(&l);
		if (l.at == l.end || *l.at == '#')
			continue;
		if (!read_sample(&l, &s))
			return error_set(err, STATUS_BAD_INPUT,
					 "metrics: line %zu is no sample in Prometheus' text format", number);
		take_sample(arg, &s);
	}
	return STATUS_OK;
}
