/* SPDX-License-Identifier: Apache-2.0 */
/* Words of any bytes, one a line. No answer is longer than it said. Each line is also a part of planted words:
 * the front of a password, of a token and of the name of an option. What is planted is in no answer. */
#include "fuzz.h"
#include "core/text/redact.h"
#include <ctype.h>

#define PLANTED "Planted9Secret"

/* The answer, which the caller frees. */
static char *take(struct redact *r, const char *word)
{
	struct redact twice = *r;
	char cut[16], *out;
	size_t size = redact_word(&twice, NULL, 0, word);

	out = malloc(size + 1);
	FUZZ_CHECK(out != NULL);
	twice = *r;
	redact_word(&twice, cut, sizeof(cut), word);
	FUZZ_CHECK(strlen(cut) < sizeof(cut));
	FUZZ_CHECK(redact_word(r, out, size + 1, word) == size && strlen(out) == size);
	return out;
}

static void hides(struct redact *r, const char *word)
{
	char *out = take(r, word);

	FUZZ_CHECK(!strstr(out, PLANTED));
	free(out);
}

static void hides_with(struct redact *r, const char *before, const char *part, const char *behind)
{
	size_t size = strlen(before) + strlen(part) + strlen(behind) + 1;
	char *word = malloc(size);

	FUZZ_CHECK(word != NULL);
	snprintf(word, size, "%s%s%s", before, part, behind);
	hides(r, word);
	free(word);
}

static bool is_part_of_name(const char *part)
{
	for (; *part; part++)
		if (!isalnum((unsigned char)*part) && *part != '-' && *part != '_' && *part != '.')
			return false;
	return true;
}

/* `part` is any line. What it may not hold is what ends a password, a value or a name. */
static void plant(const char *part)
{
	struct redact r = {0};

	if (!strncmp(part, "--", 2) || strstr(part, PLANTED)) /* the name of an option is shown */
		return;
	hides(&r, "--token");
	hides_with(&r, "", part, PLANTED);
	hides(&r, "--key");
	hides_with(&r, "", part, PLANTED);
	hides_with(&r, "key=", part, PLANTED);
	hides(&r, "mysql");
	if (!strchr(" \t\r", *part) || !*part) /* a blank: the option has no value */
		hides_with(&r, "-p", part, PLANTED);
	if (!strpbrk(part, " \t\n\r\"'"))
		hides_with(&r, "ftp://u:", part, PLANTED "@h");
	if (is_part_of_name(part)) {
		hides_with(&r, "--secret_", part, "=" PLANTED);
		hides_with(&r, "curl --secret_", part, " " PLANTED);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const planted[] = {"--password=" PLANTED, "API_KEY=" PLANTED " two",
					      "Authorization: Bearer " PLANTED, "https://me:" PLANTED "@host/x",
					      "key=\"" PLANTED "\""};
	char *text = fuzz_text(data, size);
	struct redact r = {0};

	for (size_t at = 0; at < size && text[at];) {
		char *end = strchr(text + at, '\n');

		if (end)
			*end = '\0';
		free(take(&r, text + at));
		plant(text + at);
		at = end ? (size_t)(end + 1 - text) : size;
	}
	r = (struct redact){0};
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++)
		hides(&r, planted[i]);
	free(text);
	return 0;
}
