/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of probe peak: allocation, iterations and checks. Each stream is divided into as many parts as
 * there are streams. One iteration covers one part of each stream, so that iterations of all mixes move about
 * the same number of bytes.
 */
#include "probe/peak/cpu_state.h"

/* Streams start at different offsets within their pages. At the same offset they would use the same cache
 * sets and DRAM banks. */
enum { SHIFT_WORDS = (4096 + 64) / 8, GRAIN = 512 };

static void share(const struct peak_cpu *s, unsigned part, unsigned thread, uint64_t *first, uint64_t *last)
{
	cpu_share(s->stream.part, GRAIN, thread, s->threads, first, last);
	*first += part * s->stream.part;
	*last += part * s->stream.part;
}

static const uint64_t *from(const uint64_t *stream, uint64_t first)
{
	return stream ? stream + first : NULL;
}

static void iterate(void *arg, unsigned thread)
{
	struct peak_cpu *s = arg;
	struct peak_stream_state *r = &s->stream;
	uint64_t first, last;

	share(s, r->at, thread, &first, &last);
	s->slot[thread].sum = r->loop(from(r->in[0], first), from(r->in[1], first),
				      r->out ? r->out + first : NULL, last - first);
}

void peak_stream_run(struct peak_cpu *s)
{
	struct peak_stream_state *r = &s->stream;

	r->at = (r->at + 1) % r->parts;
	cpu_pool_run(s->pool, iterate, s);
	r->done++;
}

/* -- check -- */

static void poison_work(void *arg, unsigned thread)
{
	struct peak_cpu *s = arg;
	uint64_t first, last;

	s->slot[thread].sum = ~s->slot[thread].sum;
	for (unsigned part = 0; s->stream.out && part < s->stream.parts; part++) {
		share(s, part, thread, &first, &last);
		for (uint64_t i = first; i < last; i++)
			s->stream.out[i] = ~PEAK_WORD_WRITTEN;
	}
}

void peak_stream_poison(struct peak_cpu *s)
{
	s->stream.done = 0;
	cpu_pool_run(s->pool, poison_work, s);
}

static void note(struct wrong *w, uint64_t expected, uint64_t found, const char *what, unsigned thread,
		 uint64_t at)
{
	w->checked++;
	if (found == expected || w->count++)
		return;
	w->expected = (double)expected;
	w->found = (double)found;
	snprintf(w->place, sizeof(w->place), "thread %u, %s %llu", thread, what, (unsigned long long)at);
}

/* Checks the sum of the thread's last part by its closed form, and every word of the parts written so far. */
static void check_work(void *arg, unsigned thread)
{
	struct peak_cpu *s = arg;
	const struct peak_stream_state *r = &s->stream;
	struct wrong *w = &s->slot[thread].wrong;
	unsigned parts = r->done < r->parts ? r->done : r->parts;
	uint64_t first, last, right = 0;

	*w = (struct wrong){0};
	share(s, r->at, thread, &first, &last);
	for (unsigned i = 0; i < 2 && r->in[i]; i++)
		right += peak_words_sum(s->seed, i, first, last);
	note(w, right, s->slot[thread].sum, "its sum of part", thread, r->at);
	for (unsigned back = 0; r->out && back < parts; back++) {
		share(s, (r->at + r->parts - back) % r->parts, thread, &first, &last);
		for (uint64_t i = first; i < last; i++)
			note(w, PEAK_WORD_WRITTEN, r->out[i], "word", thread, i);
	}
}

void peak_stream_check(struct peak_cpu *s, struct wrong *w)
{
	cpu_pool_run(s->pool, check_work, s);
	for (unsigned i = 0; i < s->threads; i++) {
		const struct wrong *part = &s->slot[i].wrong;
		uint64_t checked = w->checked + part->checked, count = w->count + part->count;

		if (part->count && !w->count)
			*w = *part;
		w->checked = checked;
		w->count = count;
	}
}

/* -- begin and end -- */

/* Each thread first touches its own share, so that the pages are on its NUMA node. */
static void fill(void *arg, unsigned thread)
{
	struct peak_cpu *s = arg;
	uint64_t first, last;

	for (unsigned part = 0; part < s->stream.parts; part++) {
		share(s, part, thread, &first, &last);
		for (unsigned k = 0; k < 2 && s->stream.in[k]; k++)
			for (uint64_t i = first; i < last; i++)
				s->stream.in[k][i] = peak_word(s->seed, k, i);
	}
}

static uint64_t bytes_of(const struct peak_cpu *s, unsigned place)
{
	return (s->stream.words + place * SHIFT_WORDS) * sizeof(uint64_t);
}

static enum status stream_alloc(const struct peak_cpu *s, uint64_t **out, unsigned place, struct error *err)
{
	void *base;
	enum status st = cpu_pages_alloc(&base, bytes_of(s, place), err);

	*out = st ? NULL : (uint64_t *)base + place * SHIFT_WORDS;
	return st;
}

static void stream_free(const struct peak_cpu *s, uint64_t **p, unsigned place)
{
	void *base = *p ? *p - place * SHIFT_WORDS : NULL;

	cpu_pages_free(&base, bytes_of(s, place));
	*p = NULL;
}

enum status peak_stream_begin(struct peak_cpu *s, const struct machine *m, const struct target *t,
			      struct error *err)
{
	struct peak_stream_state *r = &s->stream;
	struct peak_mix mix = peak_mix(s->common.opts.unit);
	enum status st = STATUS_OK;

	r->loop = peak_stream_loop_for(machine_cpu(m)->isa, s->common.opts.unit, &r->isa);
	r->words = peak_stream_words(m, t, s->common.opts.unit);
	r->parts = peak_stream_count(s->common.opts.unit);
	r->part = r->words / r->parts;
	for (unsigned i = 0; !st && i < mix.reads; i++)
		st = stream_alloc(s, &r->in[i], i, err);
	if (!st && mix.put != PEAK_PUT_NONE)
		st = stream_alloc(s, &r->out, 2, err);
	if (!st)
		cpu_pool_run(s->pool, fill, s);
	return st;
}

void peak_stream_end(struct peak_cpu *s)
{
	stream_free(s, &s->stream.in[0], 0);
	stream_free(s, &s->stream.in[1], 1);
	stream_free(s, &s->stream.out, 2);
}
