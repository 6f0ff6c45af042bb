/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: their names, their sizes, and conversions from and to float. */
#ifndef MODEL_TENSOR_DTYPE_H
#define MODEL_TENSOR_DTYPE_H
#include "model/tensor/tensor.h"

const char *dtype_name(enum dtype dtype); /* "BF16", "Q4_1", for users; never NULL */
const char *dtype_word(enum dtype dtype); /* name in safetensors, or "" */
bool dtype_of_word(enum dtype *out, const char *word);
bool dtype_of_ggml(enum dtype *out, uint32_t id);
/* Bytes of `count` elements, which must be whole blocks. */
uint64_t dtype_bytes(enum dtype dtype, uint64_t count);
/* Sets t->size from type and dimensions. False: more than 2^62 bytes, or rows that are not whole blocks. */
bool dtype_measure(struct tensor *t);
/* Whether dtype_unpack supports the type. For other types only the size is known. */
bool dtype_unpacks(enum dtype dtype);
/* Converts to float. `count` must be whole blocks. F64 is rounded. */
void dtype_unpack(enum dtype dtype, const void *from, float *to, size_t count);
/* Converts to F32, BF16 or F16, rounding to nearest even. False: another type. */
bool dtype_pack(enum dtype dtype, const float *from, void *to, size_t count);
/* For F32, BF16 and F16: whether there is neither NaN nor infinity. */
bool dtype_finite(enum dtype dtype, const void *data, size_t count);
#endif
