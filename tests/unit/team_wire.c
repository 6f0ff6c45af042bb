/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "team/transport/frame.h"

static struct wire_key key_of(unsigned char first)
{
	struct wire_key k;

	for (unsigned i = 0; i < sizeof(k.bytes); i++)
		k.bytes[i] = (unsigned char)(first + i);
	return k;
}

/* By hmac and hashlib of Python, over the layout that wire.h tells. */
static void test_wire__a_frame_is_what_the_header_says(void **state)
{
	static const unsigned char want[] = {'A', 'S', 'T', 'M', 1, 6, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, '{', '"', 'a', '"', ':', '1',
					     '}', 0x95, 0x5b, 0xa0, 0x38, 0x13, 0x7e, 0x3b, 0x3a, 0x17, 0x49, 0x70, 0x37, 0x8d,
					     0xad, 0xcf, 0x06};
	static const unsigned char want_key[] = {0xc1, 0x82, 0xa5, 0xcd, 0xc9, 0x1e, 0x3d, 0x9a};
	unsigned char frame[64];
	struct wire_key key = key_of(0);

	(void)state;
	assert_int_equal(wire_build(frame, WIRE_LINE, "{\"a\":1}", 7, 5, &key), sizeof(want));
	assert_memory_equal(frame, want, sizeof(want));
	wire_key(&key, "0123456789abcdef", "rank", "hello", 5, "challenge", 9);
	assert_memory_equal(key.bytes, want_key, sizeof(want_key));
}

static void test_wire__keys_differ_by_all_that_was_said(void **state)
{
	struct wire_key a, b;

	(void)state;
	wire_key(&a, "0123456789abcdef", "rank", "hello", 5, "challenge", 9);
	wire_key(&b, "0123456789abcdeg", "rank", "hello", 5, "challenge", 9);
	assert_memory_not_equal(&a, &b, sizeof(a));
	wire_key(&b, "0123456789abcdef", "rank 0", "hello", 5, "challenge", 9);
	assert_memory_not_equal(&a, &b, sizeof(a));
	wire_key(&b, "0123456789abcdef", "rank", "helloc", 6, "hallenge", 8);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

static void test_wire__frames_come_in_pieces_and_together(void **state)
{
	struct wire_in in = {.keyed = true, .key = key_of(9), .most = WIRE_FRAME_MAX};
	unsigned char bytes[256];
	struct error err = {0};
	struct wire_frame f;
	size_t size;

	(void)state;
	size = wire_build(bytes, WIRE_PING, "{}", 2, 0, &in.key);
	size += wire_build(bytes + size, WIRE_BYE, NULL, 0, 1, &in.key);
	for (size_t i = 0; i + 1 < size; i++) {
		assert_int_equal(wire_put(&in, bytes + i, 1, &err), STATUS_OK);
		if (wire_take(&in, &f, &err) == WIRE_MORE)
			continue;
		assert_int_equal(i, WIRE_HEADER + 2 + WIRE_MAC - 1);
		assert_int_equal(f.kind, WIRE_PING);
		assert_memory_equal(f.payload, "{}", f.size);
	}
	assert_int_equal(wire_put(&in, bytes + size - 1, 1, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_FRAME);
	assert_int_equal(f.kind, WIRE_BYE);
	assert_int_equal(f.size, 0);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_MORE);
	in.next = 0;
	assert_int_equal(wire_put(&in, bytes, size, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_FRAME);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_FRAME);
	assert_int_equal(f.kind, WIRE_BYE);
	wire_release(&in);
	wire_release(&in);
}

struct broken {
	size_t at; /* byte changed to.. */
	unsigned char to;
	const char *says;
};

static void test_wire__what_is_broken_says_why_and_stays_so(void **state)
{
	static const struct broken rows[] = {
		{0, 'X', "from a process of a team"}, {4, 2, "version 2"},	   {5, 200, "unknown kind"}, {6, 1, "unknown kind"},
		{10, 1, "the limit is"},   {12, 9, "frame number 9"}, {17, 'x', "another secret"}, {20, 7, "another secret"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wire_in in = {.keyed = true, .key = key_of(1)};
		struct error err = {0};
		unsigned char bytes[64];
		struct wire_frame f;
		size_t size = wire_build(bytes, WIRE_LINE, "{}", 2, 0, &in.key);

		bytes[rows[i].at] = rows[i].to;
		assert_int_equal(wire_put(&in, bytes, size, &err), STATUS_OK);
		assert_int_equal(wire_take(&in, &f, &err), WIRE_BROKEN);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s", err.text);
		assert_int_equal(wire_take(&in, &f, &err), WIRE_BROKEN);
		wire_release(&in);
	}
}

static void test_wire__a_frame_sent_again_or_back_is_refused(void **state)
{
	struct wire_in in = {.keyed = true, .key = key_of(1)};
	struct wire_key other = key_of(2);
	struct error err = {0};
	unsigned char bytes[64];
	struct wire_frame f;
	size_t size = wire_build(bytes, WIRE_LINE, "{}", 2, 0, &in.key);

	(void)state;
	assert_int_equal(wire_put(&in, bytes, size, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_FRAME);
	assert_int_equal(wire_put(&in, bytes, size, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_BROKEN);
	assert_non_null(strstr(err.text, "frame number 0; number 1"));
	error_clear(&err);
	wire_release(&in);
	in = (struct wire_in){.keyed = true, .key = key_of(1)};
	size = wire_build(bytes, WIRE_LINE, "{}", 2, 0, &other);
	assert_int_equal(wire_put(&in, bytes, size, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_BROKEN);
	assert_int_equal(err.cause, CAUSE_TEAM_REFUSED);
	wire_release(&in);
}

static void test_wire__a_stranger_is_held_to_little(void **state)
{
	static unsigned char bytes[WIRE_FRAME_MAX + 64];
	struct wire_in in = {0};
	struct error err = {0};
	struct wire_frame f;
	size_t size = wire_build(bytes, WIRE_HELLO, bytes + WIRE_HEADER, WIRE_STRANGER_MAX + 1, 0, NULL);

	(void)state;
	assert_int_equal(wire_put(&in, bytes, WIRE_HEADER, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_BROKEN);
	assert_non_null(strstr(err.text, "513 bytes; the limit is 512"));
	error_clear(&err);
	wire_release(&in);
	assert_int_equal(wire_put(&in, bytes, size + WIRE_MAC, &err), STATUS_BAD_INPUT);
	error_clear(&err);
	in.most = WIRE_FRAME_MAX; /* known: two megabytes, no more */
	size = wire_build(bytes, WIRE_SHARE, bytes + WIRE_HEADER, WIRE_FRAME_MAX, 0, NULL);
	for (size_t at = 0; at < size; at += WIRE_CHUNK)
		assert_int_equal(wire_put(&in, bytes + at, size - at < WIRE_CHUNK ? size - at : WIRE_CHUNK, &err), STATUS_OK);
	assert_int_equal(wire_take(&in, &f, &err), WIRE_FRAME);
	assert_int_equal(f.size, WIRE_FRAME_MAX);
	wire_release(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire__a_frame_is_what_the_header_says),
		cmocka_unit_test(test_wire__keys_differ_by_all_that_was_said),
		cmocka_unit_test(test_wire__frames_come_in_pieces_and_together),
		cmocka_unit_test(test_wire__what_is_broken_says_why_and_stays_so),
		cmocka_unit_test(test_wire__a_frame_sent_again_or_back_is_refused),
		cmocka_unit_test(test_wire__a_stranger_is_held_to_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
