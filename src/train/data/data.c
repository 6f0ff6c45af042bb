/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data.h"

#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/stat.h>

#include "train/data/prefetch.h"

/* One set of rows, and the thread that prepares its micro-batches. */
struct set {
	struct tokenised rows;
	struct prefetch *feed; /* NULL: the configuration names no rows */
};

struct data {
	struct tokenizer *tokenizer;
	const struct template *template;
	struct set train, eval;
};

static const char template_setting[] = "model: chat_template";

/* Writes the path of the tokenizer's file. The cache of token ids depends on it. */
static void tokenizer_file(char out[PATH_MAX], const char *path)
{
	struct stat info;
	bool folder = !stat(path, &info) && S_ISDIR(info.st_mode);

	snprintf(out, PATH_MAX, "%s%s", path, folder ? "/tokenizer.json" : "");
}

static void tell_rows(const struct log *log, const char *what, uint64_t rows, const char *change)
{
	if (rows)
		log_warn(log, LOG_TOPIC_RUN, "%s: %llu row%s %s", what, (unsigned long long)rows,
			 rows == 1 ? "" : "s", change);
}

static void tell(const struct log *log, const char *what, const struct tokenised *t)
{
	tell_rows(log, what, t->dropped, "dropped: longer than max_seq_length");
	tell_rows(log, what, t->truncated, "truncated to max_seq_length");
	tell_rows(log, what, t->untrained, "dropped: no assistant message");
}

/* The model was never trained at positions beyond its limit. */
static void warn_of_positions(const struct log *log, const char *what, const struct tokenised *t,
			      int64_t positions)
{
	uint64_t beyond = 0;

	for (uint64_t i = 0; i < t->rows; i++)
		beyond += t->begin[i + 1] - t->begin[i] > (uint64_t)positions;
	if (beyond)
		log_warn(log, LOG_TOPIC_RUN,
			 "%s: %llu rows are longer than the model's %lld positions "
			 "(max_position_embeddings); data: max_seq_length: %lld drops them",
			 what, (unsigned long long)beyond, (long long)positions, (long long)positions);
}

static enum status open_set(struct set *set, struct tokenised_ask *ask, const char *what, int64_t positions,
			    const struct sampler *s, bool ahead, struct comm *comm, struct error *err)
{
	enum status st;

	if (!ask->files.count)
		return STATUS_OK;
	st = tokenised_share(&set->rows, ask, comm, err);
	if (st)
		return st;
	tell(ask->log, what, &set->rows);
	warn_of_positions(ask->log, what, &set->rows, positions);
	return prefetch_open(&set->feed, s, &set->rows, ahead, err);
}

static enum status open_sets(struct data *d, const struct config *c, const char *tokenizer, int64_t positions,
			     const struct mesh *mesh, struct comm *comm, const struct log *log,
			     struct error *err)
{
	const bool ahead = c->training.dataloader_num_workers > 0;
	const struct config_data *rows = &c->data;
	struct tokenised_ask ask = {
		.files = rows->train,
		.format = (enum rows_format)rows->format,
		.tokenizer = d->tokenizer,
		.tokenizer_path = tokenizer,
		.template = d->template,
		.template_setting = template_setting,
		.length_setting = "data: max_seq_length",
		.control = rows->control_tokens,
		.truncate = rows->long_rows == CONFIG_LONG_TRUNCATE,
		.length_max = rows->max_seq_length,
		.rows_max = rows->max_train_samples,
		.bad_max = rows->max_bad_rows,
		.cache_dir = rows->cache_dir,
		.log = log,
	};
	struct sampler s = {
		.seed = c->training.seed,
		.shuffle = rows->shuffle,
		.room = rows->packing ? rows->max_seq_length : 0,
		.packs_per_micro = mesh->packs_per_micro,
		.micros = mesh->micros,
		.world = mesh->size,
		.rank = mesh->rank,
		.deal = true,
	};
	enum status st = open_set(&d->train, &ask, "training", positions, &s, ahead, comm, err);

	if (!st)
		st = mesh_check_rows(mesh, prefetch_packs(d->train.feed), d->train.rows.rows, err);
	if (st)
		return st;
	ask.files = rows->eval;
	ask.rows_max = rows->max_eval_samples;
	s.shuffle = s.deal = false;
	s.micros = s.world = 1;
	s.rank = 0;
	s.packs_per_micro = c->training.per_device_eval_batch_size;
	return open_set(&d->eval, &ask, "evaluation", positions, &s, ahead, comm, err);
}

static enum status open_words(struct data *d, const struct config *c, const struct shape *shape,
			      struct error *err)
{
	const char *path = c->model.tokenizer ? c->model.tokenizer : c->model.name_or_path;
	enum status st = tokenizer_open(&d->tokenizer, path, err);

	if (!st)
		st = tokenizer_check_rows(d->tokenizer, shape->vocab, err);
	return st ? st
		  : template_find(&d->template, c->model.chat_template, template_setting, d->tokenizer, err);
}

enum status data_check(const struct config *c, const struct shape *shape, struct error *err)
{
	struct data d = {0};
	enum status st = open_words(&d, c, shape, err);

	tokenizer_close(&d.tokenizer);
	return st;
}

/* Returns the memory of reading rows to the system; glibc would keep it. */
static void give_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

enum status data_open(struct data **out, const struct config *c, const struct shape *shape,
		      const struct mesh *mesh, struct comm *comm, const struct log *log, struct error *err)
{
	const char *path = c->model.tokenizer ? c->model.tokenizer : c->model.name_or_path;
	struct data *d = calloc(1, sizeof(*d));
	char file[PATH_MAX];
	enum status st;

	if (!d)
		return error_set(err, STATUS_NO_RESOURCE, "rows");
	tokenizer_file(file, path);
	st = comm_agree(comm, open_words(d, c, shape, err), err);
	if (!st)
		st = open_sets(d, c, file, shape->context, mesh, comm, log, err);
	give_back();
	if (st)
		data_close(&d);
	else
		*out = d;
	return st;
}

void data_close(struct data **d)
{
	if (!*d)
		return;
	prefetch_close(&(*d)->train.feed);
	prefetch_close(&(*d)->eval.feed);
	tokenised_release(&(*d)->train.rows);
	tokenised_release(&(*d)->eval.rows);
	tokenizer_close(&(*d)->tokenizer);
	free(*d);
	*d = NULL;
}

static struct data_counts counts_of(const struct tokenised *t)
{
	return (struct data_counts){.rows = t->rows,
				    .tokens = t->tokens,
				    .targets = t->targets,
				    .dropped = t->dropped,
				    .truncated = t->truncated,
				    .bad = t->bad};
}

struct data_counts data_train_counts(const struct data *d)
{
	return counts_of(&d->train.rows);
}

struct data_counts data_eval_counts(const struct data *d)
{
	return counts_of(&d->eval.rows);
}

uint64_t data_steps(const struct data *d)
{
	return prefetch_steps(d->train.feed);
}

struct data_step data_step(const struct data *d, uint64_t step)
{
	struct error ignored = {0}; /* data_next reports it */
	struct prefetch_step s = {0};

	prefetch_step(d->train.feed, step, &s, &ignored);
	return (struct data_step){.micro_batches = s.micro_batches,
				  .micro_most = s.micro_most,
				  .targets = s.size.targets,
				  .tokens = s.size.tokens,
				  .rows = s.size.rows,
				  .packs = s.packs,
				  .first_pack = s.first,
				  .own_packs = s.own};
}

enum status data_next(struct data *d, uint64_t step, uint64_t micro, const struct batch **b, double *wait_s,
		      struct error *err)
{
	return prefetch_next(d->train.feed, step, micro, b, wait_s, err);
}

int32_t data_end_token(const struct data *d, const char **text)
{
	*text = template_end(d->template);
	return tokenizer_added(d->tokenizer, *text);
}

uint64_t data_eval_micros(const struct data *d)
{
	return d->eval.feed ? prefetch_steps(d->eval.feed) : 0;
}

enum status data_eval(struct data *d, uint64_t micro, const struct batch **b, struct error *err)
{
	double wait_s;

	return prefetch_next(d->eval.feed, micro, 0, b, &wait_s, err);
}
