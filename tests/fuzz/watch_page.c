/* SPDX-License-Identifier: Apache-2.0 */
/* Any lines as a stream, and the pages of the state that they make: each line of a page has its form, and no series appears
 * twice. */
#include "fuzz.h"

#include <ctype.h>
#include <math.h>

#include "watch/page/page.h"

enum { SERIES_MOST = 100000 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:";

/* Moves behind labels in braces. */
static const char *skip_labels(const char *p)
{
	if (*p != '{')
		return p;
	do {
		size_t size = strspn(++p, letters);

		FUZZ_CHECK(size && !strncmp(p + size, "=\"", 2));
		for (p += size + 2; *p != '"'; p++) {
			FUZZ_CHECK((unsigned char)*p >= 0x20);
			if (*p == '\\') {
				p++;
				FUZZ_CHECK(*p == '\\' || *p == '"' || *p == 'n');
			}
		}
		p++;
	} while (*p == ',');
	FUZZ_CHECK(*p == '}');
	return p + 1;
}

static void check_series(const char *line, size_t size)
{
	const char *p = line + strspn(line, letters);
	char *end;

	FUZZ_CHECK(p > line && !isdigit((unsigned char)*line));
	p = skip_labels(p);
	FUZZ_CHECK(*p == ' ');
	FUZZ_CHECK(isfinite(strtod(p + 1, &end)) && end == line + size);
}

static int by_text(const void *a, const void *b)
{
	char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Cuts the page into lines. */
static void check_page(char *page)
{
	static char *series[SERIES_MOST];
	size_t count = 0;

	for (char *line = page, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		FUZZ_CHECK(end);
		*end = '\0';
		if (*line == '#')
			continue;
		check_series(line, (size_t)(end - line));
		*strrchr(line, ' ') = '\0';
		FUZZ_CHECK(count < SERIES_MOST);
		series[count++] = line;
	}
	qsort(series, count, sizeof(*series), by_text);
	for (size_t i = 1; i < count; i++)
		FUZZ_CHECK(strcmp(series[i - 1], series[i]) != 0);
}

static void check_pages(const struct watch_state *s)
{
	for (int format = 0; format < PAGE_FORMATS; format++)
		for (int names = PAGE_NAMES_ASSAY; names <= PAGE_NAMES_BOTH; names++) {
			const struct page_spec spec = {.names = (enum page_names)names, .local_ns = 1};
			struct page_own own = {0};
			struct text out = {0};

			page_write(&out, (enum page_format)format, s, &spec, &own);
			FUZZ_CHECK(!out.failed && out.data);
			FUZZ_CHECK(*page_own_get(&own, CATALOGUE_EXPORTER_SERIES) <= (double)page_series_most(64) * 8);
			check_page(out.data);
			text_release(&out);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct watch_state s = {0};
	char *text, *line, *end;

	if (size > 65536)
		return 0;
	text = fuzz_text(data, size);
	for (line = text; *line; line = end + (*end == '\n')) {
		struct error err = {0};

		end = line + strcspn(line, "\n");
		watch_state_line(&s, line, (size_t)(end - line), &err);
	}
	check_pages(&s);
	watch_state_release(&s);
	free(text);
	return 0;
}
