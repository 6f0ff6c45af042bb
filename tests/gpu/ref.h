/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C reference of each kernel, by entry name: it takes the kernel's own argument struct with host
 * addresses in it. The case table compares kernels with these; the fake driver runs them in the kernels'
 * place.
 */
#ifndef TESTS_GPU_REF_H
#define TESTS_GPU_REF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ref_grid {
	unsigned blocks, threads;
};

/* A file's rows: the entry's name, or its start where versions share a reference ("copy_"). */
struct ref_row {
	const char *entry;
	void (*run)(const char *entry, struct ref_grid grid, const void *args);
	size_t args_size;
	size_t out; /* where in args the output's address stands; REF_NO_OUT: it has none */
};
#define REF_NO_OUT SIZE_MAX
/* NULL: no reference of that name. */
const struct ref_row *ref_find(const char *entry);
/* False: no reference of that name. */
bool ref_run(const char *entry, struct ref_grid grid, const void *args);

extern const struct ref_row ref_attention_backward[], ref_attention_lists[], ref_attention_own[],
	ref_attention_sparse[], ref_bnb4[], ref_collective[], ref_memory[], ref_data[], ref_decode[], ref_hbm[],
	ref_link[], ref_operand[], ref_paged[], ref_skinny[], ref_step_rows[], ref_step_sample[],
	ref_train_attention[], ref_train_attention_f32[], ref_train_fp8[], ref_train_flat[], ref_train_loss[],
	ref_train_loss_f32[], ref_train_norm[], ref_train_norm_f32[], ref_train_rows[],
	ref_train_rows_f32[], ref_train_states[]; /* NULL ends */

/* Pieces that cases use by themselves. */
int ref_integer(uint64_t seed, uint32_t stream, uint64_t i);
uint64_t ref_permutation(uint64_t i, uint64_t count, uint64_t seed);
uint64_t ref_hash(const uint32_t *words, uint64_t count);
/* Element i of an array of kernel/test_data/gemm.h's type. */
void ref_operand_put(uint32_t type, void *out, uint64_t i, double v);
double ref_operand_get(uint32_t type, const void *in, uint64_t i);
/* out[i * out_step] = element first + i * step of `in`, i below count. */
void ref_operand_get_line(uint32_t type, const void *in, uint64_t first, uint64_t step, uint64_t count, double *out,
			  uint64_t out_step);
/* Element first + i of `out` = v[i], i below count. */
void ref_operand_put_line(uint32_t type, void *out, uint64_t first, uint64_t count, const double *v);
uint64_t ref_hbm_pattern(uint32_t pattern, uint64_t address, uint64_t seed);
#endif
