/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/tokenised.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "core/process/cpu_pool.h"
#include "core/math/random.h"

enum { ROWS_AT_ONCE = 32, BAD_TOLD = 10, PATH_SIZE = 4096, SAMPLE_SEED = 1 };

/* The result of one row. */
struct made {
	int32_t *token;
	uint32_t count;
	char *why; /* error message of an invalid row */
};

/* The rows of a file; threads take a few at a time. */
struct work {
	const struct tokenised_ask *ask;
	const struct rows *rows;
	size_t count;
	struct made *made; /* [count] */
	_Atomic size_t next;
	pthread_mutex_t lock; /* guards everything below */
	enum status status;
	struct error err;
};

static enum status keep_tokens(struct made *m, const struct template_tokens *tokens, struct error *err)
{
	m->token = malloc((tokens->ids.count + 1) * sizeof(*m->token));
	if (!m->token)
		return error_set(err, STATUS_NO_RESOURCE, "a row of %zu tokens", tokens->ids.count);
	for (size_t i = 0; i < tokens->ids.count; i++)
		m->token[i] = tokens->ids.id[i] | (tokens->trained[i] ? TOKENISED_TRAINED : 0);
	m->count = (uint32_t)tokens->ids.count;
	return STATUS_OK;
}

static enum status make_row(const struct work *work, struct tokenizer_worker *w, size_t i, struct error *err)
{
	const struct template_ask ask = {.control = work->ask->control,
					 .setting = work->ask->template_setting};
	const struct rows *rows = work->rows;
	struct template_tokens tokens = {0};
	struct template_text text = {0};
	struct error why = {0};
	struct chat chat;
	enum status st = rows_read(rows, i, work->ask->format, &chat, err);

	if (st)
		return st;
	st = template_render(work->ask->template, &chat, &ask, &text, &why);
	if (!st)
		st = template_encode(w, &text, &tokens, &why);
	if (!st)
		st = keep_tokens(&work->made[i], &tokens, &why);
	template_tokens_release(&tokens);
	template_text_release(&text);
	chat_release(&chat);
	return st ? error_set(err, st, "%s:%zu: %s", rows->path, rows->place[i].line, why.text) : STATUS_OK;
}

static enum status make_rows(struct work *work, struct tokenizer_worker *w, size_t first, size_t last,
			     struct error *err)
{
	for (size_t i = first; i < last; i++) {
		struct error bad = {0};
		enum status st = make_row(work, w, i, &bad);

		if (st == STATUS_BAD_INPUT)
			work->made[i].why = strdup(bad.text);
		else if (st)
			return error_set(err, st, "%s", bad.text);
		if (st && !work->made[i].why)
			return error_set(err, STATUS_NO_RESOURCE, "the message of an invalid row");
	}
	return STATUS_OK;
}

static void run_thread(void *arg, unsigned thread)
{
	struct work *work = arg;
	struct tokenizer_worker *w = NULL;
	struct error err = {0};
	enum status st = tokenizer_worker_create(&w, work->ask->tokenizer, &err);
	size_t first;

	(void)thread;
	while (!st && (first = atomic_fetch_add(&work->next, ROWS_AT_ONCE)) < work->count)
		st = make_rows(work, w, first,
			       first + ROWS_AT_ONCE < work->count ? first + ROWS_AT_ONCE : work->count, &err);
	tokenizer_worker_destroy(&w);
	if (!st)
		return;
	pthread_mutex_lock(&work->lock);
	if (!work->status) {
		work->status = st;
		work->err = err;
	}
	pthread_mutex_unlock(&work->lock);
}

static enum status tell_bad(const struct work *work, struct tokenised *t, struct error *err)
{
	const struct tokenised_ask *ask = work->ask;

	for (size_t i = 0; i < work->count; i++) {
		const char *why = work->made[i].why;

		if (!why)
			continue;
		t->bad++;
		if (t->bad > ask->bad_max)
			return error_set(err, STATUS_BAD_INPUT, "%s%s", why,
					 ask->bad_max ? " (max_bad_rows does not allow more invalid rows)"
						      : "");
		if (t->bad <= BAD_TOLD)
			log_warn(ask->log, LOG_TOPIC_RUN, "%s: row skipped", why);
	}
	return STATUS_OK;
}

static enum status gather(const struct work *work, struct tokenised_set *set, struct error *err)
{
	uint64_t tokens = 0;

	for (size_t i = 0; i < work->count; i++)
		tokens += work->made[i].count;
	set->token = malloc((tokens + 1) * sizeof(*set->token));
	set->begin = malloc((work->count + 1) * sizeof(*set->begin));
	if (!set->token || !set->begin)
		return error_set(err, STATUS_NO_RESOURCE, "%" PRIu64 " tokens", tokens);
	set->begin[0] = 0;
	for (size_t i = 0; i < work->count; i++) {
		const struct made *m = &work->made[i];

		if (m->why)
			continue;
		if (m->count)
			memcpy(set->token + set->begin[set->rows], m->token, m->count * sizeof(*m->token));
		set->begin[set->rows + 1] = set->begin[set->rows] + m->count;
		set->rows++;
	}
	return STATUS_OK;
}

static enum status run_work(struct work *work, struct error *err)
{
	struct cpu_pool *pool = NULL;
	enum status st = cpu_pool_usable(&pool, err);

	if (st)
		return st;
	pthread_mutex_init(&work->lock, NULL);
	cpu_pool_run(pool, run_thread, work);
	cpu_pool_destroy(&pool);
	pthread_mutex_destroy(&work->lock);
	return work->status ? error_set(err, work->status, "%s", work->err.text) : STATUS_OK;
}

static enum status make_set(struct tokenised_set *set, struct tokenised *t, const struct tokenised_ask *ask,
			    const char *path, struct error *err)
{
	struct work work = {.ask = ask};
	struct rows rows;
	uint64_t began;
	enum status st = rows_open(&rows, path, err);

	if (st)
		return st;
	work.rows = &rows;
	work.count = rows.count;
	work.made = calloc(work.count, sizeof(*work.made));
	began = clock_now_ns(clock_monotonic());
	st = work.made ? run_work(&work, err) : error_set(err, STATUS_NO_RESOURCE, "%zu rows", work.count);
	t->seconds += (double)(clock_now_ns(clock_monotonic()) - began) * 1e-9;
	if (!st)
		st = tell_bad(&work, t, err);
	if (!st)
		st = gather(&work, set, err);
	for (size_t i = 0; i < work.count; i++) {
		t->bytes += rows.place[i].size;
		if (work.made) {
			free(work.made[i].token);
			free(work.made[i].why);
		}
	}
	free(work.made);
	rows_release(&rows);
	return st;
}

/* Takes a file's token ids from the cache if possible. A file with invalid rows is not cached, because their
 * warnings would then appear only once. */
static enum status get_set(struct tokenised_set *set, struct tokenised *t, const struct tokenised_ask *ask,
			   const char *file, struct error *err)
{
	uint64_t bad = t->bad;
	char path[PATH_SIZE];
	enum status st;

	if (!ask->cache_dir)
		return make_set(set, t, ask, file, err);
	st = tokenised_cache_path(path, sizeof(path), ask, file, err);
	if (st || tokenised_cache_read(set, path, tokenizer_size(ask->tokenizer), ask->log))
		return st;
	st = make_set(set, t, ask, file, err);
	return st || t->bad > bad ? st : tokenised_cache_write(set, path, err);
}

static uint64_t targets_of(const int32_t *token, uint64_t count)
{
	uint64_t targets = 0;

	for (uint64_t i = 1; i < count; i++) /* the first token has no predecessor that predicts it */
		targets += (token[i] & TOKENISED_TRAINED) != 0;
	return targets;
}

/* Appends the rows that fit and have a target. */
static enum status take(struct tokenised *t, const struct tokenised_set *set, const struct tokenised_ask *ask,
			struct error *err)
{
	int32_t *token = realloc(t->token, (t->tokens + set->begin[set->rows] + 1) * sizeof(*token));
	uint64_t *begin = realloc(t->begin, (t->rows + set->rows + 1) * sizeof(*begin));

	t->token = token ? token : t->token;
	t->begin = begin ? begin : t->begin;
	if (!token || !begin)
		return error_set(err, STATUS_NO_RESOURCE, "%" PRIu64 " tokens",
				 t->tokens + set->begin[set->rows]);
	t->begin[0] = 0;
	for (uint64_t i = 0; i < set->rows; i++) {
		const int32_t *row = set->token + set->begin[i];
		uint64_t count = set->begin[i + 1] - set->begin[i], targets;

		if (count > ask->length_max) {
			t->truncated += ask->truncate;
			t->dropped += !ask->truncate;
			if (!ask->truncate)
				continue;
			count = ask->length_max;
		}
		targets = targets_of(row, count);
		t->untrained += !targets;
		if (!targets)
			continue;
		memcpy(t->token + t->tokens, row, count * sizeof(*row));
		t->tokens += count;
		t->targets += targets;
		t->begin[++t->rows] = t->tokens;
	}
	return STATUS_OK;
}

/* The error if no row is usable: the reasons, and the settings to change. */
static enum status nothing_left(const struct tokenised *t, const struct tokenised_ask *ask, struct error *err)
{
	struct text why = {0};

	if (t->dropped)
		text_addf(&why, "%" PRIu64 " longer than %" PRIu64 " tokens (%s), ", t->dropped,
			  ask->length_max, ask->length_setting);
	if (t->bad)
		text_addf(&why, "%" PRIu64 " wrong, ", t->bad);
	if (t->untrained)
		text_addf(&why, "%" PRIu64 " without an assistant message, ", t->untrained);
	error_set(err, STATUS_BAD_INPUT, "no usable row: %swith the chosen format and chat template (%s)",
		  text_str(&why), ask->template_setting);
	text_release(&why);
	return STATUS_BAD_INPUT;
}

/* Draws a uniform sample of `most` rows and keeps their order. The sample is the same in every run, so that
 * runs can be compared. */
static void sample(struct tokenised *t, uint64_t most)
{
	uint64_t all = t->rows;

	t->rows = t->tokens = t->targets = 0;
	for (uint64_t i = 0; i < all && t->rows < most; i++) {
		int32_t *row = t->token + t->begin[i];
		uint64_t count = t->begin[i + 1] - t->begin[i];

		if (random_u32(SAMPLE_SEED, 0, i) % (all - i) >= most - t->rows)
			continue;
		memmove(t->token + t->tokens, row, count * sizeof(*row));
		t->targets += targets_of(row, count);
		t->tokens += count;
		t->begin[++t->rows] = t->tokens;
	}
}

enum status tokenised_read(struct tokenised *t, const struct tokenised_ask *ask, struct error *err)
{
	enum status st = STATUS_OK;

	*t = (struct tokenised){0};
	for (size_t i = 0; !st && i < ask->files.count; i++) {
		struct tokenised_set set = {0};

		st = get_set(&set, t, ask, ask->files.word[i], err);
		if (!st)
			st = take(t, &set, ask, err);
		free(set.token);
		free(set.begin);
	}
	if (!st && ask->rows_max && ask->rows_max < t->rows)
		sample(t, ask->rows_max);
	if (!st && !t->rows)
		st = nothing_left(t, ask, err);
	if (st)
		tokenised_release(t);
	return st;
}

void tokenised_release(struct tokenised *t)
{
	free(t->token);
	free(t->begin);
	*t = (struct tokenised){0};
}
