/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/pseudonym.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The tree with its names replaced, under one salt. Owner: caller. */
static json_t *hidden(const char *text, const char *salt)
{
	struct pseudonyms *p = pseudonyms_new_salted(salt);
	json_t *tree = json_loads(text, 0, NULL);

	assert_non_null(tree);
	pseudonyms_learn(p, tree);
	pseudonyms_apply(p, tree);
	pseudonyms_free(p);
	return tree;
}

static const char *text_at(const json_t *tree, const char *key)
{
	return json_string_value(json_object_get(tree, key));
}

static void test_pseudonym__learnt_names_go_everywhere(void **state)
{
	json_t *t = hidden(
		"{\"hostname\": \"node-17.example\", \"serial\": [0, \"1752724029374\"],"
		" \"log\": \"node-17.example: board 1752724029374 lost\", \"other\": \"x1752724029374\"}",
		"s");

	(void)state;
	assert_null(strstr(text_at(t, "log"), "node-17"));
	assert_null(strstr(text_at(t, "log"), "1752724029374"));
	assert_non_null(strstr(text_at(t, "log"), text_at(t, "hostname")));
	assert_non_null(strstr(text_at(t, "log"),
			       json_string_value(json_array_get(json_object_get(t, "serial"), 1))));
	assert_string_equal(text_at(t, "other"), "x1752724029374"); /* within another word: not the name */
	json_decref(t);
}

static void test_pseudonym__forms_are_known_and_kept(void **state)
{
	json_t *t = hidden(
		"{\"uuid\": \"GPU-ad216db3-f10e-74c4-821f-8716bde4735f\", \"mac\": \"9c:63:c0:11:22:33\","
		" \"guid\": \"fe80:0000:0000:0000:9c63:c003:0011:2233\", \"node_guid\": "
		"\"9c63:c003:0011:2233\", \"gid\": \"0000:0000:0000:0000:0000:ffff:0a01:0203\"}",
		"s");
	unsigned a, b, c, d, e, f;

	(void)state;
	assert_int_equal(strlen(text_at(t, "uuid")), strlen("GPU-ad216db3-f10e-74c4-821f-8716bde4735f"));
	assert_null(strstr(text_at(t, "uuid"), "ad216db3"));
	assert_int_equal(strncmp(text_at(t, "uuid"), "GPU-", 4), 0);
	assert_int_equal(sscanf(text_at(t, "mac"), "%2x:%2x:%2x:%2x:%2x:%2x", &a, &b, &c, &d, &e, &f), 6);
	assert_null(strstr(text_at(t, "mac"), "9c:63"));
	assert_null(strstr(text_at(t, "guid"), "c003"));
	assert_null(strstr(text_at(t, "node_guid"), "c003"));
	assert_null(strstr(text_at(t, "gid"), "0a01"));
	assert_int_equal(strncmp(text_at(t, "gid"), "0000:0000:0000:0000:0000:ffff:c000:02", 37), 0);
	assert_true(pseudonym_is(text_at(t, "gid"), strlen(text_at(t, "gid"))));
	json_decref(t);
}

static void test_pseudonym__facts_stay(void **state)
{
	static const char *const text =
		"{\"pci\": \"0000:1b:00.0\", \"version\": \"580.159.04\", \"zero\": \"00:00:00:00:00:00\","
		" \"vbios\": \"96.00.DA.00.0C\", \"speed\": \"32.0 GT/s PCIe\", \"cpus\": \"0-95,192-287\","
		" \"cublas\": \"13.1.0.3\"}";
	json_t *t = hidden(text, "s"), *before = json_loads(text, 0, NULL);

	(void)state;
	assert_true(json_equal(t, before));
	json_decref(t);
	json_decref(before);
}

static void test_pseudonym__addresses_go_where_addresses_stand(void **state)
{
	json_t *t = hidden("{\"environment\": {\"NCCL_SOCKET\": \"10.20.30.40:29500\"}, \"filesystems\":"
			   " [{\"device\": \"10.1.2.3:/export\"}], \"version\": \"10.20.30.40\"}",
			   "s");

	(void)state;
	assert_null(strstr(text_at(json_object_get(t, "environment"), "NCCL_SOCKET"), "10.20"));
	assert_non_null(strstr(text_at(json_object_get(t, "environment"), "NCCL_SOCKET"), ":29500"));
	assert_null(
		strstr(text_at(json_array_get(json_object_get(t, "filesystems"), 0), "device"), "10.1.2.3"));
	assert_string_equal(text_at(t, "version"), "10.20.30.40");
	json_decref(t);
}

/* A journal's facts have no `user`, but paths. */
static void test_pseudonym__homes_name_their_users(void **state)
{
	json_t *t =
		hidden("{\"places\": [{\"path\": \"/home/alice.doe/runs\"}], \"mount\": \"/home/alice.doe\","
		       " \"LD_LIBRARY_PATH\": \"/lib:/home/bob1:/home/alice.doe/lib\"}",
		       "s");
	char *text = json_dumps(t, 0);

	(void)state;
	assert_null(strstr(text, "alice"));
	assert_null(strstr(text, "bob1"));
	assert_non_null(strstr(text, "/runs"));
	free(text);
	json_decref(t);
}

static void test_pseudonym__what_is_one_stays(void **state)
{
	static const char *const ours[] = {
		"host-e4fbdd19", "serial-427b4a74",
		"GPU-4d699d33",	 "GPU-4d699d33-0000-0000-0000-000000000000",
		"192.0.2.17",
	};
	static const char *const others[] = {
		"host-17",    "node-3.example",	 "GPU-ad216db3-f10e-74c4-821f-8716bde4735f",
		"192.0.21.7", "serial-427B4A74", "host-e4fbdd190",
	};
	json_t *once, *twice;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_true(pseudonym_is(ours[i], strlen(ours[i])));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(pseudonym_is(others[i], strlen(others[i])));
	once = hidden("{\"hostname\": \"rack7-node3\", \"serial\": \"1650224012345\", \"text\": "
		      "\"rack7-node3 is up\","
		      "\"uuid\": \"GPU-ad216db3-f10e-74c4-821f-8716bde4735f\"}",
		      "one");
	assert_non_null(strstr(text_at(once, "uuid"), "-0000-0000-0000-000000000000"));
	text = json_dumps(once, 0);
	twice = hidden(text, "two"); /* another machine reads it */
	free(text);
	assert_true(json_equal(once, twice));
	json_decref(once);
	json_decref(twice);
}

static void test_pseudonym__the_salt_decides(void **state)
{
	static const char *const text = "{\"hostname\": \"vm\"}";
	json_t *a = hidden(text, "one"), *b = hidden(text, "one"), *c = hidden(text, "two");

	(void)state;
	assert_string_not_equal(text_at(a, "hostname"), "vm"); /* short, but under its own key */
	assert_string_equal(text_at(a, "hostname"), text_at(b, "hostname"));
	assert_string_not_equal(text_at(a, "hostname"), text_at(c, "hostname"));
	json_decref(a);
	json_decref(b);
	json_decref(c);
}

static void test_pseudonym__commands_and_users_go(void **state)
{
	json_t *t =
		hidden("{\"compute_processes\": [0, [{\"pid\": 7, \"name\": \"/opt/secret/train\"}]],"
		       " \"kernel_log\": [\"NVRM: Xid (PCI:0000:1b:00): 31, pid=7, name=train.py, Ch 8\"],"
		       " \"user\": {\"name\": \"gerda\", \"home\": \"/home/gerda\"},"
		       " \"path\": \"/home/gerda/lib/libcublas.so.13\"}",
		       "s");
	json_t *p = json_array_get(json_array_get(json_object_get(t, "compute_processes"), 1), 0);
	const char *line = json_string_value(json_array_get(json_object_get(t, "kernel_log"), 0));

	(void)state;
	assert_null(strstr(line, "train"));
	assert_non_null(strstr(line, "Xid (PCI:0000:1b:00): 31, pid=7, name=process-"));
	assert_null(strstr(text_at(p, "name"), "secret"));
	assert_null(strstr(text_at(t, "path"), "gerda"));
	assert_non_null(strstr(text_at(t, "path"), "/lib/libcublas.so.13"));
	json_decref(t);
}

/* Two recordings of one machine share no pseudonym, so none of them can be found by trying all serials. */
static void test_pseudonym__each_recording_has_its_own(void **state)
{
	const char *shown[2];
	json_t *tree[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pseudonyms *p = pseudonyms_new_once();

		tree[i] = json_loads("{\"serial\": \"1752724029374\", \"log\": \"board 1752724029374\"}", 0, NULL);
		assert_non_null(p);
		pseudonyms_learn(p, tree[i]);
		pseudonyms_apply(p, tree[i]);
		pseudonyms_free(p);
		shown[i] = text_at(tree[i], "serial");
		assert_int_equal(strncmp(shown[i], "serial-", 7), 0);
		assert_non_null(strstr(text_at(tree[i], "log"), shown[i])); /* within one it is the same */
	}
	assert_string_not_equal(shown[0], shown[1]);
	json_decref(tree[0]);
	json_decref(tree[1]);
}

/* A report's, by the salt of its run; without one as they were before there was one. */
static void test_pseudonym__a_report_s_depends_on_its_run(void **state)
{
	char old[32], one[32], other[32], kind[32], again[32];

	(void)state;
	pseudonym_make(old, "address", NULL, "192.168.7.9");
	assert_string_equal(old, "address-6d571638");
	pseudonym_make(one, "address", "00112233445566778899aabbccddeeff", "192.168.7.9");
	pseudonym_make(again, "address", "00112233445566778899aabbccddeeff", "192.168.7.9");
	pseudonym_make(other, "address", "10112233445566778899aabbccddeeff", "192.168.7.9");
	pseudonym_make(kind, "host", "00112233445566778899aabbccddeeff", "192.168.7.9");
	assert_string_equal(one, again);
	assert_string_not_equal(one, old);
	assert_string_not_equal(one, other);
	assert_string_not_equal(one + 8, kind + 5);
	assert_true(pseudonym_is(one, strlen(one)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pseudonym__learnt_names_go_everywhere),
		cmocka_unit_test(test_pseudonym__forms_are_known_and_kept),
		cmocka_unit_test(test_pseudonym__facts_stay),
		cmocka_unit_test(test_pseudonym__addresses_go_where_addresses_stand),
		cmocka_unit_test(test_pseudonym__homes_name_their_users),
		cmocka_unit_test(test_pseudonym__what_is_one_stays),
		cmocka_unit_test(test_pseudonym__the_salt_decides),
		cmocka_unit_test(test_pseudonym__commands_and_users_go),
		cmocka_unit_test(test_pseudonym__each_recording_has_its_own),
		cmocka_unit_test(test_pseudonym__a_report_s_depends_on_its_run),
	};

	return cmocka_run_group_tests_name("pseudonym", tests, NULL, NULL);
}
