/* SPDX-License-Identifier: Apache-2.0 */
/* The precisions that `assay eval` compares. */
#ifndef CMD_EVAL_PRECISION_H
#define CMD_EVAL_PRECISION_H
#include "engine/load/load.h"

/* name, devices, weights in E4M3, cache in E4M3, weights in F32, description */
/* clang-format off */
#define EVAL_PRECISIONS(X)                                                                                   \
	X(BF16, "bf16", EVAL_GPU, false, false, false, "BF16 weights and cache")                             \
	X(FILE, "file", EVAL_CPU, false, false, false, "weights as in the file, F32 cache")                  \
	X(F32, "f32", EVAL_CPU, false, false, true, "weights converted to F32, F32 cache")                   \
	X(FP8_CACHE, "fp8-cache", EVAL_CPU | EVAL_GPU, false, true, false, "KV cache in E4M3")               \
	X(FP8_WEIGHTS, "fp8-weights", EVAL_GPU, true, false, false, "the layers' matrices in E4M3")          \
	X(FP8, "fp8", EVAL_GPU, true, true, false, "the layers' matrices and the KV cache in E4M3")
/* clang-format on */
enum { EVAL_CPU = 1, EVAL_GPU = 2 };
#define X(name, ...) EVAL_##name,
enum eval_precision { EVAL_PRECISIONS(X) EVAL_PRECISION_COUNT };
#undef X

struct eval_precision_row {
	const char *name;
	unsigned devices; /* EVAL_CPU, EVAL_GPU */
	bool weights_e4m3, cache_e4m3, weights_f32;
	const char *text;
};
extern const struct eval_precision_row eval_precisions[EVAL_PRECISION_COUNT];

/* The list of --precisions, in its order. count 0: auto. */
struct eval_precision_list {
	enum eval_precision at[EVAL_PRECISION_COUNT];
	size_t count;
};
/* Reads "auto" or names with commas between. BAD_INPUT: an unknown name, or one that is given twice. */
enum status eval_precisions_read(struct eval_precision_list *list, const char *text, struct error *err);
/* The device that the list needs, if `device` is AUTO. BAD_INPUT names a precision that does not exist on the
 * device, or two that exist on no common one. */
enum status eval_precisions_device(const struct eval_precision_list *list, enum load_device *device,
				   struct error *err);
/* The list that auto means. The first one is the reference. */
struct eval_precision_list eval_precisions_auto(bool gpu);
#endif
