/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vendor tables against the vendors' own headers, where the build machine has them: a row with a wrong parameter,
 * or a constant with a wrong value, does not compile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#ifdef HAVE_CUDA_H
#define __CUDA_API_VERSION_INTERNAL 1 /* every version of each function, not the newest alone */
#include <cuda.h>
#endif
#include "vendor/cuda.h"

#ifdef HAVE_CUDA_H
#define X(need, ret, field, symbol, params)                                                                \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct cuda *)0)->field), __typeof__(&symbol)), \
		       #symbol);
CUDA_FUNCTIONS(X)
#undef X
#define X(name, value, status, cause) _Static_assert((int)name == value, #name);
CUDA_RESULTS(X)
#undef X
#define X(name, value) _Static_assert((int)name == value, #name);
CUDA_ATTRIBUTES(X)
CUDA_CONSTANTS(X)
#undef X
#endif

static void test_vendor_headers__cuda_rows_are_the_headers(void **state)
{
	(void)state;
#ifndef HAVE_CUDA_H
	skip(); /* no cuda.h on this machine */
#endif
	assert_int_equal(cuda_lib.table_size, cuda_lib.symbol_count * sizeof(void (*)(void)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vendor_headers__cuda_rows_are_the_headers),
	};

	return cmocka_run_group_tests_name("vendor_headers", tests, NULL, NULL);
}
