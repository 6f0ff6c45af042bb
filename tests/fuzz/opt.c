/* SPDX-License-Identifier: Apache-2.0 */
/* "name=value" lines set options or are refused; what was taken has a canonical text that gives the same
 * value. */
#include "fuzz.h"

#include "core/input/opt.h"

static const char *const types[] = {"fp32", "bf16", "fp16", NULL};

struct sample {
	bool zeros;
	uint32_t type, count;
	uint64_t size;
	double seconds, ratio;
	const char *mode;
};

static const struct opt rows[] = {
	OPT_ROW(struct sample, zeros, .name = "zeros"),
	OPT_ROW(struct sample, type, .name = "type", .choices = types),
	OPT_ROW(struct sample, count, .name = "count", .preset = "3", .min = 1, .max = 100),
	OPT_ROW(struct sample, size, .name = "size", .unit = "B"),
	OPT_ROW(struct sample, seconds, .name = "seconds", .unit = "s", .min = 0, .max = 3600),
	OPT_ROW(struct sample, ratio, .name = "ratio"),
	OPT_ROW(struct sample, mode, .name = "mode", .preset = "fp32", .choices = types),
};
static const struct opt_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct sample)};

static void same(const struct sample *a, const struct sample *b)
{
	FUZZ_CHECK(a->zeros == b->zeros && a->type == b->type && a->count == b->count && a->size == b->size);
	FUZZ_CHECK(a->seconds == b->seconds && a->ratio == b->ratio && !strcmp(a->mode, b->mode));
	FUZZ_CHECK(a->count >= 1 && a->count <= 100 && a->seconds >= 0 && a->seconds <= 3600);
}

static void line(struct sample *v, char *text)
{
	char *equals = strchr(text, '=');
	struct error err = {0};
	struct sample before = *v, back;
	char canonical[256];
	size_t i;

	if (!equals)
		return;
	*equals = '\0';
	if (opt_set(&table, v, text, equals + 1, "input", &err)) {
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT && err.text[0]);
		same(v, &before);
		return;
	}
	FUZZ_CHECK(!opt_defaults(&table, &back, NULL));
	for (i = 0; i < table.count; i++) {
		opt_value_text(&rows[i], v, canonical, sizeof(canonical));
		FUZZ_CHECK(!opt_set(&table, &back, rows[i].name, canonical, "input", NULL));
	}
	same(v, &back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *at = text, *end;
	struct sample v;

	FUZZ_CHECK(!opt_defaults(&table, &v, NULL));
	while ((end = strchr(at, '\n'))) {
		*end = '\0';
		line(&v, at);
		at = end + 1;
	}
	line(&v, at);
	free(text);
	return 0;
}
