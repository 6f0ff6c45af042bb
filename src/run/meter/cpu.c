/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU meter. It reads the clock around each batch, so a sample is known when the call returns. */
#include "run/meter/meter.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include "core/math/add_chain.h"
#include "core/file/file.h"

enum {
	RAMP_ADDS = 1 << 20,  /* dependent adds per block: about 0.3 ms */
	RAMP_BLOCKS = 8,      /* this many blocks without a new best: the clock is up */
	STAMP_ADDS = 1 << 16, /* about 20 us per block */
	STAMP_BLOCKS = 6,
	LOOKS = 64, /* reads of the clock, to measure the time of one */
};

static uint64_t now(const struct meter *m)
{
	return clock_now_ns(m->clock);
}

/* CPU time of the engine's threads, or of the whole process if the engine does not count it. A test's own
 * clock has no CPU time. */
static bool cpu_time(const struct meter *m, uint64_t *ns)
{
	struct timespec t;

	if (m->engine->cpu_time_ns) {
		*ns = m->engine->cpu_time_ns(m->state);
		return true;
	}
	if (m->clock != clock_monotonic() || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t))
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

static enum status align(const struct meter *m, struct error *err)
{
	return m->engine->align ? m->engine->align(m->state, err) : STATUS_OK;
}

static enum status once(struct meter *m, double *ns, struct error *err)
{
	enum status st = align(m, err);
	uint64_t t0 = now(m);

	if (!st)
		st = m->engine->enqueue(m->state, m->next++, err);
	*ns = (double)(now(m) - t0);
	return st;
}

/* No counter shows the clock without special rights, so the spin measures it: the clock is up when blocks no
 * longer get faster. */
static enum status ramp(struct meter *m, uint64_t limit_ns, bool *reached, struct error *err)
{
	uint64_t t0 = now(m), t = t0, best = UINT64_MAX;
	unsigned since_best = 0;

	(void)err;
	while (since_best < RAMP_BLOCKS && t - t0 < limit_ns) {
		uint64_t ended, took;

		add_chain(1, 3, RAMP_ADDS);
		ended = now(m);
		took = ended - t;
		t = ended;
		since_best = best == UINT64_MAX || (double)took < 0.99 * (double)best ? 0 : since_best + 1;
		best = took < best ? took : best;
	}
	*reached = since_best >= RAMP_BLOCKS;
	return STATUS_OK;
}

/* The eighth number of the first line of /proc/stat. A test's own clock has no steal time. */
static bool steal(const struct meter *m, uint64_t *ns)
{
	long ticks = sysconf(_SC_CLK_TCK);
	char *text;
	size_t size;
	unsigned long long stolen;
	bool told = false;

	if (m->clock != clock_monotonic() || ticks <= 0 ||
	    file_read(&text, &size, "/proc/stat", 1 << 20, NULL))
		return false;
	told = sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) == 1;
	free(text);
	*ns = told ? stolen * (1000000000u / (unsigned long)ticks) : 0;
	return told;
}

/* Measures the clock after the window: the fastest of a few chains of dependent adds, one add per cycle. A
 * core that wide vectors had slowed may have recovered by then, so the clock inside the window can have been
 * lower. */
static void stamp(const struct meter *m, struct window *w)
{
	uint64_t best = UINT64_MAX, t = now(m);

	for (unsigned i = 0; i < STAMP_BLOCKS; i++) {
		uint64_t ended, took;

		add_chain(1, 3, STAMP_ADDS);
		ended = now(m);
		took = ended - t;
		t = ended;
		best = took < best ? took : best;
	}
	w->has_clock = m->clock == clock_monotonic() && best > 0;
	if (w->has_clock)
		w->clock_hz = STAMP_ADDS / ((double)best * 1e-9);
}

static enum status begin(struct meter *m, struct window *w, struct error *err)
{
	(void)err;
	m->window = w;
	w->has_steal = w->stamp && steal(m, &w->steal_ns);
	w->has_cpu_time = cpu_time(m, &w->cpu_time_ns);
	w->t0_ns = now(m);
	return STATUS_OK;
}

static enum status sample(struct meter *m, uint64_t batch, struct error *err)
{
	const struct engine *e = m->engine;
	struct window *w = m->window;
	enum status st = align(m, err);
	uint64_t t0 = now(m), t1;

	for (uint64_t i = 0; i < batch && !st; i++) {
		st = e->enqueue(m->state, m->next, err);
		if (!st && w->check && e->enqueue_check)
			st = e->enqueue_check(m->state, m->next, err);
		m->next += !st;
	}
	if (st)
		return st;
	t1 = now(m);
	window_add(w, (double)(t1 - t0), (double)(t1 - w->t0_ns), batch);
	return STATUS_OK;
}

/* Time of one read of the clock. */
static double look_ns(const struct meter *m)
{
	uint64_t t0 = now(m), t = t0;

	for (unsigned i = 0; i < LOOKS; i++)
		t = now(m);
	return (double)(t - t0) / LOOKS;
}

/* Runs single iterations in a row, with one read of the clock between two. Ranks that met before each
 * iteration would be timed while they leave the barrier. */
static enum status singles(struct meter *m, uint64_t count, struct error *err)
{
	struct window *w = m->window;
	enum status st = align(m, err);
	uint64_t last;

	if (!w->has_mark)
		w->mark_ns = look_ns(m);
	w->has_mark = true;
	last = now(m);
	for (uint64_t i = 0; i < count && !st; i++) {
		uint64_t ended;

		st = m->engine->enqueue(m->state, m->next, err);
		if (st)
			return st;
		m->next++;
		ended = now(m);
		window_add(w, (double)(ended - last), (double)(ended - w->t0_ns), 1);
		last = ended;
	}
	return st;
}

static enum status drain(struct meter *m, struct error *err)
{
	(void)m, (void)err;
	return STATUS_OK;
}

static enum status end(struct meter *m, struct error *err)
{
	struct window *w = m->window;
	uint64_t used;

	(void)err;
	w->t1_ns = now(m);
	if (w->has_cpu_time && cpu_time(m, &used))
		w->cpu_time_ns = used - w->cpu_time_ns;
	if (w->stamp && m->clock == clock_monotonic())
		stamp(m, w);
	if (w->has_steal && steal(m, &used))
		w->steal_ns = used - w->steal_ns;
	m->window = NULL;
	return STATUS_OK;
}

static void destroy(struct meter *m)
{
	free(m);
}

static const struct meter_ops ops = {
	.name = "cpu",
	.once = once,
	.ramp = ramp,
	.begin = begin,
	.sample = sample,
	.singles = singles,
	.drain = drain,
	.end = end,
	.destroy = destroy,
};

enum status meter_cpu_create(struct meter **out, const struct meter_spec *spec, struct error *err)
{
	struct meter *m = malloc(sizeof(*m));

	*out = m;
	if (!m)
		return error_errno(err, ENOMEM, "a meter");
	*m = (struct meter){
		.ops = &ops,
		.engine = spec->engine,
		.state = spec->state,
		.bench = spec->bench,
		.clock = spec->clock,
		.depth = 1,
	};
	return STATUS_OK;
}
