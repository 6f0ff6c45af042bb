/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/prefetch.h"

#include <pthread.h>

#include "core/clock.h"

/* The number of a micro-batch: step (counted over all epochs), and micro-batch within it. */
struct place {
	uint64_t step, micro;
};

/* IDLE: empty, and nothing is requested. */
enum slot_state { SLOT_IDLE, SLOT_ASKED, SLOT_READY };

struct slot {
	enum slot_state state;
	struct place place;
	struct pack_batch fill;
	struct error err; /* READY: the error of making it, if any */
};

struct prefetch {
	struct sampler sampler;
	const struct tokenised *t;
	uint64_t packs, steps;
	pthread_t thread;
	bool has_thread;
	/* Guards everything below, except the fill of a READY slot, which belongs to the caller. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	struct slot slot[2];
	int lent;		       /* the slot lent to the caller; -1: none */
	struct sampler_epoch epoch[2]; /* epoch n is at index n % 2 */
	uint64_t epoch_number[2];
	bool epoch_made[2];
};

/* Called with the lock held. */
static enum status epoch_of(struct prefetch *f, uint64_t number, const struct sampler_epoch **out,
			    struct error *err)
{
	uint64_t at = number % 2;
	enum status st = STATUS_OK;

	if (!f->epoch_made[at] || f->epoch_number[at] != number) {
		sampler_epoch_release(&f->epoch[at]);
		f->epoch_made[at] = false;
		st = sampler_epoch_make(&f->epoch[at], &f->sampler, number, f->t->begin, f->t->rows, err);
		f->epoch_made[at] = !st;
		f->epoch_number[at] = number;
	}
	*out = &f->epoch[at];
	return st;
}

/* Called with the lock held, so that the epoch does not change while its rows are copied. */
static enum status make(struct prefetch *f, struct slot *slot, struct error *err)
{
	uint64_t step = slot->place.step % f->steps;
	const struct sampler_epoch *e;
	enum status st = epoch_of(f, slot->place.step / f->steps, &e, err);
	struct sampler_span all, mine;

	if (st)
		return st;
	all = sampler_step(&f->sampler, e, step);
	mine = sampler_micro(&f->sampler, all, slot->place.micro);
	return pack_batch_make(&slot->fill, f->t, e, mine,
			       pack_batch_size(f->t, e, (struct sampler_span){all.first, mine.first}).tokens,
			       err);
}

static void *run(void *arg)
{
	struct prefetch *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		struct slot *slot = f->slot[0].state == SLOT_ASKED ? &f->slot[0] : &f->slot[1];

		if (slot->state != SLOT_ASKED) {
			pthread_cond_wait(&f->changed, &f->lock);
			continue;
		}
		error_clear(&slot->err);
		make(f, slot, &slot->err);
		slot->state = SLOT_READY;
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

enum status prefetch_open(struct prefetch **out, const struct sampler *s, const struct tokenised *t,
			  bool ahead, struct error *err)
{
	struct prefetch *f = calloc(1, sizeof(*f));
	const struct sampler_epoch *first;
	enum status st;

	if (!f)
		return error_set(err, STATUS_NO_RESOURCE, "the prefetch of rows");
	f->sampler = *s;
	f->t = t;
	f->lent = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	st = epoch_of(f, 0, &first, err);
	if (!st) {
		f->packs = first->packs.count;
		f->steps = sampler_steps(s, first);
		f->has_thread = ahead && !pthread_create(&f->thread, NULL, run, f);
		if (ahead && !f->has_thread)
			st = error_set(err, STATUS_NO_RESOURCE, "the thread that makes micro-batches");
	}
	if (st)
		prefetch_close(&f);
	else
		*out = f;
	return st;
}

void prefetch_close(struct prefetch **out)
{
	struct prefetch *f = *out;

	if (!f)
		return;
	if (f->has_thread) {
		pthread_mutex_lock(&f->lock);
		f->stop = true;
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
		pthread_join(f->thread, NULL);
	}
	for (int i = 0; i < 2; i++) {
		pack_batch_release(&f->slot[i].fill);
		sampler_epoch_release(&f->epoch[i]);
	}
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f);
	*out = NULL;
}

uint64_t prefetch_packs(const struct prefetch *f)
{
	return f->packs;
}

uint64_t prefetch_steps(const struct prefetch *f)
{
	return f->steps;
}

enum status prefetch_step(struct prefetch *f, uint64_t step, struct prefetch_step *out, struct error *err)
{
	const struct sampler_epoch *e;
	struct sampler_span span;
	enum status st;

	pthread_mutex_lock(&f->lock);
	st = epoch_of(f, step / f->steps, &e, err);
	if (!st) {
		span = sampler_step(&f->sampler, e, step % f->steps);
		const struct sampler_span mine = sampler_rank(&f->sampler, span);

		*out = (struct prefetch_step){.micro_batches = sampler_micros(&f->sampler, span),
					      .micro_most = sampler_micros_most(&f->sampler, span),
					      .size = pack_batch_size(f->t, e, span),
					      .packs = span.last - span.first,
					      .first = mine.first - span.first,
					      .own = mine.last - mine.first};
	}
	pthread_mutex_unlock(&f->lock);
	return st;
}

static bool is_at(const struct slot *s, struct place p)
{
	return s->state != SLOT_IDLE && s->place.step == p.step && s->place.micro == p.micro;
}

/* Has the slot filled, by the thread if there is one, or at once. Called with the lock held. */
static void ask(struct prefetch *f, int slot, struct place p)
{
	f->slot[slot].place = p;
	f->slot[slot].state = SLOT_ASKED;
	if (f->has_thread) {
		pthread_cond_broadcast(&f->changed);
	} else {
		error_clear(&f->slot[slot].err);
		make(f, &f->slot[slot], &f->slot[slot].err);
		f->slot[slot].state = SLOT_READY;
	}
}

/* The place after `p`. Called with the lock held. */
static struct place behind(struct prefetch *f, struct place p)
{
	const struct sampler_epoch *e;
	struct error ignored = {0}; /* reported again when the epoch is needed */

	if (!epoch_of(f, p.step / f->steps, &e, &ignored) &&
	    p.micro + 1 < sampler_micros(&f->sampler, sampler_step(&f->sampler, e, p.step % f->steps)))
		return (struct place){p.step, p.micro + 1};
	return (struct place){p.step + 1, 0};
}

enum status prefetch_next(struct prefetch *f, uint64_t step, uint64_t micro, const struct batch **b,
			  double *wait_s, struct error *err)
{
	const struct place wanted = {step, micro};
	uint64_t began = clock_now_ns(clock_monotonic());
	struct place next;
	struct slot *slot;
	int at, other;

	pthread_mutex_lock(&f->lock);
	if (f->lent >= 0 &&
	    !is_at(&f->slot[f->lent], wanted)) /* otherwise the same micro-batch is lent again */
		f->slot[f->lent].state = SLOT_IDLE;
	at = is_at(&f->slot[0], wanted) ? 0 : is_at(&f->slot[1], wanted) ? 1 : f->lent >= 0 ? f->lent : 0;
	slot = &f->slot[at];
	if (!is_at(slot, wanted)) {
		f->slot[1 - at].state = SLOT_IDLE; /* a wrong prediction */
		ask(f, at, wanted);
	}
	while (slot->state != SLOT_READY)
		pthread_cond_wait(&f->changed, &f->lock);
	f->lent = at;
	other = 1 - at;
	*b = &slot->fill.batch;
	*wait_s = (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
	next = behind(f, wanted);
	if (f->has_thread && !slot->err.status && !is_at(&f->slot[other], next))
		ask(f, other, next);
	pthread_mutex_unlock(&f->lock);
	return slot->err.status ? error_set(err, slot->err.status, "%s", slot->err.text) : STATUS_OK;
}
