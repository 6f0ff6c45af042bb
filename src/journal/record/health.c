/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/record/health.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/plausible_range.h"
#include "core/text/text.h"

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static bool time_of(const json_t *reading, uint64_t *out)
{
	const json_t *t = json_object_get(reading, "t_ns");

	if (!json_is_integer(t) || json_integer_value(t) < 0)
		return false;
	*out = (uint64_t)json_integer_value(t);
	return true;
}

static enum status no_memory(struct error *err)
{
	return error_errno(err, ENOMEM, "no memory to read the changes on the GPUs");
}

/* Adds a zeroed entry; NULL: no memory. */
static void *one_more(void *array, size_t *count, size_t size)
{
	void **at = array;
	char *grown = realloc(*at, (*count + 1) * size);

	if (!grown)
		return NULL;
	*at = grown;
	grown += *count * size;
	memset(grown, 0, size);
	++*count;
	return grown;
}

/* The growth between two maps as text: "link 3: 12, link 7: 1". */
static void parts_grown(const json_t *before, const json_t *now, char *out, size_t size)
{
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach((json_t *)now, name, value)
	{
		double more = json_number_value(value) - json_number_value(json_object_get(before, name));

		if (more > 0 && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%.24s: %.0f", n ? ", " : "", name, more);
	}
}

/* Records once that the GPU reports `name`. */
static enum status supply(struct health *h, const char *pci, const char *name, struct error *err)
{
	struct health_supply *s;

	if (strlen(name) >= sizeof(s->signal) || health_supplied(h, pci, name))
		return STATUS_OK;
	s = one_more(&h->supply, &h->supply_count, sizeof(*s));
	if (!s)
		return no_memory(err);
	text_copy(s->pci, sizeof(s->pci), pci);
	text_copy(s->signal, sizeof(s->signal), name);
	return STATUS_OK;
}

/* Two readings of a GPU to compare. `before`: its entry in h->last, which holds the last value of each
 * counter and state, and in "at" its time. */
struct pair {
	const char *pci;
	const json_t *before, *now;
	uint64_t t1_ns; /* of `now` */
};

/* Time of the last reading of this value; 0: never. */
static uint64_t told_at(const json_t *before, const char *name)
{
	const json_t *at = json_object_get(json_object_get(before, "at"), name);

	return json_is_integer(at) && json_integer_value(at) > 0 ? (uint64_t)json_integer_value(at) : 0;
}

/* Adds a change of `name`; NULL: no memory. */
static struct health_change *new_change(struct health *h, const struct pair *p, const char *name)
{
	struct health_change *c = one_more(&h->change, &h->change_count, sizeof(*c));

	if (!c)
		return NULL;
	text_copy(c->pci, sizeof(c->pci), p->pci);
	text_copy(c->name, sizeof(c->name), name);
	c->t0_ns = told_at(p->before, name);
	c->t1_ns = p->t1_ns;
	c->interrupted = json_is_true(json_object_get(p->before, "interrupted"));
	return c;
}

static enum status hold(struct health *h, const struct pair *p, const char *kind, struct error *err)
{
	const json_t *before = json_object_get(p->before, kind), *value;
	bool state = !strcmp(kind, "states");
	struct health_change *c;
	const char *name;

	json_object_foreach(json_object_get(p->now, kind), name, value)
	{
		const json_t *old = json_object_get(before, name);

		if (!json_is_number(old) || !json_is_number(value) || strlen(name) >= sizeof(c->name))
			continue;
		if (supply(h, p->pci, name, err))
			return STATUS_NO_RESOURCE;
		if (json_number_value(old) == json_number_value(value))
			continue;
		c = new_change(h, p, name);
		if (!c)
			return no_memory(err);
		c->before = json_number_value(old);
		c->now = json_number_value(value);
		c->state = state;
		if (!strcmp(name, "nvlink_errors"))
			parts_grown(json_object_get(p->before, "errors"), json_object_get(p->now, "errors"),
				    c->parts, sizeof(c->parts));
	}
	return STATUS_OK;
}

static enum status fall_silent(struct health *h, const char *pci, const json_t *reading, uint64_t t_ns,
			       struct error *err)
{
	const char *nvml = text_of(reading, "why"), *cuda = text_of(reading, "cuda");
	struct health_silence *s;

	if (!nvml)
		return STATUS_OK;
	s = one_more(&h->silence, &h->silence_count, sizeof(*s));
	if (!s)
		return no_memory(err);
	text_copy(s->pci, sizeof(s->pci), pci);
	text_copy(s->nvml, sizeof(s->nvml), nvml);
	s->t_ns = t_ns;
	s->lost = text_of(reading, "cause") && !strcmp(text_of(reading, "cause"), "gpu_lost");
	s->mismatch = text_of(reading, "cause") && !strcmp(text_of(reading, "cause"), "version_mismatch");
	s->cuda = !cuda ? CUDA_NOT_ASKED : !strcmp(cuda, "ok") ? CUDA_ANSWERS : CUDA_FAILS;
	if (s->cuda == CUDA_FAILS)
		text_copy(s->why, sizeof(s->why), cuda);
	else if (s->cuda == CUDA_NOT_ASKED && text_of(reading, "cuda_missing"))
		text_copy(s->why, sizeof(s->why), text_of(reading, "cuda_missing"));
	return STATUS_OK;
}

static enum status supply_signals(struct health *h, const char *pci, const json_t *signals, struct error *err)
{
	enum status st = STATUS_OK;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)signals, name, value)
	{
		if (!st && json_is_number(value) && plausible_under_load(name, json_number_value(value)))
			st = supply(h, pci, name, err);
	}
	return st;
}

/* The values of one kind: the earlier ones, replaced by those of the reading. `at` (may be NULL) receives the
 * time of each new value. */
static json_t *newest(const json_t *before, const json_t *reading, json_t *at, uint64_t t_ns)
{
	json_t *all = before ? json_copy((json_t *)before) : json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)reading, name, value)
	{
		if (!all || !json_is_number(value))
			continue;
		json_object_set(all, name, value);
		if (at)
			json_object_set_new(at, name, json_integer((json_int_t)t_ns));
	}
	return all;
}

/* Stores this reading for the comparison with the next one. A value that it lacks keeps its earlier reading.
 */
static enum status remember(struct health *h, const struct pair *p, struct error *err)
{
	static const char *const kinds[] = {"counters", "states", "errors"};
	json_t *kept = json_pack("{s:I}", "t_ns", (json_int_t)p->t1_ns);
	json_t *at = json_copy(json_object_get(p->before, "at")), *all;
	bool whole = kept != NULL;

	if (!at)
		at = json_object();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && whole && at; i++) {
		all = newest(json_object_get(p->before, kinds[i]), json_object_get(p->now, kinds[i]),
			     strcmp(kinds[i], "errors") ? at : NULL, p->t1_ns);
		whole = all && !json_object_set_new(kept, kinds[i], all);
	}
	whole = at && whole && !json_object_set(kept, "at", at) && !json_object_set(h->last, p->pci, kept);
	json_decref(at);
	json_decref(kept);
	return whole ? STATUS_OK : no_memory(err);
}

/* Handles a reading of one GPU. */
static enum status take(struct health *h, const char *pci, const json_t *reading, uint64_t shift_ns,
			struct error *err)
{
	const json_t *before = json_object_get(h->last, pci);
	struct pair p = {.pci = pci, .before = before, .now = reading};
	enum status st = STATUS_OK;

	if (!time_of(reading, &p.t1_ns))
		return STATUS_OK;
	p.t1_ns += shift_ns;
	if (text_of(reading, "why"))
		return fall_silent(h, pci, reading, p.t1_ns, err);
	if (before) {
		st = hold(h, &p, "counters", err);
		if (!st)
			st = hold(h, &p, "states", err);
	}
	if (!st)
		st = supply_signals(h, pci, json_object_get(reading, "signals"), err);
	return st ? st : remember(h, &p, err);
}

enum status health_read(struct health *h, const json_t *body, uint64_t shift_ns, struct error *err)
{
	enum status st = STATUS_OK;
	const char *pci;
	json_t *reading;

	if (!h->last)
		h->last = json_object();
	if (!h->last)
		return no_memory(err);
	json_object_foreach(json_object_get(body, "gpus"), pci, reading)
	{
		if (!st && strlen(pci) < sizeof(h->change->pci))
			st = take(h, pci, reading, shift_ns, err);
	}
	return st;
}

/* Adds `missing` changes for earlier values of one kind that are absent from the GPU's last reading. */
static enum status miss(struct health *h, const struct pair *p, const char *kind, struct error *err)
{
	struct health_change *c;
	const char *name;
	json_t *value;

	json_object_foreach(json_object_get(p->before, kind), name, value)
	{
		if (told_at(p->before, name) >= p->t1_ns || strlen(name) >= sizeof(c->name))
			continue;
		c = new_change(h, p, name);
		if (!c)
			return no_memory(err);
		c->before = c->now = json_number_value(value);
		c->missing = true;
	}
	return STATUS_OK;
}

enum status health_finish(struct health *h, struct error *err)
{
	enum status st = STATUS_OK;
	const char *pci;
	json_t *kept;

	json_object_foreach(h->last, pci, kept)
	{
		struct pair p = {.pci = pci, .before = kept};

		if (st || !time_of(kept, &p.t1_ns))
			continue;
		st = miss(h, &p, "counters", err);
		if (!st)
			st = miss(h, &p, "states", err);
	}
	return st;
}

void health_resumed(struct health *h, bool rebooted)
{
	const char *pci;
	json_t *reading;

	if (rebooted) /* the driver's counters began at zero again */
		json_object_clear(h->last);
	json_object_foreach(h->last, pci, reading)
	{
		json_object_set_new(reading, "interrupted", json_true());
	}
}

/* Length of the part of [a0, a1] that is in [b0, b1]. */
static double overlap(double a0, double a1, double b0, double b1)
{
	return fmax(fmin(a1, b1) - fmax(a0, b0), 0);
}

/*
 * Subtracts from a rise the part that one of the first `count` changes, from other ranks, already contains:
 * two ranks read the same counter, so the overlap of their value ranges is one rise. A fall or a state change
 * that another rank saw in the same time is not new. False: nothing of the change is new.
 */
static bool is_new(const struct health *h, size_t count, struct health_change *c)
{
	for (size_t i = 0; i < count; i++) {
		const struct health_change *o = &h->change[i];

		if (strcmp(o->pci, c->pci) || strcmp(o->name, c->name) || o->t0_ns >= c->t1_ns ||
		    c->t0_ns >= o->t1_ns)
			continue;
		if (c->missing != o->missing)
			continue;
		if (c->missing || (c->now < c->before && o->now < o->before))
			return false;
		if (c->now > c->before && o->now > o->before)
			c->before += overlap(c->before, c->now, o->before, o->now);
		if (c->before == c->now)
			return false;
	}
	return true;
}

enum status health_join(struct health *h, struct health *from, uint64_t axis(const void *arg, uint64_t t_ns),
			const void *arg, struct error *err)
{
	size_t others = h->change_count;

	for (size_t i = 0; i < from->change_count; i++) {
		struct health_change seen = from->change[i], *c;

		seen.t0_ns = axis(arg, seen.t0_ns);
		seen.t1_ns = axis(arg, seen.t1_ns);
		if (!is_new(h, others, &seen))
			continue;
		c = one_more(&h->change, &h->change_count, sizeof(*c));
		if (!c)
			return no_memory(err);
		*c = seen;
	}
	for (size_t i = 0; i < from->silence_count; i++) {
		struct health_silence *s = one_more(&h->silence, &h->silence_count, sizeof(*s));

		if (!s)
			return no_memory(err);
		*s = from->silence[i];
		s->t_ns = axis(arg, s->t_ns);
	}
	for (size_t i = 0; i < from->supply_count; i++) {
		struct health_supply *s = one_more(&h->supply, &h->supply_count, sizeof(*s));

		if (!s)
			return no_memory(err);
		*s = from->supply[i];
	}
	health_release(from);
	return STATUS_OK;
}

bool health_supplied(const struct health *h, const char *pci, const char *signal)
{
	for (size_t i = 0; i < h->supply_count; i++)
		if (!strcmp(h->supply[i].pci, pci) && !strcmp(h->supply[i].signal, signal))
			return true;
	return false;
}

void health_release(struct health *h)
{
	free(h->change);
	free(h->silence);
	free(h->supply);
	json_decref(h->last);
	*h = (struct health){0};
}
