/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/precision.h"
#include <string.h>

const struct eval_precision_row eval_precisions[EVAL_PRECISION_COUNT] = {
#define X(name, ...) [EVAL_##name] = {__VA_ARGS__},
	EVAL_PRECISIONS(X)
#undef X
};

static enum status add(struct eval_precision_list *list, const char *name, size_t size, struct error *err)
{
	size_t i = 0;

	while (i < EVAL_PRECISION_COUNT &&
	       (strlen(eval_precisions[i].name) != size || strncmp(eval_precisions[i].name, name, size)))
		i++;
	if (i == EVAL_PRECISION_COUNT)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--precisions: unknown precision '%.*s'; use auto, or names from bf16, file, f32, "
			"fp8-cache, fp8-weights and fp8 with commas between",
			(int)(size < 40 ? size : 40), name);
	for (size_t k = 0; k < list->count; k++)
		if (list->at[k] == i)
			return error_set(err, STATUS_BAD_INPUT, "--precisions: %s is given twice",
					 eval_precisions[i].name);
	list->at[list->count++] = (enum eval_precision)i;
	return STATUS_OK;
}

enum status eval_precisions_read(struct eval_precision_list *list, const char *text, struct error *err)
{
	enum status st = STATUS_OK;

	*list = (struct eval_precision_list){0};
	if (!strcmp(text, "auto"))
		return STATUS_OK;
	for (const char *at = text; !st; at++) {
		const size_t size = strcspn(at, ",");

		st = add(list, at, size, err);
		at += size;
		if (!*at)
			break;
	}
	return st;
}

static const char *device_names(unsigned devices)
{
	return devices == EVAL_CPU ? "a CPU" : "a GPU";
}

enum status eval_precisions_device(const struct eval_precision_list *list, enum load_device *device,
				   struct error *err)
{
	unsigned left = *device == LOAD_CPU ? EVAL_CPU : *device == LOAD_GPU ? EVAL_GPU : EVAL_CPU | EVAL_GPU;
	const char *by = "--device";

	for (size_t i = 0; i < list->count; i++) {
		const struct eval_precision_row *p = &eval_precisions[list->at[i]];

		if (!(left & p->devices))
			return error_set(err, STATUS_BAD_INPUT,
					 "the precision %s exists only on %s, but %s asks for %s", p->name,
					 device_names(p->devices), by, device_names(left));
		if ((left & p->devices) != left)
			by = p->name;
		left &= p->devices;
	}
	if (left != (EVAL_CPU | EVAL_GPU))
		*device = left == EVAL_CPU ? LOAD_CPU : LOAD_GPU;
	return STATUS_OK;
}

struct eval_precision_list eval_precisions_auto(bool gpu)
{
	return gpu ? (struct eval_precision_list){{EVAL_BF16, EVAL_FP8_CACHE, EVAL_FP8_WEIGHTS, EVAL_FP8}, 4}
		   : (struct eval_precision_list){{EVAL_FILE, EVAL_FP8_CACHE}, 2};
}
