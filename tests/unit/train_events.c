/* SPDX-License-Identifier: Apache-2.0 */
/* The file's bytes; tests/oracles/train_events.py has TensorBoard read one. */
#include "test.h"

#include <dirent.h>
#include "core/file/file.h"
#include "train/tensorboard/events.h"

/* By TensorBoard's own format: version, then train/loss 0.5 at step 1, both at time 0. */
static const char version_hex[] = "1800000000000000a37f4b220900000000000000001a0d627261696e2e4576656e743a32eedf28a3";
static const char scalar_hex[] = "200000000000000029eda95009000000000000000010012a130a110a0a747261696e2f6c6f7373150000003f"
				 "e77b7b3c";

static void hex_of(char *out, const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		snprintf(out + 2 * i, 3, "%02x", (unsigned char)data[i]);
}

/* The only file of the folder. */
static void find_only(char *out, size_t size, const char *dir)
{
	DIR *d = opendir(dir);
	int found = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (*e->d_name != '.') {
			snprintf(out, size, "%s/%.255s", dir, e->d_name);
			found++;
		}
	closedir(d);
	assert_int_equal(found, 1);
}

static void bytes_are_the_formats(void **state)
{
	const struct scalar loss = {"train/loss", 0.5};
	char dir[] = "/tmp/train_events.XXXXXX", path[512], *data, hex[400];
	struct error err = {0};
	struct events *e;
	size_t size;

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (events_open(&e, dir, 0, &err) == STATUS_UNAVAILABLE) {
		assert_non_null(strstr(err.text, "without protobuf-c"));
		file_remove_tree(dir);
		skip();
	}
	assert_int_equal(events_add(e, 0, 1, &loss, 1, &err), STATUS_OK);
	events_close(&e);
	assert_null(e);
	find_only(path, sizeof(path), dir);
	assert_non_null(strstr(path, "/events.out.tfevents.0.assay."));
	assert_int_equal(file_read(&data, &size, path, 1 << 16, &err), STATUS_OK);
	assert_int_equal(size, 40 + 48);
	hex_of(hex, data, size);
	assert_memory_equal(hex, version_hex, 80);
	assert_string_equal(hex + 80, scalar_hex);
	free(data);
	file_remove_tree(dir);
}

/* A zero is a value, not an absence: three values take three times as much. */
static void a_zero_is_written(void **state)
{
	const struct scalar scalars[] = {{"a", 0}, {"b", 0}, {"c", 1}};
	char dir[] = "/tmp/train_events.XXXXXX", path[512], *data;
	struct error err = {0};
	struct events *e;
	size_t size;

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (events_open(&e, dir, 0, &err)) {
		file_remove_tree(dir);
		skip();
	}
	assert_int_equal(events_add(e, 1.5, 0, scalars, 3, &err), STATUS_OK);
	events_close(&e);
	find_only(path, sizeof(path), dir);
	assert_int_equal(file_read(&data, &size, path, 1 << 16, &err), STATUS_OK);
	assert_int_equal(size, 40 + 16 + 9 + 2 + 2 + 3 * (2 + 3 + 5));
	free(data);
	file_remove_tree(dir);
}

static void a_folder_that_cannot_be_is_told(void **state)
{
	struct error err = {0};
	struct events *e;

	(void)state;
	assert_int_not_equal(events_open(&e, "/dev/null/events", 0, &err), STATUS_OK);
	assert_null(e);
	assert_non_null(strstr(err.text, "/dev/null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_the_formats),
		cmocka_unit_test(a_zero_is_written),
		cmocka_unit_test(a_folder_that_cannot_be_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
