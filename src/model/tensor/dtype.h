/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: their words, their bytes, and to and from float. */
#ifndef MODEL_TENSOR_DTYPE_H
#define MODEL_TENSOR_DTYPE_H
#include "model/tensor/tensor.h"

const char *dtype_name(enum dtype dtype); /* "BF16", "Q4_1": for people. Never NULL */
const char *dtype_word(enum dtype dtype); /* safetensors' word, or "" */
bool dtype_of_word(enum dtype *out, const char *word);
bool dtype_of_ggml(enum dtype *out, uint32_t id);
/* Bytes of `count` elements: whole blocks. */
uint64_t dtype_bytes(enum dtype dtype, uint64_t count);
/* Fills t->size from type and dimensions. False: it does not fit 2^62 bytes, or rows are no whole blocks. */
bool dtype_measure(struct tensor *t);
/* Numbers that dtype_unpack makes floats of. The other types are known by size alone. */
bool dtype_unpacks(enum dtype dtype);
/* count: whole blocks. F64 is rounded. */
void dtype_unpack(enum dtype dtype, const void *from, float *to, size_t count);
/* To F32, BF16 or F16, to nearest even. False: another type. */
bool dtype_pack(enum dtype dtype, const float *from, void *to, size_t count);
/* F32, BF16, F16: neither NaN nor infinite. */
bool dtype_finite(enum dtype dtype, const void *data, size_t count);
#endif
