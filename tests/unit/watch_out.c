/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a reader: only what has changed, and reasons once. */
#include "test.h"

#include <math.h>
#include "watch/read/out.h"

static void only_changes_are_written(void **unused)
{
	struct watch_out o;
	uint32_t e;

	(void)unused;
	out_init(&o, -1);
	e = out_entity(&o, METRIC_SCOPE_GPU, OUT_NONE, "pci_bus_id", "a\"b\n", "gpu", NULL, NULL);
	assert_string_equal(text_str(&o.text),
			    "{\"e\":0,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"a\\\"b \"}}\n");
	text_release(&o.text);
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.04);
	out_set(&o, e, CATALOGUE_GPU_UTILIZATION, 0.123);
	out_set(&o, e, CATALOGUE_GPU_TEMPERATURE, (double)NAN);
	out_end(&o, e, 5, false);
	assert_non_null(strstr(text_str(&o.text), ",69}") || strstr(text_str(&o.text), ",69]"));
	assert_non_null(strstr(text_str(&o.text), ",0.12,"));
	text_release(&o.text);
	/* the same after rounding: nothing; not read: absent, once */
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.01);
	out_end(&o, e, 6, false);
	assert_non_null(strstr(text_str(&o.text), "null"));
	assert_null(strstr(text_str(&o.text), "69"));
	text_release(&o.text);
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.01);
	out_end(&o, e, 7, false);
	assert_string_equal(text_str(&o.text), "{\"t\":7,\"s\":0,\"end\":0}\n");
	text_release(&o.text);
	out_absent(&o, e, CATALOGUE_GPU_POWER, "why");
	out_end(&o, e, 8, false);
	assert_non_null(strstr(text_str(&o.text), "\"x\":{\"0\":["));
	text_release(&o.text);
	out_absent(&o, e, CATALOGUE_GPU_POWER, "why");
	out_end(&o, OUT_NONE, 9, true);
	assert_string_equal(text_str(&o.text), "{\"t\":9,\"s\":0,\"end\":true,\"slow\":true}\n");
	text_release(&o.text);
	out_gone(&o, e);
	out_set(&o, e, CATALOGUE_GPU_POWER, 1);
	out_end(&o, OUT_NONE, 10, false);
	assert_string_equal(text_str(&o.text), "{\"gone\":0}\n{\"t\":10,\"s\":0,\"end\":true}\n");
	out_release(&o);
}

/* RARE rows keep their value in the readings without them. */
static void rare_rows_end_with_rare_readings(void **unused)
{
	struct watch_out o;
	uint32_t e;

	(void)unused;
	out_init(&o, -1);
	e = out_entity(&o, METRIC_SCOPE_GPU, OUT_NONE, "pci_bus_id", "a", NULL);
	out_set(&o, e, CATALOGUE_GPU_PCIE_REPLAYS, 69);
	out_absent(&o, e, CATALOGUE_GPU_NVLINK_CRC, "why");
	out_end_rare(&o, e, 5);
	assert_non_null(strstr(text_str(&o.text), ",69]"));
	assert_non_null(strstr(text_str(&o.text), ",\"end\":0,\"slow\":true,\"rare\":5}\n"));
	text_release(&o.text);
	out_end(&o, e, 6, true);
	assert_string_equal(text_str(&o.text), "{\"t\":6,\"s\":0,\"end\":0,\"slow\":true}\n");
	text_release(&o.text);
	out_end_rare(&o, e, 7); /* not read: the value is absent */
	assert_non_null(strstr(text_str(&o.text), ",null]"));
	out_release(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_changes_are_written),
		cmocka_unit_test(rare_rows_end_with_rare_readings),
	};

	return cmocka_run_group_tests_name("watch_out", tests, NULL, NULL);
}
