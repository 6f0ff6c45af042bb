/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a loop of a fake library for several vector widths; the right one is selected when the library is
 * loaded. The sums keep their order and no product is fused with a sum, so each width has the same bits. TSan
 * is not ready for the selecting code at that time, so its builds do without.
 */
#ifndef TESTS_FAKE_VECTOR_H
#define TESTS_FAKE_VECTOR_H
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTOR
#endif
#endif
