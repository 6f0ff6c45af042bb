/* SPDX-License-Identifier: Apache-2.0 */
/* What a report's words are made of: names that are replaced, widths in columns, quantities. */
#include "test.h"
#include <math.h>
#include "report/text/pseudonym_map.h"
#include "core/text/width.h"
#include "report/text/format.h"

static void replaced(const char *in, const char *want)
{
	struct pseudonym_map n = {0};
	char out[256];

	pseudonym_map_copy(&n, out, sizeof(out), in);
	assert_string_equal(out, want);
}

static void test_report__a_nodes_pseudonym_stays_or_is_told_by_name(void **state)
{
	struct record_node nodes[2] = {{.name = "host-11ccc27a"}, {.name = "host-11ccc27a-rank-4"}};
	const struct record r = {.node = nodes, .node_count = 2};
	static const char in[] = "rank 5 on host-11ccc27a-rank-4, not host-11ccc27a; host-11ccc27a-rank-40";
	struct pseudonym_map n;
	char out[256];

	(void)state;
	pseudonym_map_init(&n, &r, NULL, false);
	pseudonym_map_copy(&n, out, sizeof(out), in);
	assert_string_equal(out, in); /* what stands for a name already is not replaced again */
	pseudonym_map_set(&n, "host-11ccc27a", "gpu1");
	pseudonym_map_set(&n, "host-11ccc27a-rank-4", "gpu2");
	pseudonym_map_copy(&n, out, sizeof(out), in);
	assert_string_equal(out, "rank 5 on gpu2, not gpu1; gpu1-rank-40");
	pseudonym_map_release(&n);
	text_copy(nodes[0].name, sizeof(nodes[0].name), "rack1-rank-4"); /* a name that is real */
	pseudonym_map_init(&n, &r, NULL, false);
	pseudonym_map_copy(&n, out, sizeof(out), "rack1-rank-4");
	assert_null(strstr(out, "rack1"));
	pseudonym_map_release(&n);
}

static void test_report__versions_and_pci_addresses_are_no_names(void **state)
{
	(void)state;
	replaced("0000:1b:00.0 is slow", "0000:1b:00.0 is slow");
	replaced("cuBLAS 13.1.0.3", "cuBLAS 13.1.0.3");
	replaced("libcublas.so.13.1.0.3", "libcublas.so.13.1.0.3");
	replaced("driver 580.159.04", "driver 580.159.04");
	replaced("at 12:30:59", "at 12:30:59");
	replaced("no 10.1.2.3.4 either", "no 10.1.2.3.4 either");
	replaced("peer 192.168.7.9:8080", "peer address-6d571638:8080");
	replaced("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1");
	replaced("", "");
}

static void padded(const char *s, unsigned columns, enum width_align align, const char *want)
{
	struct text out = {0};

	width_add(&out, s, columns, align);
	assert_string_equal(text_str(&out), want);
	assert_int_equal(width_of(text_str(&out)), columns);
	text_release(&out);
}

static void test_report__width_counts_columns_not_bytes(void **state)
{
	(void)state;
	assert_int_equal(width_of("µs"), 2);
	assert_int_equal(width_of("日本"), 4);
	assert_int_equal(width_of("e\xcc\x81"), 1);
	assert_int_equal(width_of("\xff\xfe"), 2);
	padded("abc", 5, WIDTH_LEFT, "abc  ");
	padded("abc", 5, WIDTH_RIGHT, "  abc");
	padded("abcdef", 4, WIDTH_LEFT, "abc…");
	padded("日本語", 5, WIDTH_LEFT, "日本…");
	padded("日本語", 4, WIDTH_LEFT, "日 …");
	padded("a\033[b", 4, WIDTH_LEFT, "a [b");
	padded("\xc3", 1, WIDTH_LEFT, "\xef\xbf\xbd");
}

static void quantity(double value, const char *unit, const char *want)
{
	char out[64];

	format_quantity(out, sizeof(out), value, 0, unit);
	assert_string_equal(out, want);
}

static void test_report__quantities_have_three_digits_and_one_prefix(void **state)
{
	char out[64];

	(void)state;
	quantity(689.4e12, "FLOP/s", "689 TFLOPS");
	quantity(1070.5e12, "FLOP/s", "1070 TFLOPS");
	quantity(4.275e12, "B/s", "4.28 TB/s");
	quantity(999.6e9, "B/s", "1.00 TB/s");
	quantity(12300, "ns", "12.3 us");
	quantity(0, "B/s", "0 B/s");
	quantity(-4.2e9, "B/s", "-4.20 GB/s");
	quantity((double)NAN, "B/s", FORMAT_NONE);
	quantity((double)INFINITY, "", FORMAT_NONE);
	format_range(out, sizeof(out), 0.95e12, 1.05e12, "B/s");
	assert_string_equal(out, "0.950–1.05 TB/s");
	format_clock_reasons(out, sizeof(out), 0x68);
	assert_string_equal(out, "hardware slowdown, thermal (software), thermal (hardware)");
	format_clock_reasons(out, sizeof(out), 0x4000);
	assert_string_equal(out, "0x4000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report__a_nodes_pseudonym_stays_or_is_told_by_name),
		cmocka_unit_test(test_report__versions_and_pci_addresses_are_no_names),
		cmocka_unit_test(test_report__width_counts_columns_not_bytes),
		cmocka_unit_test(test_report__quantities_have_three_digits_and_one_prefix),
	};

	return cmocka_run_group_tests_name("report_words", tests, NULL, NULL);
}
