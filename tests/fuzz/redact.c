/* SPDX-License-Identifier: Apache-2.0 */
/* Words of any bytes, NUL between: what is planted as a secret behind them is in no answer, and no answer is
 * longer than it said. */
#include "fuzz.h"
#include "core/redact.h"

static void take(struct redact *r, const char *word)
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
	FUZZ_CHECK(!strstr(out, "Planted9Secret"));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const planted[] = {"--password=Planted9Secret", "API_KEY=Planted9Secret two",
					      "Authorization: Bearer Planted9Secret",
					      "https://me:Planted9Secret@host/x"};
	char *text = fuzz_text(data, size);
	struct redact r = {0};

	for (size_t at = 0; at < size && text[at];) {
		char *end = strchr(text + at, '\n'); /* a word a line */

		if (end)
			*end = '\0';
		take(&r, text + at);
		at = end ? (size_t)(end + 1 - text) : size;
	}
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++)
		take(&r, planted[i]);
	take(&r, "--token");
	take(&r, "Planted9Secret");
	free(text);
	return 0;
}
