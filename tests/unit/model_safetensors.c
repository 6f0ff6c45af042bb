/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"
#include "test.h"

#include "core/file/file.h"
#include "core/text/text.h"
#include "model/files/safetensors/safetensors.h"
#include "model/files/safetensors/shards.h"

enum { DATA = 24 };

/* Length, header, `data` bytes that count up. Owner: caller. */
static uint8_t *file_of(const char *header, uint64_t length, size_t data, size_t *size)
{
	size_t header_size = strlen(header);
	uint8_t *file = malloc(8 + header_size + data);

	assert_non_null(file);
	for (int i = 0; i < 8; i++)
		file[i] = (uint8_t)(length >> 8 * i);
	memcpy(file + 8, header, header_size);
	for (size_t i = 0; i < data; i++)
		file[8 + header_size + i] = (uint8_t)i;
	*size = 8 + header_size + data;
	return file;
}

#define A(type, shape, offsets)                                                                              \
	"\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define B "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}"
#define GOOD_A A("BF16", "[2,4]", "[0,16]")

static void test_safetensors__a_good_file_is_read_in_order_of_place(void **state)
{
	const char *header =
		"{" B ",\"__metadata__\":{\"format\":\"pt\"}," GOOD_A ",\"none\":{\"dtype\":\"F32\","
		"\"shape\":[0,7],\"data_offsets\":[24,24]}}   ";
	struct safetensors s;
	struct error err = {0};
	size_t size;
	uint8_t *file = file_of(header, strlen(header), DATA, &size);

	(void)state;
	assert_int_equal(safetensors_parse(&s, "x", file, size, &err), STATUS_OK);
	assert_int_equal(s.count, 3);
	assert_string_equal(s.tensors[0].name, "a");
	assert_int_equal(s.tensors[0].dtype, DTYPE_BF16);
	assert_int_equal(s.tensors[0].rank, 2);
	assert_int_equal(s.tensors[0].dim[1], 4);
	assert_int_equal(s.tensors[0].data[15], 15);
	assert_string_equal(s.tensors[1].name, "b");
	assert_int_equal(s.tensors[1].data[0], 16);
	assert_int_equal(s.tensors[2].size, 0);
	safetensors_release(&s);
	free(file);
}

static void test_safetensors__every_lie_is_refused_with_file_and_tensor(void **state)
{
	static const struct {
		const char *header, *why;
	} lies[] = {
		{"[]", "not a JSON object"},
		{"{\"a\":", "not JSON"},
		{"{" GOOD_A "," GOOD_A "," B "}", "duplicate object key near '\"a\"'"},
		{"{" GOOD_A "," B "} x", "not JSON"},
		{"{" A("F33", "[2,4]", "[0,16]") "," B "}", "a: dtype \"F33\""},
		{"{" A("BF16", "[2,-4]", "[0,16]") "," B "}", "a: \"shape\""},
		{"{" A("BF16", "[2,4.0]", "[0,16]") "," B "}", "a: \"shape\""},
		{"{" A("BF16", "8", "[0,16]") "," B "}", "a: \"shape\""},
		{"{" A("BF16", "[1,1,1,1,1,1,1,2,4]", "[0,16]") "," B "}", "a: \"shape\""},
		{"{" A("BF16", "[4294967296,4294967296,2]", "[0,16]") "," B "}", "a: its shape is too large"},
		{"{" A("BF16", "[99999999999999999999]", "[0,16]") "," B "}", "not JSON"},
		{"{" A("BF16", "[2,4]", "[0,16,16]") "," B "}", "a: \"data_offsets\""},
		{"{" A("BF16", "[2,4]", "[16,0]") "," B "}", "a: \"data_offsets\""},
		{"{" A("BF16", "[2,4]", "[-16,0]") "," B "}", "a: \"data_offsets\""},
		{"{" A("BF16", "[2,4]", "{}") "," B "}", "a: \"data_offsets\""},
		{"{" A("BF16", "[2,4]", "[0,18]") "," B "}", "a: 18 bytes, but its shape needs 16 as BF16"},
		{"{" A("BF16", "[4,4]", "[0,32]") "," B "}", "a ends at byte 32 of 24"},
		{"{" A("BF16", "[2,4]", "[8,24]") "," B "}", "8 bytes before a belong to no tensor"},
		{"{" A("BF16", "[10]", "[0,20]") "," B "}", "a and b overlap"},
		{"{" A("BF16", "[4]", "[0,8]") "," B "}", "8 bytes before b belong to no tensor"},
		{"{" GOOD_A "}", "8 bytes after the last tensor, a belong to none"},
		{"{}", "24 bytes after the last tensor"},
		{"{\"__metadata__\":[]," GOOD_A "," B "}", "__metadata__ is not an object"},
		{"{\"__metadata__\":{\"k\":1}," GOOD_A "," B "}", "__metadata__: k is not a text"},
		{"{\"a\":null," B "}", "a: dtype"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct safetensors s;
		struct error err = {0};
		size_t size;
		uint8_t *file = file_of(lies[i].header, strlen(lies[i].header), DATA, &size);

		if (safetensors_parse(&s, "dir/x.safetensors", file, size, &err) != STATUS_BAD_INPUT ||
		    !strstr(err.text, lies[i].why) || strncmp(err.text, "dir/x.safetensors: ", 19))
			fail_msg("%s: \"%s\" lacks \"%s\"", lies[i].header, err.text, lies[i].why);
		assert_null(s.tensors);
		free(file);
	}
}

static void test_safetensors__a_file_cut_anywhere_is_refused(void **state)
{
	const char *header = "{" GOOD_A "," B "}";
	size_t size;
	uint8_t *file = file_of(header, strlen(header), DATA, &size);

	(void)state;
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut + 1); /* its own block: a read past its end is seen */
		struct safetensors s;
		struct error err = {0};

		memcpy(copy, file, cut);
		assert_int_equal(safetensors_parse(&s, "x", copy, cut, &err), STATUS_BAD_INPUT);
		free(copy);
	}
	free(file);
}

static void test_safetensors__a_header_over_100_mb_is_refused(void **state)
{
	struct safetensors s;
	struct error err = {0};
	size_t size;
	uint8_t *file = file_of("{}", 100000001, 0, &size);

	(void)state;
	assert_int_equal(safetensors_parse(&s, "x", file, size, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "exceeds the maximum of 100 MB"));
	memset(file, 0xff, 8);
	err = (struct error){0};
	assert_int_equal(safetensors_parse(&s, "x", file, size, &err), STATUS_BAD_INPUT);
	free(file);
}

/* What jansson has at once, at most. */
static size_t json_bytes, json_bytes_most;

static void *counted_malloc(size_t size)
{
	size_t *p = malloc(size + 16);

	if (!p)
		return NULL;
	*p = size;
	json_bytes += size;
	if (json_bytes > json_bytes_most)
		json_bytes_most = json_bytes;
	return p + 2;
}

static void counted_free(void *p)
{
	size_t *at = p;

	if (!p)
		return;
	json_bytes -= at[-2];
	free(at - 2);
}

/* `lead`, `count` times `each` with a number in it where it has one, `tail`. */
static enum status parse_many(const char *lead, const char *each, size_t count, const char *tail, struct error *err)
{
	struct text t = {0};
	struct safetensors s;
	enum status st;
	uint8_t *file;
	size_t size;

	text_add(&t, lead);
	for (size_t i = 0; i < count; i++) {
		const char *sign = strchr(each, '#');

		if (i)
			text_add(&t, ",");
		if (sign)
			text_addf(&t, "%.*s%zu%s", (int)(sign - each), each, i, sign + 1);
		else
			text_add(&t, each);
	}
	text_add(&t, tail);
	file = file_of(text_str(&t), t.size, 0, &size);
	json_bytes = json_bytes_most = 0;
	json_set_alloc_funcs(counted_malloc, counted_free);
	st = safetensors_parse(&s, "x", file, size, err);
	if (json_bytes_most > 3 * t.size)
		fail_msg("%zu bytes for a header of %zu", json_bytes_most, t.size);
	if (!st)
		safetensors_release(&s);
	json_set_alloc_funcs(malloc, free);
	assert_int_equal(json_bytes, 0);
	free(file);
	text_release(&t);
	return st;
}

/* A header of 95 MB took 4.3 GB. Whatever it has, it is read in a few times its bytes. */
static void test_safetensors__a_header_takes_a_few_times_its_bytes(void **state)
{
	enum { MANY = 300000 };
	static const struct {
		const char *lead, *each, *tail, *why;
	} hostile[] = {
		{"{\"a\":[", "[]", "]}", "x: a: its entry has 900001 bytes; the maximum is 4096"},
		{"{\"__metadata__\":{\"k\":[", "[]", "]}}", "x: __metadata__: k is not a text"},
		{"{\"__metadata__\":{", "\"#\":\"\"", "}}", "x: __metadata__ has more than 65536 entries"},
		{"{", "\"#\":1", "}", "x: 300000 entries in a header of"},
		{"{\"__metadata__\":{},\"__metadata__\":{", "\"#\":\"\"", "}}", "x: __metadata__ occurs twice"},
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		err = (struct error){0};
		assert_int_equal(parse_many(hostile[i].lead, hostile[i].each, MANY, hostile[i].tail, &err),
				 STATUS_BAD_INPUT);
		if (strncmp(err.text, hostile[i].why, strlen(hostile[i].why)))
			fail_msg("%s", err.text);
	}
	err = (struct error){0};
	if (parse_many("{", "\"model.layers.#.mlp.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
		       100000, "}", &err))
		fail_msg("%s", err.text);
}

static const float numbers[] = {1, -2, 3.5f, 4, 5, 6};

/* Two tensors and an empty one of these numbers. */
static enum status write_file(const char *dir, const char *name, const char *first, struct error *err)
{
	const struct tensor tensors[] = {
		{.name = first, .dtype = DTYPE_F32, .rank = 2, .dim = {2, 2}},
		{.name = "empty", .dtype = DTYPE_F16, .rank = 1, .dim = {0}},
		{.name = "second", .dtype = DTYPE_F32, .rank = 0},
	};
	struct safetensors_writer w;
	char path[PATH_MAX];
	enum status st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	st = safetensors_write_begin(&w, path, tensors, 3, NULL, err);
	for (int i = 0; i < 5 && !st; i++)
		st = safetensors_write(&w, &numbers[i], sizeof(float), err);
	return safetensors_write_end(&w, st, err);
}

static void test_safetensors__what_is_written_is_read_back(void **state)
{
	struct safetensors s;
	struct error err = {0};
	char path[PATH_MAX];

	assert_int_equal(write_file(*state, "x.safetensors", "a \"quoted\" \xc3\xa9", &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/x.safetensors", (char *)*state);
	assert_int_equal(safetensors_open(&s, path, &err), STATUS_OK);
	assert_int_equal(s.count, 3);
	assert_string_equal(s.tensors[0].name, "a \"quoted\" \xc3\xa9");
	assert_int_equal((s.tensors[0].data - (const uint8_t *)s.map) % 8, 0);
	assert_memory_equal(s.tensors[0].data, numbers, 16);
	assert_memory_equal(s.tensors[2].data, numbers + 4, 4);
	safetensors_release(&s);
}

static void test_safetensors__an_unfinished_file_is_not_there(void **state)
{
	const struct tensor tensor = {.name = "a", .dtype = DTYPE_F32, .rank = 1, .dim = {3}};
	struct safetensors_writer w;
	struct error err = {0};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/x", (char *)*state);
	assert_int_equal(safetensors_write_begin(&w, path, &tensor, 1, NULL, &err), STATUS_OK);
	assert_int_equal(safetensors_write(&w, numbers, 8, &err), STATUS_OK);
	assert_int_equal(safetensors_write_end(&w, STATUS_OK, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "a was not written completely"));
	assert_int_equal(access(path, F_OK), -1);
	err = (struct error){0};
	assert_int_equal(safetensors_write_begin(&w, path, &tensor, 1, NULL, &err), STATUS_OK);
	assert_int_equal(safetensors_write(&w, numbers, 16, &err), STATUS_BUG);
	assert_int_equal(safetensors_write_end(&w, STATUS_BUG, &err), STATUS_BUG);
	assert_int_equal(access(path, F_OK), -1);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), NULL), STATUS_OK);
}

#define INDEX "model.safetensors.index.json"
#define MAP(rest) "{\"metadata\":{},\"weight_map\":{" rest "}}"

static void test_shards__index_and_files_must_say_the_same(void **state)
{
	static const struct {
		const char *index, *why;
	} lies[] = {
		{MAP("\"a\":\"1.st\",\"empty\":\"1.st\",\"second\":\"1.st\""), NULL},
		{MAP("\"a\":\"1.st\",\"empty\":\"1.st\""), "second is in"},
		{MAP("\"a\":\"1.st\",\"empty\":\"1.st\",\"second\":\"1.st\",\"b\":\"1.st\""),
		 "b is not in 1.st"},
		{MAP("\"a\":\"1.st\",\"empty\":\"1.st\",\"second\":\"2.st\""), "2.st"},
		{MAP("\"a\":\"../1.st\""), "a: not the name of a file in this folder"},
		{MAP("\"a\":7"), "a: not the name of a file in this folder"},
		{MAP("\"a\":\"1.st\",\"a\":\"1.st\""), "a key occurs twice"},
		{"{\"weight_map\":[]}", "weight_map is missing"},
		{"{", INDEX ":1"},
	};
	const char *dir = *state;

	assert_int_equal(write_file(dir, "1.st", "a", NULL), STATUS_OK);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct shards s;
		struct error err = {0};
		enum status st;

		put(dir, INDEX, lies[i].index);
		st = shards_open(&s, dir, &err);
		if (!lies[i].why) {
			assert_int_equal(st, STATUS_OK);
			assert_memory_equal(shards_find(&s, "second")->data, numbers + 4, 4);
			assert_null(shards_find(&s, "third"));
			shards_release(&s);
		} else if (!st || !strstr(err.text, lies[i].why)) {
			fail_msg("%s: \"%s\" lacks \"%s\"", lies[i].index, err.text, lies[i].why);
		}
	}
}

static void test_shards__a_tensor_in_two_files_and_no_file_at_all_are_refused(void **state)
{
	const char *dir = *state;
	struct error err = {0};
	struct shards s;

	assert_int_equal(shards_open(&s, dir, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "neither model.safetensors nor"));
	put(dir, "pytorch_model.bin", "");
	err = (struct error){0};
	assert_int_equal(shards_open(&s, dir, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "pytorch_model.bin is not supported"));
	assert_int_equal(write_file(dir, "1.st", "a", NULL), STATUS_OK);
	assert_int_equal(write_file(dir, "2.st", "b", NULL), STATUS_OK);
	put(dir, INDEX, MAP("\"a\":\"1.st\",\"b\":\"2.st\",\"second\":\"1.st\",\"empty\":\"1.st\""));
	err = (struct error){0};
	assert_int_equal(shards_open(&s, dir, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "is in two files"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_safetensors__a_good_file_is_read_in_order_of_place),
		cmocka_unit_test(test_safetensors__every_lie_is_refused_with_file_and_tensor),
		cmocka_unit_test(test_safetensors__a_file_cut_anywhere_is_refused),
		cmocka_unit_test(test_safetensors__a_header_over_100_mb_is_refused),
		cmocka_unit_test(test_safetensors__a_header_takes_a_few_times_its_bytes),
		scratch_test(test_safetensors__what_is_written_is_read_back),
		scratch_test(test_safetensors__an_unfinished_file_is_not_there),
		scratch_test(test_shards__index_and_files_must_say_the_same),
		scratch_test(test_shards__a_tensor_in_two_files_and_no_file_at_all_are_refused),
	};

	return cmocka_run_group_tests_name("model_safetensors", tests, NULL, NULL);
}
