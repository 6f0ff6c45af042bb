/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of each recorded machine against docs/schema/machine.schema.json, and how `assay info` sets them.
 */
#include "cmd/info/info.h"
#include <dirent.h>
#include <unistd.h>
#include "core/json/member.h"
#include "machine/facts/facts.h"
#include "schema.h"

#define REPLAY SOURCE_DIR "/tests/replay"

static json_t *load_schema(void)
{
	json_t *schema = json_load_file(SOURCE_DIR "/docs/schema/machine.schema.json", 0, NULL);

	assert_non_null(schema);
	return schema;
}

static struct machine *recorded(const char *name)
{
	char path[512];
	struct machine *m = NULL;
	struct error err = {0};

	snprintf(path, sizeof(path), REPLAY "/%s", name);
	if (machine_read(&m, LAYER_SOFTWARE, path, NULL, &err))
		fail_msg("%s", err.text);
	return m;
}

static void check(const json_t *schema, const struct machine *m, const char *name)
{
	char why[256] = "";

	if (!schema_valid(schema, machine_json(m), why, sizeof(why)))
		fail_msg("%s: %s", name, why);
}

static void test_info__every_machines_facts_are_valid(void **state)
{
	json_t *schema = load_schema();
	struct machine *m = NULL;
	DIR *dir = opendir(REPLAY);
	struct dirent *e;
	unsigned count = 0;

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		char path[512];

		snprintf(path, sizeof(path), REPLAY "/%.200s/recording.json", e->d_name);
		if (e->d_name[0] == '.' || access(path, F_OK))
			continue;
		m = recorded(e->d_name);
		check(schema, m, e->d_name);
		machine_free(m);
		count++;
	}
	closedir(dir);
	assert_true(count > 30);
	assert_int_equal(machine_read(&m, LAYER_HOST, NULL, NULL, NULL), STATUS_OK);
	check(schema, m, "this machine");
	machine_free(m);
	json_decref(schema);
}

/* A validator that takes everything would prove nothing. */
static void test_info__wrong_facts_are_refused(void **state)
{
	static const struct {
		const char *part, *key;
	} wrong[] = {{"cpu", "threads"}, {"memory", "invented"}, {"driver", "loaded"}};
	json_t *schema = load_schema();
	struct machine *m = recorded("h200-sxm-1");
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *facts = json_deep_copy(machine_json(m));

		json_object_set_new(json_object_get(facts, wrong[i].part), wrong[i].key, json_integer(-1));
		assert_false(schema_valid(schema, facts, why, sizeof(why)));
		json_decref(facts);
	}
	machine_free(m);
	json_decref(schema);
}

static void test_info__the_schema_has_every_fact(void **state)
{
	json_t *schema = load_schema();
	const json_t *facts = json_object_get(
		json_object_get(json_object_get(json_object_get(schema, "$defs"), "facts"), "properties"),
		"cc");

	(void)state;
	assert_non_null(facts);
	facts = json_object_get(json_object_get(json_object_get(schema, "$defs"), "facts"), "properties");
	assert_int_equal(json_object_size(facts), GPU_FACT_COUNT);
	for (unsigned i = 0; i < GPU_FACT_COUNT; i++)
		assert_non_null(json_object_get(facts, gpu_fact_name((enum gpu_fact)i)));
	json_decref(schema);
}

static void test_info__every_fact_of_a_gpu_is_shown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < GPU_FACT_COUNT; i++) {
		if (!info_gpu_shows((enum gpu_fact)i))
			fail_msg("no row shows %s", gpu_fact_name((enum gpu_fact)i));
	}
}

static void test_info__columns_are_aligned(void **state)
{
	struct text t = {0};

	(void)state;
	info_columns(&t, "name\t>size\tempty\tkind\na\t1\t\tx\nlonger\t1000\t\n\t\t\tlast\n");
	assert_string_equal(text_str(&t), "  name    size  kind\n"
					  "  a          1  x\n"
					  "  longer  1000\n"
					  "                last\n");
	text_release(&t);
	text_add(&t, "Title\n");
	info_columns(&t, "a\nb\n");
	assert_string_equal(text_str(&t), "Title\n  a\n  b\n");
	info_columns(&t, "c\nd\n"); /* off the rows above */
	assert_string_equal(text_str(&t), "Title\n  a\n  b\n\n  c\n  d\n");
	text_release(&t);
}

static void test_info__a_row_says_why_it_is_not_whole(void **state)
{
	struct machine *m = recorded("h200-sxm-1"), *cut = NULL;
	json_t *facts = json_deep_copy(machine_json(m));
	json_t *gpu = json_array_get(json_object_get(facts, "gpus"), 0);
	struct text t = {0};

	(void)state;
	json_object_del(json_object_get(gpu, "facts"), "memory_free_bytes");
	json_object_set_new(json_object_get(gpu, "unreadable"), "memory_free_bytes",
			    json_string("permission denied"));
	assert_int_equal(machine_from_json(&cut, facts, NULL), STATUS_OK);
	info_gpu(&t, cut);
	assert_non_null(strstr(text_str(&t), "140 GiB, ? free (?: permission denied)\n"));
	assert_non_null(strstr(text_str(&t), "pages retired       unreadable: not supported"));
	text_release(&t);
	json_decref(facts);
	machine_free(cut);
	machine_free(m);
}

/* udev's copy of the firmware's table, as systemd writes it: two modules and an empty slot. */
static void test_info__modules_are_read_from_udev(void **state)
{
	json_t *list = dmi_udev_parse("I:1\n"
				      "E:MEMORY_ARRAY_NUM_DEVICES=3\n"
				      "E:MEMORY_DEVICE_0_SIZE=68719476736\n"
				      "E:MEMORY_DEVICE_0_LOCATOR=DIMM_A1\n"
				      "E:MEMORY_DEVICE_0_TYPE=DDR5\n"
				      "E:MEMORY_DEVICE_0_SPEED_MTS=6400\n"
				      "E:MEMORY_DEVICE_0_SERIAL_NUMBER=12345678\n"
				      "E:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=5600\n"
				      "E:MEMORY_DEVICE_1_PRESENT=0\n"
				      "E:MEMORY_DEVICE_1_LOCATOR=DIMM_A2\n"
				      "E:MEMORY_DEVICE_2_SIZE=68719476736\n"
				      "E:MEMORY_DEVICE_2_LOCATOR=DIMM_B1\n"
				      "E:MEMORY_DEVICE_2_TYPE=DDR5\n");
	json_t *wanted = json_pack("[{s:s,s:I,s:s,s:i,s:i},{s:s,s:I,s:s}]", "locator", "DIMM_A1", "bytes",
				   (json_int_t)64 << 30, "type", "DDR5", "mts", 6400, "mts_configured", 5600,
				   "locator", "DIMM_B1", "bytes", (json_int_t)64 << 30, "type", "DDR5");

	(void)state;
	assert_true(json_equal(list, wanted));
	json_decref(list);
	json_decref(wanted);
	list = dmi_udev_parse("");
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
}

/* Free space is told of the file system that the folder lies on, there yet or not. */
static void test_info__places_lie_on_their_mounts(void **state)
{
	json_t *recording = json_pack(
		"{s:{s:{s:s,s:[{s:s,s:s,s:s},{s:s,s:s,s:s},{s:s,s:s,s:s}],s:{s:s,s:s}}}}", "host", "value",
		"output", "/data/runs/new", "filesystems", "device", "/dev/a", "mount", "/", "type", "ext4",
		"device", "/dev/b", "mount", "/data", "type", "xfs", "device", "/dev/c", "mount", "/data/ru",
		"type", "xfs", "places", "output", "/elsewhere", "temporary", "/tmp");
	static const char *const mounts[] = {"/data", "/"};
	struct source *s = NULL;
	json_t *facts;

	(void)state;
	assert_non_null(recording);
	assert_int_equal(source_from_json(&s, recording, NULL), STATUS_OK);
	facts = facts_read(s, &(struct machine_scope){.up_to = LAYER_HOST});
	for (size_t i = 0; i < 2; i++) {
		const json_t *places = json_object_get(json_object_get(facts, "storage"), "places");

		assert_int_equal(json_array_size(places), 2);
		assert_string_equal(json_member_text(json_array_get(places, i), "mount"), mounts[i]);
	}
	json_decref(facts);
	json_decref(recording);
	source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info__every_machines_facts_are_valid),
		cmocka_unit_test(test_info__wrong_facts_are_refused),
		cmocka_unit_test(test_info__the_schema_has_every_fact),
		cmocka_unit_test(test_info__every_fact_of_a_gpu_is_shown),
		cmocka_unit_test(test_info__columns_are_aligned),
		cmocka_unit_test(test_info__a_row_says_why_it_is_not_whole),
		cmocka_unit_test(test_info__modules_are_read_from_udev),
		cmocka_unit_test(test_info__places_lie_on_their_mounts),
	};

	return cmocka_run_group_tests_name("info", tests, NULL, NULL);
}
