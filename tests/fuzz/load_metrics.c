/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are the metrics of a server, or a refusal that names a line. */
#include "fuzz.h"

#include <math.h>

#include "load/scrape/prometheus.h"

struct seen {
	const char *text, *end;
	size_t count;
};

static void look(void *arg, const struct prometheus_sample *s)
{
	struct seen *seen = arg;

	seen->count++;
	FUZZ_CHECK(s->name >= seen->text && s->name_size && s->name + s->name_size <= seen->end);
	FUZZ_CHECK(s->labels >= seen->text && s->labels + s->labels_size <= seen->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct load_scrape s;
	struct error err = {0}, again = {0};
	char *text = malloc(size ? size : 1); /* of exactly its size */
	struct seen seen = {text, text + size, 0};
	enum status st;

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	st = load_scrape_read(&s, text, size, &err);
	FUZZ_CHECK(st == STATUS_OK || (st == STATUS_BAD_INPUT && strstr(err.text, "metrics: ")));
	for (int r = 0; r < LOAD_READING_COUNT; r++)
		FUZZ_CHECK(!s.known[r] || (s.server && !st && !isnan(s.value[r])));
	FUZZ_CHECK(prometheus_read(text, size, look, &seen, &again) == st);
	FUZZ_CHECK(seen.count <= size);
	free(text);
	return 0;
}
