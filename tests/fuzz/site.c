/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a site file, which a run keeps, and as --expect: understood, and then written as one that says the same; or
 * refused with the place. */
#include "folder.h"

#include "cmd/shared/checked_expectations.h"
#include "core/text/text.h"
#include "judge/expect/site.h"

static bool same(const struct site *a, const struct site *b)
{
	if (a->gpus_count != b->gpus_count || a->nvlinks != b->nvlinks || a->stated != b->stated)
		return false;
	for (size_t i = 0; i < a->gpus_count; i++)
		if (strcmp(a->gpus[i].sku, b->gpus[i].sku) || a->gpus[i].count != b->gpus[i].count)
			return false;
	return true;
}

static void check(const struct judge_site *from, const struct expectations *e)
{
	struct error err = {0};
	struct text text = {0};
	struct site site, again;
	enum status st = site_read(&site, from, e, &err);

	FUZZ_CHECK(st == err.status && (st == STATUS_OK || st == STATUS_BAD_INPUT));
	FUZZ_CHECK(!st || *err.text);
	if (st)
		return;
	FUZZ_CHECK(!judge_site_text(&text, from, e, &err));
	if (text.size) {
		const struct judge_site kept = {.file = fuzz_path("kept.yaml")};

		fuzz_write("kept.yaml", (const uint8_t *)text.data, text.size);
		FUZZ_CHECK(!site_read(&again, &kept, e, &err));
		FUZZ_CHECK(same(&site, &again));
	}
	text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct expectations *e;
	char *text, path[256];
	struct error err = {0};

	if (size > 8192)
		return 0;
	if (!e)
		FUZZ_CHECK(!checked_expectations_load(&e, NULL, &err));
	text = fuzz_text(data, size);
	fuzz_write("site.yaml", data, size);
	snprintf(path, sizeof(path), "%s", fuzz_path("site.yaml"));
	check(&(struct judge_site){.file = path}, e);
	check(&(struct judge_site){.expect = text}, e);
	free(text);
	return 0;
}
