/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tensor/arena.h"
#include "model/tensor/dtype.h"

const char *memory_kind_name(enum memory_kind kind)
{
	static const char *const names[] = {
#define X(name, word, text) [MEM_##name] = word,
		MEMORY_KINDS(X)
#undef X
	};

	return names[kind];
}

const char *memory_kind_text(enum memory_kind kind)
{
	static const char *const texts[] = {
#define X(name, word, text) [MEM_##name] = text,
		MEMORY_KINDS(X)
#undef X
	};

	return texts[kind];
}

static void count(struct arena *a, enum memory_kind kind, size_t size)
{
	a->used += size;
	a->kind_used[kind] += size;
	if (a->kind_used[kind] > a->kind_peak[kind])
		a->kind_peak[kind] = a->kind_used[kind];
	if (a->used <= a->peak)
		return;
	a->peak = a->used;
	memcpy(a->kind_at_peak, a->kind_used, sizeof(a->kind_at_peak));
}

enum status arena_mat(struct arena *a, enum memory_kind kind, struct mat *m, const char *name,
		      struct error *err)
{
	int64_t elements;
	size_t size;

	if (__builtin_mul_overflow(m->rows, m->cols, &elements) || elements < 0 ||
	    elements > (INT64_MAX >> 1) / (int64_t)sizeof(double))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %lld x %lld elements are too large for any memory", name,
				 (long long)m->rows, (long long)m->cols);
	size = (dtype_bytes(m->dtype, (uint64_t)elements) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (a->base && size > a->size - a->used)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%s needs %zu bytes, but only %zu of the block's %zu are free", name,
				       size, a->size - a->used, a->size);
	m->ld = m->cols;
	m->data = a->base ? a->base + a->used : NULL;
	count(a, kind, size);
	return STATUS_OK;
}

struct arena_mark arena_mark(const struct arena *a)
{
	struct arena_mark mark = {.used = a->used};

	memcpy(mark.kind_used, a->kind_used, sizeof(mark.kind_used));
	return mark;
}

void arena_reset(struct arena *a, const struct arena_mark *mark)
{
	a->used = mark->used;
	memcpy(a->kind_used, mark->kind_used, sizeof(a->kind_used));
}
