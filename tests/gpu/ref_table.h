/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a narrow format by their codes, each decoded once: references read them by the million. */
#ifndef TESTS_GPU_REF_TABLE_H
#define TESTS_GPU_REF_TABLE_H
#include <stdatomic.h>
#include <stdint.h>

enum { REF_TABLE_EMPTY, REF_TABLE_BEING_FILLED, REF_TABLE_FULL };
struct ref_table {
	atomic_int state; /* REF_TABLE_.. */
	double number[1 << 16];
};

/* decode(type, code), one of `count` codes. Threads that come while another one fills the table decode for themselves. */
static inline double ref_table_number(struct ref_table *t, uint32_t count, uint32_t code,
				      double (*decode)(unsigned type, uint32_t code), unsigned type)
{
	int empty = REF_TABLE_EMPTY;

	if (atomic_load_explicit(&t->state, memory_order_acquire) == REF_TABLE_FULL)
		return t->number[code];
	if (atomic_compare_exchange_strong(&t->state, &empty, REF_TABLE_BEING_FILLED)) {
		for (uint32_t c = 0; c < count; c++)
			t->number[c] = decode(type, c);
		atomic_store_explicit(&t->state, REF_TABLE_FULL, memory_order_release);
	}
	return decode(type, code);
}
#endif
