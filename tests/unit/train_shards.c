/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that several ranks write, each its shard of the flat vector: every division is read into every
 * other one. */
#include "shards_bed.h"

static const struct params_format formats[] = {
	{MOMENTS_F32, MASTER_F32},    {MOMENTS_BF16, MASTER_F32},  {MOMENTS_8BIT, MASTER_F32},
	{MOMENTS_8BIT, MASTER_SPLIT}, {MOMENTS_BF16, MASTER_NONE},
};

/* Each element of each state is in the part of exactly one rank, in order; a scale with its block's first
 * element. */
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

/* A rank that holds only its range: what it writes and reads is that range of complete states. */
static void a_rank_may_hold_only_its_range(void **state)
{
	enum { RANKS = 4 };
	struct bed *b = *state;

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
		/* the begin of a tensor, whole blocks in one, and a rank with nothing */
		size_t border[RANKS + 1] = {0, 5127, 5127, 5127 + 512, 0};

		use_format(b, formats[f].moments, formats[f].master);
		fill(&b->p, b->memory, false, 1);
		border[RANKS] = b->p.length;
		for (unsigned r = 0; r < RANKS; r++) {
			struct params own = b->p;
			struct shard whole, part;

			own.border = border;
			own.shards = (struct params_shards){.rank = r, .ranks = RANKS, .master = true};
			shard_view(&whole, &b->p, border[r], border[r + 1]);
			for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
				struct mat *m = params_state(&own, (enum params_state)s);

				if (!m->rows)
					continue;
				m->data = whole.state[s].data;
				m->cols = whole.state[s].cols;
			}
			shard_view(&part, &own, border[r], border[r + 1]);
			for (int s = 0; s < PARAMS_STATE_COUNT; s++) {
				assert_int_equal(part.state[s].cols, whole.state[s].cols);
				if (whole.state[s].cols)
					assert_ptr_equal(part.state[s].data, whole.state[s].data);
			}
		}
	}
}

/* The weights of each parameter, without any other state and without a complete copy. */
static void weights_are_read_from_shards(void **state)
{
	struct bed *b = *state;

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++) {
		struct checkpoint_found found;
		struct text note = {0};
		struct error err = {0};
		struct params table;

		use_format(b, formats[f].moments, formats[f].master);
		must_save(b, f + 1, 3);
		must(checkpoint_find(&found, b->run, &note, &err), &err);
		table = params_whole(&b->p);
		for (int i = 0; i < b->p.count; i++) {
			const struct param *one = &b->p.table[i];
			const size_t count = (size_t)(one->rows * one->cols), half = count / 2;
			float *is = calloc(count, sizeof(*is)), *want = calloc(count, sizeof(*want));

			assert_true(is && want);
			params_master(&b->p, one->offset, count, want);
			must(checkpoint_weights(&found, &table, one, 0, half, is, &err), &err);
			must(checkpoint_weights(&found, &table, one, half, count - half, is + half, &err),
			     &err);
			assert_memory_equal(is, want, count * sizeof(*is));
			free(is);
			free(want);
		}
		checkpoint_found_release(&found);
	}
}

static void states_without_memory_are_left_out(void **state)
{
	struct bed *b = *state;
	uint8_t *memory[PARAMS_STATE_COUNT] = {NULL};
	struct checkpoint_found found;
	struct error err = {0};
	struct params some;
	char path[PATH_MAX];

	must_save(b, 7, 3);
	snprintf(path, sizeof(path), "%s/checkpoint-8", b->run);
	assert_int_not_equal(checkpoint_reopen(&found, path, 8, &err), STATUS_OK);
	assert_null(found.manifest);
	error_clear(&err);
	snprintf(path, sizeof(path), "%s/checkpoint-7", b->run);
	must(checkpoint_reopen(&found, path, 7, &err), &err);
	make_params(&some, b->p.format, false);
	fill(&some, memory, true, 0);
	some.m.data = some.v.data = NULL;
	must(checkpoint_load(&found, &some, &err), &err);
	assert_memory_equal(some.master.data, b->p.master.data,
			    params_state_bytes(&b->p, PARAMS_STATE_master));
	assert_int_equal(*memory[PARAMS_STATE_m], 0);
	release(&some, memory);
	checkpoint_found_release(&found);
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
		const struct checkpoint_part part = {
			.rank = r, .ranks = 2, .shard = &shard[r], .folder = folder};
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
		CASE(a_rank_may_hold_only_its_range),
		CASE(weights_are_read_from_shards),
		CASE(states_without_memory_are_left_out),
		CASE(more_ranks_than_elements),
		CASE(threads_write_shards_and_join_them),
	};

	return cmocka_run_group_tests_name("train_shards", tests, NULL, NULL);
}
