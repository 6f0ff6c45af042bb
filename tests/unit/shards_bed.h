/* SPDX-License-Identifier: Apache-2.0 */
/* States of a few tensors around the borders of 8-bit blocks, and checkpoints of them that several ranks
 * write, for the tests of shards. */
#ifndef TESTS_UNIT_SHARDS_BED_H
#define TESTS_UNIT_SHARDS_BED_H
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "model/backend/ops.h"
#include "model/tensor/dtype.h"
#include "must.h"
#include "train/checkpoint/checkpoint.h"

enum { TENSORS = 5, RANKS_MOST = 100 };
static const int64_t sizes[TENSORS][2] = {{80, 64}, {1, 7}, {3, 1500}, {16, 256}, {1, 4095}};

struct bed {
	char run[64];
	struct params p;
	uint8_t *memory[PARAMS_STATE_COUNT];
	json_t *state;
};

static inline void make_params(struct params *p, struct params_format format, bool reversed)
{
	size_t small = 0, blocks = 0;
	struct error err = {0};

	*p = (struct params){.format = format};
	for (int i = 0; i < TENSORS; i++) {
		const int at = reversed ? TENSORS - 1 - i : i;
		char name[16];

		snprintf(name, sizeof(name), "t%d", at);
		must(params_add(p, name, sizes[at][0], sizes[at][1], 1, &err), &err);
		if (format.moments == MOMENTS_8BIT) {
			struct param *one = &p->table[i];
			const size_t count = (size_t)(one->rows * one->cols);

			one->is_small = count < PARAMS_8BIT_LEAST;
			one->state = one->is_small ? small : blocks;
			*(one->is_small ? &small : &blocks) +=
				one->is_small ? count : (count + ADAMW_BLOCK - 1) / ADAMW_BLOCK;
		}
	}
	p->master = (struct mat){.rows = 1, .cols = (int64_t)p->length, .dtype = DTYPE_F32};
	p->m = p->v = (struct mat){.rows = 1,
				   .cols = (int64_t)p->length,
				   .dtype = format.moments == MOMENTS_F32    ? DTYPE_F32
					    : format.moments == MOMENTS_BF16 ? DTYPE_BF16
									     : DTYPE_U8};
	if (format.master != MASTER_F32)
		p->master.dtype = DTYPE_BF16;
	p->rest = (struct mat){
		.rows = format.master == MASTER_SPLIT, .cols = (int64_t)p->length, .dtype = DTYPE_I16};
	p->m_scale = p->v_scale =
		(struct mat){.rows = blocks > 0, .cols = (int64_t)blocks, .dtype = DTYPE_F32};
	p->m_small = p->v_small = (struct mat){.rows = small > 0, .cols = (int64_t)small, .dtype = DTYPE_F32};
}

static inline uint8_t byte_of(int state, int tensor, uint64_t at, uint64_t step)
{
	return (uint8_t)(state * 31 + tensor * 7 + (int)(at % 251) + (int)(at / 251) + (int)step * 13);
}

/* Gives every state memory. Bytes depend on the tensor and the place in it, not on the order of the table. */
static inline void fill(struct params *p, uint8_t *memory[PARAMS_STATE_COUNT], bool blank, uint64_t step)
{
	for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
		struct mat *m = params_state(p, (enum params_state)s);
		const uint64_t bytes = params_state_bytes(p, (enum params_state)s);

		if (!memory[s])
			memory[s] = calloc(1, bytes + 1); /* of exactly its size, for the sanitizers */
		assert_non_null(memory[s]);
		m->data = bytes ? memory[s] : NULL;
		for (int i = 0; i < p->count && !blank; i++) {
			const struct params_range r = params_range(p, &p->table[i], (enum params_state)s);
			const uint64_t first = dtype_bytes(m->dtype, r.first),
				       count = dtype_bytes(m->dtype, r.count);

			for (uint64_t k = 0; k < count; k++)
				memory[s][first + k] = byte_of(s, p->table[i].name[1] - '0', k, step);
		}
	}
}

static inline void release(struct params *p, uint8_t *memory[PARAMS_STATE_COUNT])
{
	for (int s = 0; s < PARAMS_STATE_COUNT; s++)
		free(memory[s]);
	params_release(p);
}

static inline bool holds(struct params *p, uint64_t step)
{
	uint8_t *memory[PARAMS_STATE_COUNT] = {NULL};
	struct params like = *p;
	bool same = true;

	fill(&like, memory, false, step);
	for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
		const uint64_t bytes = params_state_bytes(p, (enum params_state)s);

		same = same &&
		       (!bytes || !memcmp(memory[s], params_state(p, (enum params_state)s)->data, bytes));
		free(memory[s]);
	}
	return same;
}

static inline int begin(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	snprintf(b->run, sizeof(b->run), "/tmp/train_shards.XXXXXX");
	assert_non_null(mkdtemp(b->run));
	b->state = json_pack("{s:i}", "global_step", 1);
	make_params(&b->p, (struct params_format){MOMENTS_F32, MASTER_F32}, false);
	*state = b;
	return 0;
}

static inline int end(void **state)
{
	struct bed *b = *state;

	release(&b->p, b->memory);
	file_remove_tree(b->run);
	json_decref(b->state);
	free(b);
	return 0;
}

static inline void use_format(struct bed *b, enum moments moments, enum master master)
{
	release(&b->p, b->memory);
	memset(b->memory, 0, sizeof(b->memory));
	make_params(&b->p, (struct params_format){moments, master}, false);
}

/* One rank's side of a save. */
static inline enum status write_part(struct bed *b, const char *folder, uint64_t step, unsigned rank,
				     unsigned ranks, json_t *reports, struct error *err)
{
	struct shard shard;
	const struct checkpoint_part part = {.rank = rank, .ranks = ranks, .shard = &shard, .folder = folder};
	const struct checkpoint_source c = {
		.run = b->run, .step = step, .params = &b->p, .state = b->state, .part = &part};
	json_t *report = NULL;
	size_t first, last;
	enum status st;

	shard_range(&first, &last, b->p.length, rank, ranks);
	shard_view(&shard, &b->p, first, last);
	st = checkpoint_write_part(&c, &report, err);
	json_array_append_new(reports, report ? report : json_null());
	return st;
}

static inline enum status join(struct bed *b, const char *folder, uint64_t step, const json_t *reports,
			       struct error *err)
{
	const struct checkpoint_part part = {.folder = folder};
	const struct checkpoint_source c = {
		.run = b->run, .step = step, .params = &b->p, .state = b->state, .part = &part};

	return checkpoint_join(&c, reports, err);
}

/* All ranks' sides of a save, one after another. */
static inline enum status save(struct bed *b, uint64_t step, unsigned ranks, struct error *err)
{
	char folder[PATH_MAX + 64];
	json_t *reports = json_array();
	enum status st;

	fill(&b->p, b->memory, false, step);
	st = checkpoint_folder(folder, b->run, step, "0123456789abcdef", err);
	for (unsigned r = 0; r < ranks && !st; r++)
		st = write_part(b, folder, step, r, ranks, reports, err);
	if (!st)
		st = join(b, folder, step, reports, err);
	json_decref(reports);
	return st;
}

static inline void must_save(struct bed *b, uint64_t step, unsigned ranks)
{
	struct error err = {0};

	must(save(b, step, ranks, &err), &err);
}

static inline bool is_there(const struct bed *b, const char *name)
{
	char path[300];
	struct stat about;

	snprintf(path, sizeof(path), "%s/%s", b->run, name);
	return !stat(path, &about);
}

static inline bool no_temporary_folder(const struct bed *b)
{
	char command[128];

	snprintf(command, sizeof(command), "test -z \"$(ls %s | grep checkpoint-.*new)\"", b->run);
	return !system(command);
}

/* The newest checkpoint, read into states of another order. */
static inline uint64_t newest(struct bed *b, struct text *note)
{
	uint8_t *memory[PARAMS_STATE_COUNT] = {NULL};
	struct checkpoint_found f;
	struct error err = {0};
	struct params other;
	uint64_t step;

	must(checkpoint_find(&f, b->run, note, &err), &err);
	make_params(&other, b->p.format, true);
	fill(&other, memory, true, 0);
	must(checkpoint_fits(&f, &other, &err), &err);
	must(checkpoint_load(&f, &other, &err), &err);
	step = f.step;
	assert_true(holds(&other, step));
	release(&other, memory);
	checkpoint_found_release(&f);
	return step;
}
#endif
