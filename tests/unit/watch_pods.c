/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a kubelet, as bytes: pods and devices, and each way in which an answer is none. */
#include "test.h"

#include <stdbool.h>

#include "watch/pods/pods.h"

/* One pod "p" in the namespace "n" with the container "c" and the device of this ID, which has 5 bytes. */
#define DEVICE(id) "\x12\x05" id
#define CONTAINER(size, devices) "\x1a" size "\x0a\x01" "c" "\x12" devices
#define POD(size, containers) "\x0a" size "\x0a\x01" "p" "\x12\x01" "n" containers
static const char good[] = "\0\0\0\0\x16" POD("\x14", CONTAINER("\x0c", "\x07" DEVICE("GPU-a")));
static const char others[] = "\0\0\0\0\x16" POD("\x14", CONTAINER("\x0c", "\x07" DEVICE("mlx-0")));

static bool is_built(void)
{
	struct error err = {0};
	json_t *pods = json_object();
	const enum status st = pods_message_read(pods, (const uint8_t *)"", 0, &err);

	json_decref(pods);
	assert_true(st == STATUS_OK || st == STATUS_UNAVAILABLE);
	if (st)
		assert_non_null(strstr(err.text, "built without protobuf-c"));
	return !st;
}

static void test_pods(void **state)
{
	struct error err = {0};
	json_t *pods = NULL;

	(void)state;
	if (!is_built()) {
		assert_int_equal(pods_read(&pods, good, sizeof(good) - 1, &err), STATUS_UNAVAILABLE);
		assert_null(pods);
		return;
	}
	assert_int_equal(pods_read(&pods, good, sizeof(good) - 1, &err), STATUS_OK);
	assert_int_equal(json_object_size(pods), 1);
	assert_string_equal(json_string_value(json_array_get(json_object_get(pods, "GPU-a"), 0)), "p");
	assert_string_equal(json_string_value(json_array_get(json_object_get(pods, "GPU-a"), 1)), "n");
	assert_string_equal(json_string_value(json_array_get(json_object_get(pods, "GPU-a"), 2)), "c");
	json_decref(pods);
	assert_int_equal(pods_read(&pods, others, sizeof(others) - 1, &err), STATUS_OK);
	assert_int_equal(json_object_size(pods), 0);
	json_decref(pods);
	assert_int_equal(pods_read(&pods, "\0\0\0\0\0", 5, &err), STATUS_OK); /* no pods at all */
	assert_int_equal(json_object_size(pods), 0);
	json_decref(pods);
}

static void refused(const char *bytes, size_t size, const char *words)
{
	struct error err = {0};
	json_t *pods = (json_t *)(uintptr_t)1;

	assert_int_equal(pods_read(&pods, bytes, size, &err), STATUS_BAD_INPUT);
	assert_null(pods);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
}

static void test_bad_answers(void **state)
{
	char bytes[sizeof(good)];

	(void)state;
	refused("", 0, "is not one message");
	refused(good, 4, "is not one message");
	refused(good, sizeof(good) - 2, "is not one message");
	memcpy(bytes, good, sizeof(good));
	bytes[4]++;
	refused(bytes, sizeof(good) - 1, "is not one message");
	memcpy(bytes, good, sizeof(good));
	bytes[0] = 1;
	refused(bytes, sizeof(good) - 1, "is compressed");
	if (!is_built())
		return;
	memcpy(bytes, good, sizeof(good));
	bytes[6] = 0x7f; /* the pod is longer than the message */
	refused(bytes, sizeof(good) - 1, "is not a list of pods");
	memcpy(bytes, good, sizeof(good));
	bytes[9] = (char)0xff; /* the pod's name */
	refused(bytes, sizeof(good) - 1, "is not UTF-8");
}

static void test_no_kubelet(void **state)
{
	struct error err = {0};
	json_t *pods;

	(void)state;
	assert_int_equal(pods_ask(&pods, "/nowhere/kubelet.sock", &err), STATUS_UNAVAILABLE);
	assert_null(pods);
	setenv("DCGM_POD_RESOURCES_KUBELET_SOCKET", "/nowhere/kubelet.sock", 1);
	assert_string_equal(pods_socket(), "/nowhere/kubelet.sock");
	unsetenv("DCGM_POD_RESOURCES_KUBELET_SOCKET");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_no_kubelet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
