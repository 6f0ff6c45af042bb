/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/timeline/clock_map.h"

enum { WIDE = 4 };
#define STEP_MAX (INT64_C(1) << 52) /* a larger difference is not a clock */

bool clock_map_add(struct clock_map *m, uint64_t before_ns, uint64_t foreign_ns, uint64_t after_ns)
{
	struct clock_pair *grown;

	if (after_ns < before_ns)
		return false;
	if (m->count == m->room) {
		grown = realloc(m->pair, (m->room * 2 + 16) * sizeof(*grown));
		if (!grown)
			return false;
		m->pair = grown;
		m->room = m->room * 2 + 16;
	}
	m->pair[m->count++] = (struct clock_pair){.foreign_ns = foreign_ns,
						  .own_ns = before_ns + (after_ns - before_ns) / 2,
						  .width_ns = after_ns - before_ns};
	return true;
}

static int by_width(const void *a_, const void *b_)
{
	const struct clock_pair *a = a_, *b = b_;

	return (a->width_ns > b->width_ns) - (a->width_ns < b->width_ns);
}

static int by_foreign(const void *a_, const void *b_)
{
	const struct clock_pair *a = a_, *b = b_;

	return (a->foreign_ns > b->foreign_ns) - (a->foreign_ns < b->foreign_ns);
}

static int64_t offset(const struct clock_pair *p)
{
	return (int64_t)(p->own_ns - p->foreign_ns);
}

/* Relative to the first pair, because the clock values have too many digits for a double. */
static double slope(const struct clock_map *m)
{
	double t = 0, y = 0, tt = 0, ty = 0, n = (double)m->count, x, d;

	for (size_t i = 0; i < m->count; i++) {
		x = (double)(m->pair[i].foreign_ns - m->pair[0].foreign_ns);
		d = (double)(int64_t)((uint64_t)offset(&m->pair[i]) - (uint64_t)offset(&m->pair[0]));
		t += x;
		y += d;
		tt += x * x;
		ty += x * d;
	}
	return n * tt - t * t > 0 ? (n * ty - t * y) / (n * tt - t * t) : 0;
}

void clock_map_fit(struct clock_map *m)
{
	uint64_t median;
	size_t kept = 0;

	m->last = 0;
	if (!m->count)
		return;
	qsort(m->pair, m->count, sizeof(*m->pair), by_width);
	median = m->pair[m->count / 2].width_ns;
	m->error_ns = m->pair[0].width_ns / 2;
	while (kept < m->count && m->pair[kept].width_ns / WIDE <= median)
		kept++;
	m->count = kept;
	qsort(m->pair, m->count, sizeof(*m->pair), by_foreign);
	m->drift = slope(m);
}

/* Index of the last pair at or before this time; the first pair if there is none. The search begins at the
 * last result. */
static size_t pair_before(struct clock_map *m, uint64_t foreign_ns)
{
	size_t low = 0, high = m->count;

	if (m->pair[m->last].foreign_ns <= foreign_ns &&
	    (m->last + 1 == m->count || m->pair[m->last + 1].foreign_ns > foreign_ns))
		return m->last;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (m->pair[middle].foreign_ns <= foreign_ns)
			low = middle;
		else
			high = middle;
	}
	return m->last = low;
}

bool clock_map_own(struct clock_map *m, uint64_t foreign_ns, uint64_t *own_ns)
{
	const struct clock_pair *a, *b;
	uint64_t shift;
	int64_t step;

	if (!m->count)
		return false;
	a = &m->pair[pair_before(m, foreign_ns)];
	b = a + 1 < m->pair + m->count ? a + 1 : a;
	shift = (uint64_t)offset(a);
	step = (int64_t)((uint64_t)offset(b) - shift);
	if (b->foreign_ns > a->foreign_ns && foreign_ns > a->foreign_ns && step > -STEP_MAX &&
	    step < STEP_MAX)
		shift += (uint64_t)(int64_t)((double)step * ((double)(foreign_ns - a->foreign_ns) /
							     (double)(b->foreign_ns - a->foreign_ns)));
	*own_ns = foreign_ns + shift;
	return (int64_t)*own_ns > 0;
}

void clock_map_release(struct clock_map *m)
{
	free(m->pair);
	*m = (struct clock_map){0};
}
