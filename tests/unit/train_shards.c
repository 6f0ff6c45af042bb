/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that several ranks write, each its shard of the flat vector: every division is read into every other
 * one, and a writer that is killed at any call that changes a file leaves the checkpoint before it. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/file/file.h"
#include "model/backend/ops.h"
#include "model/tensor/dtype.h"
#include "must.h"
#include "train/checkpoint/checkpoint.h"

/* -- planted faults: this process is killed at the n-th call that changes a file -- */

static long strikes_in = -1; /* calls until the kill; negative: never */

static void strike(void)
{
	if (strikes_in >= 0 && !strikes_in--)
		kill(getpid(), SIGKILL);
}

int fsync(int fd)
{
	strike();
	return (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t size)
{
	strike();
	return syscall(SYS_write, fd, data, size);
}

int mkdir(const char *path, mode_t mode)
{
	strike();
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to)
{
	strike();
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	strike();
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int unlink(const char *path)
{
	strike();
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int unlinkat(int dir, const char *path, int flags)
{
	strike();
	return (int)syscall(SYS_unlinkat, dir, path, flags);
}

/* -- a model of tensors around the borders of 8-bit blocks -- */

enum { TENSORS = 5, RANKS_MOST = 100 };
static const int64_t sizes[TENSORS][2] = {{80, 64}, {1, 7}, {3, 1500}, {16, 256}, {1, 4095}};

struct bed {
	char run[64];
	struct params p;
	uint8_t *memory[PARAMS_STATE_COUNT];
	json_t *state;
};

static void make_params(struct params *p, struct params_format format, bool reversed)
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
	p->m_scale = p->v_scale = (struct mat){.rows = blocks > 0, .cols = (int64_t)blocks, .dtype = DTYPE_F32};
	p->m_small = p->v_small = (struct mat){.rows = small > 0, .cols = (int64_t)small, .dtype = DTYPE_F32};
}

static uint8_t byte_of(int state, int tensor, uint64_t at, uint64_t step)
{
	return (uint8_t)(state * 31 + tensor * 7 + (int)(at % 251) + (int)(at / 251) + (int)step * 13);
}

/* Gives every state memory. Bytes depend on the tensor and the place in it, not on the order of the table. */
static void fill(struct params *p, uint8_t *memory[PARAMS_STATE_COUNT], bool blank, uint64_t step)
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
			const uint64_t first = dtype_bytes(m->dtype, r.first), count = dtype_bytes(m->dtype, r.count);

			for (uint64_t k = 0; k < count; k++)
				memory[s][first + k] = byte_of(s, p->table[i].name[1] - '0', k, step);
		}
	}
}

static void release(struct params *p, uint8_t *memory[PARAMS_STATE_COUNT])
{
	for (int s = 0; s < PARAMS_STATE_COUNT; s++)
		free(memory[s]);
	params_release(p);
}

static bool holds(struct params *p, uint64_t step)
{
	uint8_t *memory[PARAMS_STATE_COUNT] = {NULL};
	struct params like = *p;
	bool same = true;

	fill(&like, memory, false, step);
	for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
		const uint64_t bytes = params_state_bytes(p, (enum params_state)s);

		same = same && (!bytes || !memcmp(memory[s], params_state(p, (enum params_state)s)->data, bytes));
		free(memory[s]);
	}
	return same;
}

static int begin(void **state)
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

static int end(void **state)
{
	struct bed *b = *state;

	release(&b->p, b->memory);
	file_remove_tree(b->run);
	json_decref(b->state);
	free(b);
	return 0;
}

static void use_format(struct bed *b, enum moments moments, enum master master)
{
	release(&b->p, b->memory);
	memset(b->memory, 0, sizeof(b->memory));
	make_params(&b->p, (struct params_format){moments, master}, false);
}

/* One rank's side of a save. */
static enum status write_part(struct bed *b, const char *folder, uint64_t step, unsigned rank, unsigned ranks,
			      json_t *reports, struct error *err)
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

static enum status join(struct bed *b, const char *folder, uint64_t step, const json_t *reports, struct error *err)
{
	const struct checkpoint_part part = {.folder = folder};
	const struct checkpoint_source c = {
		.run = b->run, .step = step, .params = &b->p, .state = b->state, .part = &part};

	return checkpoint_join(&c, reports, err);
}

/* All ranks' sides of a save, one after another. */
static enum status save(struct bed *b, uint64_t step, unsigned ranks, struct error *err)
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

static void must_save(struct bed *b, uint64_t step, unsigned ranks)
{
	struct error err = {0};

	must(save(b, step, ranks, &err), &err);
}

static bool is_there(const struct bed *b, const char *name)
{
	char path[300];
	struct stat about;

	snprintf(path, sizeof(path), "%s/%s", b->run, name);
	return !stat(path, &about);
}

static bool no_temporary_folder(const struct bed *b)
{
	char command[128];

	snprintf(command, sizeof(command), "test -z \"$(ls %s | grep checkpoint-.*new)\"", b->run);
	return !system(command);
}

/* The newest checkpoint, read into states of another order. */
static uint64_t newest(struct bed *b, struct text *note)
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

static const struct params_format formats[] = {
	{MOMENTS_F32, MASTER_F32},  {MOMENTS_BF16, MASTER_F32},	  {MOMENTS_8BIT, MASTER_F32},
	{MOMENTS_8BIT, MASTER_SPLIT}, {MOMENTS_BF16, MASTER_NONE},
};

/* -- tests -- */

/* Each element of each state is in the part of exactly one rank, in order; a scale with its block's first element. */
static void parts_divide_every_state(void **state)
{
	struct bed *b = *state;

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
		use_format(b, formats[f].moments, formats[f].master);
		for (unsigned ranks = 1; ranks <= 9; ranks++) {
			for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
				const struct mat *m = params_state(&b->p, (enum params_state)s);
				size_t at = 0, first, last, before = 0;

				for (unsigned r = 0; r < ranks; r++) {
					struct params_range part;

					shard_range(&first, &last, b->p.length, r, ranks);
					assert_int_equal(first, before);
					before = last;
					part = params_part(&b->p, first, last, (enum params_state)s);
					if (m->rows)
						assert_int_equal(part.first, at);
					at += part.count;
				}
				assert_int_equal(before, b->p.length);
				assert_int_equal(at, m->rows * m->cols);
			}
		}
	}
	use_format(b, MOMENTS_8BIT, MASTER_F32); /* t0 has 5120 elements, in 20 blocks of 256 */
	assert_int_equal(params_part(&b->p, 0, 1, PARAMS_STATE_m_scale).count, 1);
	assert_int_equal(params_part(&b->p, 1, 256, PARAMS_STATE_m_scale).count, 0);
	assert_int_equal(params_part(&b->p, 256, 513, PARAMS_STATE_m_scale).first, 1);
	assert_int_equal(params_part(&b->p, 256, 513, PARAMS_STATE_m_scale).count, 2);
	assert_int_equal(params_part(&b->p, 0, b->p.length, PARAMS_STATE_v_small).count, 7 + 4095);
}

/* What `ranks` ranks wrote is read whole, and by each of other numbers of ranks its own range. */
static void every_division_is_read_into_every_other(void **state)
{
	static const unsigned numbers[] = {1, 2, 3, 4, 7};
	struct bed *b = *state;

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
		use_format(b, formats[f].moments, formats[f].master);
		for (size_t from = 0; from < 5; from++) {
			struct checkpoint_found found;
			struct text note = {0};
			struct error err = {0};

			must_save(b, 10 * f + from + 1, numbers[from]);
			assert_int_equal(newest(b, &note), 10 * f + from + 1);
			must(checkpoint_find(&found, b->run, &note, &err), &err);
			for (size_t to = 0; to < 5; to++)
				for (unsigned r = 0; r < numbers[to]; r++) {
					size_t first, last;
					struct shard own, like;
					void *memory;

					shard_range(&first, &last, b->p.length, r, numbers[to]);
					memory = calloc(1, shard_bytes(&b->p, first, last));
					assert_non_null(memory);
					shard_place(&own, &b->p, first, last, memory);
					shard_view(&like, &b->p, first, last);
					must(checkpoint_load_shard(&found, &b->p, &own, &err), &err);
					for (int s = 0; s < PARAMS_STATE_COUNT; s++)
						if (own.state[s].rows)
							assert_memory_equal(
								own.state[s].data, like.state[s].data,
								dtype_bytes(own.state[s].dtype,
									    (uint64_t)own.state[s].cols));
					free(memory);
				}
			assert_int_equal(note.size, 0);
			checkpoint_found_release(&found);
		}
		file_remove_tree(b->run);
		assert_int_equal(mkdir(b->run, 0777), 0);
	}
}

/* Checkpoints of one rank, of any version, and of several follow each other in a run. */
static void one_rank_and_several_follow_each_other(void **state)
{
	struct bed *b = *state;
	struct text note = {0};
	struct error err = {0};
	struct checkpoint_source c = {.run = b->run, .step = 1, .params = &b->p, .state = b->state};

	fill(&b->p, b->memory, false, 1);
	must(checkpoint_write(&c, &err), &err);
	assert_int_equal(newest(b, &note), 1);
	must_save(b, 2, 4);
	assert_int_equal(newest(b, &note), 2);
	must_save(b, 2, 2); /* again, on other ranks */
	assert_int_equal(newest(b, &note), 2);
	assert_true(is_there(b, "checkpoint-2/optimizer-00002-of-00002.bin"));
	assert_false(is_there(b, "checkpoint-2/optimizer-00002-of-00004.bin"));
	c.step = 3;
	fill(&b->p, b->memory, false, 3);
	must(checkpoint_write(&c, &err), &err);
	assert_int_equal(newest(b, &note), 3);
	assert_int_equal(note.size, 0);
	assert_true(no_temporary_folder(b));
}

static void more_than_64_files_are_read(void **state)
{
	struct bed *b = *state;
	struct text note = {0};

	must_save(b, 1, RANKS_MOST);
	assert_int_equal(newest(b, &note), 1);
	assert_int_equal(note.size, 0);
}

/* A rank may have nothing to write. */
static void more_ranks_than_elements(void **state)
{
	struct bed *b = *state;
	struct params tiny = {0};
	struct error err = {0};
	struct text note = {0};
	struct checkpoint_found f;
	struct params whole = b->p;
	float value[3][2] = {{1, 2}, {3, 4}, {5, 6}}, back[3][2] = {{0}};

	must(params_add(&tiny, "t0", 1, 2, 1, &err), &err);
	tiny.master = tiny.m = tiny.v = (struct mat){.rows = 1, .cols = 2, .dtype = DTYPE_F32};
	tiny.master.data = value[0];
	tiny.m.data = value[1];
	tiny.v.data = value[2];
	b->p = tiny;
	{
		char folder[PATH_MAX + 64];
		json_t *reports = json_array();

		must(checkpoint_folder(folder, b->run, 1, "00", &err), &err);
		for (unsigned r = 0; r < 5; r++)
			must(write_part(b, folder, 1, r, 5, reports, &err), &err);
		must(join(b, folder, 1, reports, &err), &err);
		json_decref(reports);
	}
	b->p = whole;
	must(checkpoint_find(&f, b->run, &note, &err), &err);
	tiny.master.data = back[0];
	tiny.m.data = back[1];
	tiny.v.data = back[2];
	must(checkpoint_load(&f, &tiny, &err), &err);
	assert_memory_equal(back, value, sizeof(value));
	checkpoint_found_release(&f);
	params_release(&tiny);
}

static void change(const struct bed *b, const char *file, long cut)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", b->run, file);
	if (cut) {
		assert_int_equal(truncate(path, cut), 0);
		return;
	}
	f = fopen(path, "r+");
	assert_non_null(f);
	assert_true(fputc('!', f) == '!');
	fclose(f);
}

static void damaged_shards_are_put_aside(void **state)
{
	struct bed *b = *state;
	struct text note = {0};

	must_save(b, 1, 3);
	must_save(b, 2, 3);
	must_save(b, 3, 3);
	change(b, "checkpoint-3/optimizer-00002-of-00003.bin", 100);
	change(b, "checkpoint-2/optimizer-00003-of-00003.bin", 0);
	assert_int_equal(newest(b, &note), 1);
	assert_non_null(strstr(text_str(&note), "checkpoint-3/optimizer-00002-of-00003.bin is cut: it has 100 bytes, and rank 1 wrote"));
	assert_non_null(strstr(text_str(&note), "checkpoint-2/optimizer-00003-of-00003.bin: its SHA-256 differs"));
	assert_non_null(strstr(text_str(&note), "that rank 2 wrote"));
	assert_true(is_there(b, "checkpoint-3.damaged"));
	text_release(&note);
}

/* The disk of another node may have it, so nothing is renamed and no older checkpoint is taken. */
static void a_missing_shard_is_an_error(void **state)
{
	struct bed *b = *state;
	struct text note = {0};
	struct error err = {0};
	struct checkpoint_found f;
	char path[300];

	must_save(b, 1, 4);
	must_save(b, 2, 4);
	snprintf(path, sizeof(path), "%s/checkpoint-2/optimizer-00004-of-00004.bin", b->run);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(checkpoint_find(&f, b->run, &note, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "checkpoint-2/optimizer-00004-of-00004.bin is not there; rank 3 wrote it"));
	assert_non_null(strstr(err.text, "on a disk that all nodes share; copy it there, or remove that checkpoint"));
	assert_int_equal(note.size, 0);
	assert_true(is_there(b, "checkpoint-2"));
	assert_null(f.manifest);
	error_clear(&err);
	assert_int_equal(checkpoint_open(&f, b->run, 2, &note, &err), STATUS_UNAVAILABLE);
	assert_true(f.elsewhere);
}

static void another_models_are_refused_by_the_manifest(void **state)
{
	struct bed *b = *state;
	struct text note = {0};
	struct error err = {0};
	struct checkpoint_found f;

	must_save(b, 1, 2);
	must(checkpoint_find(&f, b->run, &note, &err), &err);
	b->p.table[2].rows++;
	assert_int_equal(checkpoint_fits(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "parameter t2 has another size"));
	b->p.table[2].rows--;
	error_clear(&err);
	use_format(b, MOMENTS_8BIT, MASTER_F32);
	assert_int_equal(checkpoint_fits(&f, &b->p, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "F32 moments"));
	checkpoint_found_release(&f);
}

/* What rank 0 does not find as it was reported, or what has a gap, does not become a checkpoint. */
static void wrong_reports_make_no_checkpoint(void **state)
{
	struct bed *b = *state;

	must_save(b, 1, 2);
	for (int fault = 0; fault < 3; fault++) {
		static const char *const words[] = {"rank 1 wrote elements from", "optimizer-00002-of-00002.bin is cut",
						    "optimizer-00002-of-00002.bin is not there; rank 1 wrote it"};
		char folder[PATH_MAX + 64], path[PATH_MAX + 128];
		json_t *reports = json_array();
		struct error err = {0};
		struct text note = {0};

		fill(&b->p, b->memory, false, 2);
		must(checkpoint_folder(folder, b->run, 2, "abc", &err), &err);
		must(write_part(b, folder, 2, 0, 2, reports, &err), &err);
		must(write_part(b, folder, 2, 1, 2, reports, &err), &err);
		snprintf(path, sizeof(path), "%s/optimizer-00002-of-00002.bin", folder);
		if (!fault)
			json_object_set_new(json_array_get(reports, 1), "begin", json_integer(1));
		else
			assert_int_equal(fault == 1 ? truncate(path, 1) : unlink(path), 0);
		assert_int_not_equal(join(b, folder, 2, reports, &err), STATUS_OK);
		assert_non_null(strstr(err.text, words[fault]));
		assert_true(no_temporary_folder(b));
		assert_int_equal(newest(b, &note), 1);
		json_decref(reports);
	}
}

/* In a process of its own: a save that is killed before its n-th call. True: it was killed. */
static bool killed_at(struct bed *b, long call, unsigned ranks)
{
	struct error err = {0};
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		const struct checkpoint_source alone = {
			.run = b->run, .step = 2, .params = &b->p, .state = b->state};

		fill(&b->p, b->memory, false, 2);
		strikes_in = call;
		_exit((ranks ? save(b, 2, ranks, &err) : checkpoint_write(&alone, &err)) != STATUS_OK);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status);
}

/* Ranks 0: one rank writes everything. */
static void a_writer_killed_at_any_call_leaves_a_checkpoint(void **state)
{
	static const unsigned numbers[] = {0, 3};
	struct bed *b = *state;

	for (size_t i = 0; i < 2; i++) {
		long call = 0, became = -1;
		bool killed;

		do {
			struct text note = {0};
			uint64_t step;

			file_remove_tree(b->run);
			assert_int_equal(mkdir(b->run, 0777), 0);
			must_save(b, 1, 2);
			killed = killed_at(b, call, numbers[i]);
			step = newest(b, &note);
			if (step == 2 && became < 0)
				became = call;
			assert_int_equal(step, became < 0 ? 1 : 2); /* once it is there, it stays */
			assert_int_equal(note.size, 0);		    /* none is damaged */
			assert_true(no_temporary_folder(b));
			must_save(b, 3, 3); /* and the next run writes on */
			assert_int_equal(newest(b, &note), 3);
			call++;
		} while (killed);
		assert_true(became > 10 && became < call - 1);
		print_message("# %u ranks: %ld calls, a checkpoint from call %ld on\n", numbers[i], call - 1, became);
	}
}

/* A rank of an attempt that was given up still writes: the next attempt's files are others. */
static void an_old_attempt_writes_elsewhere(void **state)
{
	struct bed *b = *state;
	char old[PATH_MAX + 64];
	json_t *reports = json_array();
	struct error err = {0};
	struct text note = {0};
	struct checkpoint_found f;

	must_save(b, 1, 2);
	fill(&b->p, b->memory, false, 9);
	must(checkpoint_folder(old, b->run, 2, "aaaa", &err), &err);
	must(write_part(b, old, 2, 0, 2, reports, &err), &err);
	must(checkpoint_find(&f, b->run, &note, &err), &err); /* the next attempt begins */
	checkpoint_found_release(&f);
	assert_int_not_equal(write_part(b, old, 2, 1, 2, reports, &err), STATUS_OK);
	must_save(b, 2, 2);
	assert_int_equal(newest(b, &note), 2);
	json_decref(reports);
}

static enum status copy_states(void *arg, struct error *err)
{
	struct bed *b = arg;

	(void)err;
	fill(&b->p, b->memory, false, 4);
	return STATUS_OK;
}

static enum status told(void *arg, const char *run, uint64_t step, struct error *err)
{
	struct bed *b = arg;

	(void)run, (void)err;
	assert_int_equal(step, 4);
	assert_true(is_there(b, "checkpoint-4/checkpoint.json"));
	json_object_set_new(b->state, "told", json_true());
	return STATUS_OK;
}

/* The thread of each rank writes its shard, and that of rank 0 joins them. */
static void threads_write_shards_and_join_them(void **state)
{
	struct bed *b = *state;
	struct checkpoint_writer *w[2];
	struct shard shard[2];
	char folder[PATH_MAX + 64];
	json_t *reports = json_array();
	struct error err = {0};
	struct text note = {0};

	fill(&b->p, b->memory, false, 4);
	must(checkpoint_folder(folder, b->run, 4, "ff", &err), &err);
	for (unsigned r = 0; r < 2; r++) {
		size_t first, last;
		const struct checkpoint_part part = {.rank = r, .ranks = 2, .shard = &shard[r], .folder = folder};
		const struct checkpoint_source c = {.run = r ? NULL : b->run,
						    .step = 4,
						    .params = &b->p,
						    .state = r ? NULL : b->state,
						    .part = &part,
						    .take = copy_states,
						    .written = told,
						    .arg = b};
		json_t *report = NULL;

		shard_range(&first, &last, b->p.length, r, 2);
		shard_view(&shard[r], &b->p, first, last);
		must(checkpoint_writer_create(&w[r], 1, &err), &err);
		assert_true(checkpoint_writer_idle(w[r]));
		must(checkpoint_writer_begin(w[r], &c, 0, &err), &err);
		checkpoint_writer_taken(w[r]);
		must(checkpoint_writer_report(w[r], &report, &err), &err);
		assert_true(checkpoint_writer_idle(w[r]));
		json_array_append_new(reports, report);
	}
	assert_false(is_there(b, "checkpoint-4"));
	assert_null(json_object_get(b->state, "told"));
	must(checkpoint_writer_join(w[0], json_incref(reports), &err), &err);
	must(checkpoint_writer_wait(w[0], &err), &err);
	must(checkpoint_writer_wait(w[1], &err), &err);
	assert_non_null(json_object_get(b->state, "told"));
	assert_int_equal(newest(b, &note), 4);
	checkpoint_writer_free(w[0]);
	checkpoint_writer_free(w[1]);
	json_decref(reports);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(parts_divide_every_state),
		CASE(every_division_is_read_into_every_other),
		CASE(one_rank_and_several_follow_each_other),
		CASE(more_than_64_files_are_read),
		CASE(more_ranks_than_elements),
		CASE(damaged_shards_are_put_aside),
		CASE(a_missing_shard_is_an_error),
		CASE(another_models_are_refused_by_the_manifest),
		CASE(wrong_reports_make_no_checkpoint),
		CASE(a_writer_killed_at_any_call_leaves_a_checkpoint),
		CASE(an_old_attempt_writes_elsewhere),
		CASE(threads_write_shards_and_join_them),
	};

	return cmocka_run_group_tests_name("train_shards", tests, NULL, NULL);
}
