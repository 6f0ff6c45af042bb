/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that ranks of meshes tensor x data write, each its range of its parts of tensors: every mesh's
 * is read into every other mesh, and manifests that lie are refused. */
#include "unit/test.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/manifest.h"
#include "unit/must.h"
#include "unit/split_bed.h"

struct mesh {
	unsigned tensor, data; /* tensor 1: whole tensors */
};
static const struct mesh meshes[] = {{1, 3}, {2, 1}, {2, 2}, {4, 3}, {8, 1}};
enum { MESHES = sizeof(meshes) / sizeof(meshes[0]), STATES = PARAMS_STATE_v + 1 };

static char folder[64];

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/train_parts.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	file_remove_tree(folder);
	return 0;
}

/* One rank's model: 2 key-value heads, which four or eight ranks share; 57 ids are not divisible. */
static void open_rank(struct bed *b, const struct mesh *m, unsigned tensor_rank)
{
	struct bed_options o = {.family = FAMILY_QWEN2, .full = true, .heads = 8, .kv_heads = 2, .vocab = 57};

	o.threads = 1;
	if (m->tensor > 1)
		o.split = (struct model_split){.rank = tensor_rank, .ranks = m->tensor};
	bed_open(b, &o);
}

static float number_of(int state, int tensor, int64_t row, int64_t col, uint64_t step)
{
	return (float)(state + 1) * 1e6F + (float)tensor * 1e4F + (float)(row * 100 + col) + (float)step / 8;
}

/* The place of tensor i in the whole one. */
static struct split_part place(const struct bed *b, int i)
{
	const struct param *p = &b->model->params.table[i];

	return b->model->whole ? split_place(b, i) : (struct split_part){.rows = p->rows, .cols = p->cols};
}

/* Puts the numbers of a step to all states, or compares them. Rows beyond the vocabulary are 0. */
static void each(struct bed *b, uint64_t step, bool compare)
{
	struct params *p = &b->model->params;

	for (int s = 0; s < STATES; s++)
		for (int i = 0; i < p->count; i++) {
			const struct mat view =
				params_view(params_state(p, (enum params_state)s), &p->table[i]);
			const struct split_part at = place(b, i);

			for (int64_t row = 0; row < view.rows; row++)
				for (int64_t col = 0; col < view.cols; col++) {
					const float want = row < at.rows ? number_of(s, i, at.row + row,
										     at.col + col, step)
									 : 0;
					const size_t k = (size_t)(row * view.ld + col);

					if (!compare)
						bed_set(&view, k, (double)want);
					else if (bed_get(&view, k) != (double)want)
						fail_msg("state %d of %s: (%d, %d) is %g, not %g", s,
							 p->table[i].name, (int)row, (int)col,
							 bed_get(&view, k), (double)want);
				}
		}
}

/* All ranks of the mesh write, one after the other, and rank 0 makes a checkpoint of it. */
static void save(const struct mesh *m, uint64_t step)
{
	json_t *state = json_pack("{s:i}", "global_step", 1), *reports = json_array();
	char path[PATH_MAX + 64];
	struct error err = {0};
	const unsigned ranks = m->tensor * m->data;

	must(checkpoint_folder(path, folder, step, "0123456789abcdef", &err), &err);
	for (unsigned r = ranks; r-- > 0;) { /* rank 0 last, which joins */
		struct checkpoint_parts parts = {0};
		struct checkpoint_part part = {.rank = r, .ranks = ranks, .folder = path};
		struct checkpoint_source c = {.run = folder, .step = step, .state = state, .part = &part};
		json_t *report = NULL;
		struct shard shard;
		size_t first, last;
		struct bed b;

		open_rank(&b, m, r % m->tensor);
		each(&b, step, false);
		c.params = &b.model->params;
		if (m->tensor > 1) {
			must(checkpoint_parts_make(&parts, b.model, &err), &err);
			part.parts = &parts;
		}
		shard_range(&first, &last, b.model->params.length, r / m->tensor, m->data);
		shard_view(&shard, &b.model->params, first, last);
		part.shard = &shard;
		must(checkpoint_write_part(&c, &report, &err), &err);
		json_array_insert_new(reports, 0, report);
		if (!r)
			must(checkpoint_join(&c, reports, &err), &err);
		checkpoint_parts_release(&parts);
		bed_close(&b);
	}
	json_decref(state);
	json_decref(reports);
}

static void open_found(struct checkpoint_found *f, uint64_t step)
{
	struct text note = {0};
	struct error err = {0};

	must(checkpoint_open(f, folder, step, &note, &err), &err);
	assert_int_equal(note.size, 0);
}

/* Each rank of the mesh reads its own range, in three pieces that begin anywhere. */
static void read_into(const struct checkpoint_found *f, const struct mesh *m)
{
	for (unsigned t = 0; t < m->tensor; t++) {
		struct checkpoint_parts parts = {0};
		struct error err = {0};
		struct bed b;

		open_rank(&b, m, t);
		if (m->tensor > 1)
			must(checkpoint_parts_make(&parts, b.model, &err), &err);
		for (unsigned d = 0; d < 3; d++) {
			struct shard own;
			size_t first, last;

			shard_range(&first, &last, b.model->params.length, d, 3);
			shard_view(&own, &b.model->params, first, last);
			if (m->tensor > 1)
				must(checkpoint_load_part(f, &parts, &own, &err), &err);
			else
				must(checkpoint_load_shard(f, &b.model->params, &own, &err), &err);
		}
		each(&b, f->step, true);
		checkpoint_parts_release(&parts);
		bed_close(&b);
	}
}

static void test_parts__every_mesh_is_read_into_every_other(void **state)
{
	(void)state;
	for (uint64_t from = 0; from < MESHES; from++) {
		struct checkpoint_found f;

		save(&meshes[from], from + 1);
		open_found(&f, from + 1);
		for (size_t to = 0; to < MESHES; to++)
			read_into(&f, &meshes[to]);
		checkpoint_found_release(&f);
	}
}

/* As one rank exports a model: rows of tensors, without complete states. */
static void test_parts__weights_are_read_by_rows(void **state)
{
	struct checkpoint_found f;
	struct error err = {0};
	struct params table;
	struct bed b;
	float *got;

	(void)state;
	save(&meshes[3], 9);
	open_found(&f, 9);
	open_rank(&b, &meshes[0], 0);
	table = params_whole(&b.model->params);
	got = calloc(b.model->params.length, sizeof(*got));
	assert_non_null(got);
	for (int i = 0; i < table.count; i++) {
		const struct param *one = &table.table[i];

		for (int64_t row = 0; row < one->rows; row += 2) {
			const int64_t rows = one->rows - row < 2 ? one->rows - row : 2;

			must(checkpoint_weights(&f, &table, one, (size_t)(row * one->cols),
						(size_t)(rows * one->cols), got, &err),
			     &err);
			for (int64_t k = 0; k < rows * one->cols; k++)
				assert_true(got[k] == number_of(0, i, row + k / one->cols, k % one->cols, 9));
		}
	}
	free(got);
	bed_close(&b);
	checkpoint_found_release(&f);
}

/* -- manifests that lie -- */

static json_t *part_at(json_t *manifest, size_t part)
{
	return json_array_get(json_object_get(manifest, "parts"), part);
}

static json_t *tensor_at(json_t *manifest, size_t part, size_t index)
{
	return json_array_get(json_object_get(part_at(manifest, part), "parameters"), index);
}

static json_t *shard_at(json_t *manifest, size_t index)
{
	return json_array_get(json_object_get(manifest, "shards"), index);
}

static void set(json_t *map, const char *key, json_int_t value)
{
	json_object_set_new(map, key, json_integer(value));
}

static json_int_t get(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

enum lie {
	NO_PARTS,
	EMPTY_PARTS,
	OTHER_SCHEMA,
	OTHER_NAME,
	FEWER_TENSORS,
	BEYOND_ROWS,
	BEYOND_COLUMNS,
	BEYOND_VECTOR,
	NEGATIVE,
	NO_ROWS,
	HOLE_IN_ROWS,
	HOLE_IN_COLUMNS,
	SHARD_OF_NO_PART,
	SHARD_OF_UNKNOWN_PART,
	SHARD_OF_OTHER_PART,
	GAP,
	SHORT_STATE,
	LONG_PART,
	LIES
};

/* Tensor 0 is the embedding, which is divided by rows. */
static size_t index_of(json_t *manifest, const char *name)
{
	json_t *list = json_object_get(manifest, "parameters"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (strstr(json_string_value(json_object_get(one, "name")), name))
			return i;
	}
	fail_msg("there is no %s", name);
	return 0;
}

static const char *tell(json_t *m, enum lie lie)
{
	json_t *down = tensor_at(m, 1, index_of(m, "down_proj")), *embed = tensor_at(m, 1, 0),
	       *shard = shard_at(m, 1), *state;

	switch (lie) {
	case NO_PARTS:
		json_object_del(m, "parts");
		return "lists no parts of tensors";
	case EMPTY_PARTS:
		json_array_clear(json_object_get(m, "parts"));
		return "lists no parts of tensors";
	case OTHER_SCHEMA:
		set(m, "schema", CHECKPOINT_SCHEMA_SHARDS);
		return "its schema has no parts";
	case OTHER_NAME:
		json_object_set_new(embed, "name", json_string("model.norm.weight"));
		return "lies outside";
	case FEWER_TENSORS:
		json_array_remove(json_object_get(part_at(m, 1), "parameters"), 0);
		return "has other parameters";
	case BEYOND_ROWS:
		set(embed, "row", get(embed, "row") + 1);
		return "lies outside";
	case BEYOND_COLUMNS:
		set(down, "col", get(down, "col") + 1);
		return "lies outside";
	case BEYOND_VECTOR:
		set(embed, "offset", get(part_at(m, 1), "length") - 1);
		return "lies outside";
	case NEGATIVE:
		set(embed, "row", -1);
		return "lies outside";
	case NO_ROWS:
		set(embed, "rows", 0);
		return "lies outside";
	case HOLE_IN_ROWS:
		set(embed, "rows", get(embed, "rows") - 1);
		return "do not cover a parameter";
	case HOLE_IN_COLUMNS:
		set(down, "cols", get(down, "cols") - 1);
		return "do not cover a parameter";
	case SHARD_OF_NO_PART:
		json_object_del(shard, "part");
		return "a shard is of no part";
	case SHARD_OF_UNKNOWN_PART:
		set(shard, "part", 2);
		return "a shard is of no part, or of one that is not listed";
	case SHARD_OF_OTHER_PART:
		set(shard, "part", 1);
		return "do not cover the vector exactly";
	case GAP:
		set(shard, "begin", get(shard, "begin") + 1);
		return "do not cover the vector exactly";
	case SHORT_STATE:
		state = json_array_get(json_object_get(shard, "states"), 1);
		set(state, "count", get(state, "count") - 1);
		return "do not cover a state exactly";
	case LONG_PART:
		set(part_at(m, 1), "length", get(part_at(m, 1), "length") + 1);
		return "do not cover the vector exactly";
	default:
		return "";
	}
}

static void test_parts__manifests_that_lie_are_refused(void **state)
{
	struct checkpoint_found f;

	(void)state;
	save(&meshes[2], 20);
	open_found(&f, 20);
	assert_int_equal(get(f.manifest, "schema"), CHECKPOINT_SCHEMA_PARTS);
	for (int lie = 0; lie <= LIES; lie++) {
		json_t *copy = json_deep_copy(f.manifest), *read = NULL;
		const char *words = tell(copy, (enum lie)lie);
		char *text = json_dumps(copy, JSON_COMPACT);
		struct error err = {0};
		const enum status st = manifest_parse(&read, "m", text, strlen(text), &err);

		assert_int_equal(st, lie == LIES ? STATUS_OK : STATUS_BAD_INPUT);
		if (st && !strstr(err.text, words))
			fail_msg("lie %d is refused with: %s", lie, err.text);
		free(text);
		json_decref(copy);
		json_decref(read);
	}
	checkpoint_found_release(&f);
}

static void test_parts__what_ranks_did_not_write_is_no_checkpoint(void **state)
{
	struct checkpoint_parts parts;
	struct error err = {0};
	json_t *reports = json_array(), *manifest = NULL;
	struct bed b;

	(void)state;
	open_rank(&b, &meshes[1], 0);
	must(checkpoint_parts_make(&parts, b.model, &err), &err);
	assert_int_equal(manifest_join(&manifest, folder, 1, &b.model->params, &parts, reports, &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "the ranks wrote 0 of"));
	assert_null(manifest);
	checkpoint_parts_release(&parts);
	bed_close(&b);
	json_decref(reports);
}

/* The sizes that count are those of whole tensors. */
static void test_parts__another_model_is_refused(void **state)
{
	struct checkpoint_found f;
	struct error err = {0};
	struct params table;
	struct bed b;

	(void)state;
	save(&meshes[2], 30);
	open_found(&f, 30);
	open_rank(&b, &meshes[0], 0);
	table = params_whole(&b.model->params);
	must(checkpoint_fits(&f, &table, &err), &err);
	b.model->params.table[1].cols++;
	assert_int_equal(checkpoint_fits(&f, &table, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "has another size"));
	bed_close(&b);
	checkpoint_found_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_parts__every_mesh_is_read_into_every_other, begin, end),
		cmocka_unit_test_setup_teardown(test_parts__weights_are_read_by_rows, begin, end),
		cmocka_unit_test_setup_teardown(test_parts__manifests_that_lie_are_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_parts__what_ranks_did_not_write_is_no_checkpoint, begin,
						end),
		cmocka_unit_test_setup_teardown(test_parts__another_model_is_refused, begin, end),
	};

	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
