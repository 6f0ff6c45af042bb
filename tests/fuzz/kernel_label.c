/* SPDX-License-Identifier: Apache-2.0 */
/* The label of any name is clean UTF-8 and no wider than was asked; the one name twice in a table is told
 * apart. */
#include "fuzz.h"
#include "core/text/utf8.h"
#include "profile/page/kernel_label.h"

/* Characters; all of them may be shown. */
static size_t count_clean(const char *s)
{
	size_t size, n = 0;

	for (uint32_t code; (code = utf8_decode(s, &size)) || size; s += size, n++) {
		FUZZ_CHECK(!utf8_is_control(code));
		FUZZ_CHECK(code != UTF8_REPLACEMENT || size == 3);
	}
	return n;
}

static void check_label(const char *name, size_t width)
{
	struct text label = {0};

	kernel_label(&label, name, width);
	FUZZ_CHECK(!label.failed && !*name == !label.size);
	FUZZ_CHECK(count_clean(text_str(&label)) <= width);
	text_release(&label);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = fuzz_text(data, size);
	struct kernel_labels all = {0};
	const char *first, *second;

	check_label(name, 16);
	check_label(name, KERNEL_LABEL_WIDTH);
	first = kernel_labels_add(&all, name, KERNEL_LABEL_WIDTH);
	second = kernel_labels_add(&all, name, KERNEL_LABEL_WIDTH);
	FUZZ_CHECK(first && second && strcmp(first, second) != 0);
	FUZZ_CHECK(!strncmp(first, second, strlen(first)) && !strcmp(second + strlen(first), " #2"));
	kernel_labels_release(&all);
	free(name);
	return 0;
}
