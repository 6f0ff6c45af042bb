/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/peft/pattern.h"
#include <ctype.h>
#include <regex.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "core/error.h"

/* glibc copies what is before each "+", so nested ones double the memory. */
enum { PATTERNS_MOST = 8192, KEY_MOST = 256, PLUS_MOST = 8, EXPRESSION = 6 * KEY_MOST + 16 };

struct peft_pattern {
	regex_t expression;
	double value;
};

struct peft_patterns {
	size_t count; /* compiled so far */
	struct peft_pattern pattern[];
};

/* "^(.*\.)?(KEY)$" in POSIX's syntax. False: KEY has a part that Python and POSIX read differently. */
static bool translate(const char *key, char out[EXPRESSION])
{
	bool set = false;
	size_t n = 0;
	int plus = 0;

	n += (size_t)snprintf(out, EXPRESSION, "^(.*\\.)?(");
	for (const char *c = key; *c; c++) {
		if (*c == '[' && set)
			return false; /* POSIX has classes in brackets */
		set = *c == '[' || (set && *c != ']');
		plus += *c == '+';
		if (plus > PLUS_MOST || *c == '{' || !isprint((unsigned char)*c) ||
		    (*c == '(' && c[1] == '?'))
			return false;
		if (*c != '\\') {
			out[n++] = *c;
			continue;
		}
		c++;
		if (set || (*c != 'd' && !ispunct((unsigned char)*c)))
			return false;
		if (*c == 'd')
			n += (size_t)snprintf(out + n, EXPRESSION - n, "[0-9]");
		else
			n += (size_t)snprintf(out + n, EXPRESSION - n, "\\%c", *c);
	}
	snprintf(out + n, EXPRESSION - n, ")$");
	return true;
}

static enum status add(struct peft_patterns *p, const struct json_keys *r, const char *key, const char *name,
		       const json_t *value)
{
	const double number = json_is_number(value) ? json_number_value(value) : 0;
	char expression[EXPRESSION];

	if (!(number > 0 && number <= 1e9))
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s of %.100s is not a number above 0",
				 r->path, key, name);
	if (strlen(name) > KEY_MOST || !translate(name, expression) ||
	    regcomp(&p->pattern[p->count].expression, expression, REG_EXTENDED | REG_NOSUB))
		return error_set(r->err, STATUS_UNSUPPORTED,
				 "%s: %s has the pattern %.100s; supported are names, alternatives, sets, "
				 "repetition by * + ? and \\d",
				 r->path, key, name);
	p->pattern[p->count++].value = number;
	return STATUS_OK;
}

enum status peft_patterns_read(struct peft_patterns **out, const struct json_keys *r, const char *key)
{
	const json_t *map = json_keys_value(r, key), *value;
	const size_t count = json_object_size(map);
	const char *name;
	enum status st = STATUS_OK;

	*out = NULL;
	if (!map || json_is_null(map) || (json_is_object(map) && !count))
		return STATUS_OK;
	if (!json_is_object(map) || count > PATTERNS_MOST)
		return error_set(r->err, STATUS_BAD_INPUT, "%s: %s is not a map with at most %d entries",
				 r->path, key, PATTERNS_MOST);
	*out = calloc(1, sizeof(**out) + count * sizeof((*out)->pattern[0]));
	if (!*out)
		return error_set_cause(r->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: no memory", r->path);
	json_object_foreach((json_t *)map, name, value)
	{
		if (!st)
			st = add(*out, r, key, name, value);
	}
	if (st)
		peft_patterns_free(out);
	return st;
}

void peft_patterns_free(struct peft_patterns **patterns)
{
	struct peft_patterns *p = *patterns;

	for (size_t i = 0; p && i < p->count; i++)
		regfree(&p->pattern[i].expression);
	free(p);
	*patterns = NULL;
}

double peft_patterns_find(const struct peft_patterns *p, const char *module, double otherwise)
{
	for (size_t i = 0; p && i < p->count; i++)
		if (!regexec(&p->pattern[i].expression, module, 0, NULL, 0))
			return p->pattern[i].value;
	return otherwise;
}
