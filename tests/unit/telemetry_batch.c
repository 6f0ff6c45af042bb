/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler does with readings: lines of a journal, a pipe that is full, the host. */
#include "test.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/file/file.h"
#include "telemetry/sample.h"
#include "telemetry_bed.h"

static void test_telemetry__every_signal_is_found_by_its_name(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < TELEMETRY_SIGNAL_COUNT; i++) {
		const struct telemetry_signal *s = telemetry_signal_at((enum telemetry_signal_id)i);

		assert_ptr_equal(signal_by_name(s->name), s);
		assert_true(s->help[0]);
	}
	assert_int_equal(signal_by_name("clock_reasons")->kind, SIGNAL_BITS);
	assert_int_equal(signal_by_name("xid")->kind, SIGNAL_EVENT);
	assert_null(signal_by_name("clock_reason"));
}

static void test_schedule__once_a_period_and_nothing_is_made_up_for(void **state)
{
	struct schedule s;
	unsigned due = 0;
	uint64_t t;

	(void)state;
	schedule_init(&s, 0, 0);
	for (t = 0; t < 1000; t += 10)
		due += schedule_due(&s, TELEMETRY_power_w, t * 1000000u);
	assert_int_equal(due, 50);
	assert_true(schedule_due(&s, TELEMETRY_power_w, 5000000000u));
	assert_false(schedule_due(&s, TELEMETRY_power_w, 5000000001u));
	schedule_never(&s, TELEMETRY_power_w);
	assert_false(schedule_due(&s, TELEMETRY_power_w, UINT64_MAX - 1));
	schedule_init(&s, 0, 3);
	assert_false(schedule_due(&s, TELEMETRY_temperature_c, 0)); /* spread over the period */
}

/* Everything that can be read now, appended. */
static void drain(int fd, struct text *out)
{
	char block[4096];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) > 0)
		text_add_bytes(out, block, (size_t)n);
}

static void pair_of(int fd[2])
{
	int small = 4096;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
}

static json_t *line_at(const char **at)
{
	const char *end = strchr(*at, '\n');
	json_t *line;

	assert_non_null(end);
	line = json_loadb(*at, (size_t)(end - *at), 0, NULL);
	assert_non_null(line);
	*at = end + 1;
	return line;
}

static void test_batch__lines_are_journal_bodies(void **state)
{
	struct text out = {0};
	struct batch b;
	const char *at;
	json_t *line;
	int fd[2];

	(void)state;
	pair_of(fd);
	assert_int_equal(batch_init(&b, fd[1], 2, NULL), STATUS_OK);
	snprintf(b.name[0], BATCH_SOURCE_SIZE, "gpu:0000:1b:00.0");
	snprintf(b.name[1], BATCH_SOURCE_SIZE, "host");
	batch_add(&b, 0, TELEMETRY_energy_j, 1000000000000000001u, 123456789.123);
	batch_add(&b, 0, TELEMETRY_energy_j, 1000000000020000001u, 123456790);
	batch_add(&b, 0, TELEMETRY_power_w, 1, NAN);
	batch_add(&b, 1, TELEMETRY_cpu_busy_share, 2, 0.25);
	batch_flush(&b);
	batch_flush(&b); /* nothing new: no line */
	drain(fd[0], &out);
	at = text_str(&out);
	line = line_at(&at);
	assert_string_equal(json_string_value(json_object_get(line, "source")), "gpu:0000:1b:00.0");
	assert_string_equal(json_string_value(json_object_get(line, "signal")), "energy_j");
	assert_string_equal(json_string_value(json_object_get(line, "kind")), "counter");
	assert_true(json_integer_value(json_array_get(json_object_get(line, "at"), 0)) ==
		    1000000000000000001);
	assert_true(json_real_value(json_array_get(json_object_get(line, "v"), 0)) == 123456789.123);
	assert_int_equal(json_array_size(json_object_get(line, "v")), 2);
	json_decref(line);
	line = line_at(&at);
	assert_string_equal(json_string_value(json_object_get(line, "source")), "host");
	json_decref(line);
	assert_int_equal(*at, '\0');
	text_release(&out);
	batch_release(&b);
	close(fd[0]);
	close(fd[1]);
}

/* Nobody reads for a long while, then somebody does: whole lines, the newest among them, the lost counted. */
static void test_batch__a_full_pipe_loses_the_oldest_lines_and_never_blocks(void **state)
{
	struct text out = {0};
	unsigned lines = 0, sent = 0;
	json_int_t last = -1;
	struct batch b;
	const char *at;
	int fd[2], i;

	(void)state;
	pair_of(fd);
	assert_int_equal(batch_init(&b, fd[1], 1, NULL), STATUS_OK);
	b.queue_max = 2000;
	for (i = 0; i < 5000; i++, sent++) {
		batch_add(&b, 0, TELEMETRY_power_w, (uint64_t)i, i);
		batch_flush(&b);
		assert_true(b.queue.size <= 2000);
	}
	assert_true(b.lost_lines > 0);
	for (i = 0; i < 100; i++) {
		drain(fd[0], &out);
		batch_flush(&b);
	}
	assert_int_equal(b.queue.size, 0);
	for (at = text_str(&out); *at; lines++) {
		json_t *line = line_at(&at);
		json_int_t now = json_integer_value(json_array_get(json_object_get(line, "at"), 0));

		assert_true(now > last);
		last = now;
		json_decref(line);
	}
	assert_int_equal(last, 4999);
	assert_int_equal(lines + b.lost_lines, sent);
	text_release(&out);
	close(fd[0]);
	batch_add(&b, 0, TELEMETRY_power_w, 6000, 1);
	batch_flush(&b);
	assert_true(b.closed);
	batch_release(&b);
	close(fd[1]);
}

static int make_root(void **state)
{
	static char dir[64];

	snprintf(dir, sizeof(dir), "/tmp/assay-test-XXXXXX");
	*state = mkdtemp(dir);
	return !*state;
}

static int remove_root(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
	return system(command);
}

/* In place, as the kernel's files change under an open descriptor. */
static void put(const char *root, const char *path, const char *content)
{
	char full[512], dir[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(full, '/') - full), full);
	assert_int_equal(file_make_dir(dir, NULL), STATUS_OK);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(content, f);
	assert_int_equal(fclose(f), 0);
}

/* The power of the first tick, in W; 0: none. */
static double metered(const char *root)
{
	struct fake_clock time = {0};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct sample_host h;
	struct batch b;
	double watts;

	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	sample_host_init(&h, root, 0, 0);
	sample_host_tick(&h, &b, &clock);
	watts = b.list[0][TELEMETRY_node_power_w].count ? b.list[0][TELEMETRY_node_power_w].value[0] : 0;
	sample_host_release(&h);
	batch_release(&b);
	return watts;
}

static void test_sample_host__the_only_power_meter_is_the_nodes(void **state)
{
	const char *root = *state;

	put(root, "sys/class/hwmon/hwmon0/name", "coretemp\n");
	put(root, "sys/class/hwmon/hwmon0/power1_average", "5000000\n");
	assert_true(metered(root) == 0);
	put(root, "sys/class/hwmon/hwmon3/name", "power_meter\n");
	assert_true(metered(root) == 0); /* it has no reading that may be read */
	put(root, "sys/class/hwmon/hwmon3/power1_input", "900000000\n");
	assert_true(metered(root) == 900);
	put(root, "sys/class/hwmon/hwmon3/power1_average", "850000000\n");
	assert_true(metered(root) == 850);
	put(root, "sys/class/hwmon/hwmon3/power1_average", "0\n");
	assert_true(metered(root) == 0);
	put(root, "sys/class/hwmon/hwmon3/power1_average", "850000000\n");
	put(root, "sys/class/hwmon/hwmon4/name", "power_meter\n");
	put(root, "sys/class/hwmon/hwmon4/power1_average", "860000000\n");
	assert_true(metered(root) == 0);
}

static void test_sample_host__a_failed_reading_of_the_meter_is_left_out(void **state)
{
	static const char *const readings[] = {"850000000\n", "", "EBUSY\n", "870000000\n"};
	struct fake_clock time = {0};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	const char *root = *state;
	struct batch_list *watts;
	struct sample_host h;
	struct batch b;

	put(root, "sys/class/hwmon/hwmon3/name", "power_meter\n");
	put(root, "sys/class/hwmon/hwmon3/power1_average", readings[0]);
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	watts = &b.list[0][TELEMETRY_node_power_w];
	sample_host_init(&h, root, 0, 0);
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
		put(root, "sys/class/hwmon/hwmon3/power1_average", readings[i]);
		sample_host_tick(&h, &b, &clock);
		time.now_ns += 1000000000;
	}
	assert_int_equal(watts->count, 2);
	assert_true(watts->value[0] == 850 && watts->value[1] == 870);
	sample_host_release(&h);
	batch_release(&b);
}

static void test_sample_host__busy_share_and_energy_through_a_wrap(void **state)
{
	struct fake_clock time = {0};
	struct clock clock = {.now_ns = fake_now, .arg = &time};
	struct batch_list *busy, *energy, *dram;
	const char *root = *state;
	struct sample_host h;
	struct batch b;

	put(root, "proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
	put(root, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
	put(root, "sys/class/powercap/intel-rapl:0/energy_uj", "900000\n");
	put(root, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000\n");
	put(root, "sys/class/powercap/intel-rapl:0:0/name", "core\n");
	put(root, "sys/class/powercap/intel-rapl:0:0/energy_uj", "7\n");
	put(root, "sys/class/powercap/intel-rapl:0:1/name", "dram\n");
	put(root, "sys/class/powercap/intel-rapl:0:1/energy_uj", "100000\n");
	put(root, "sys/class/powercap/intel-rapl:2:0/name", "dram\n");
	put(root, "sys/class/powercap/intel-rapl:2:0/energy_uj", "200000\n");
	put(root, "sys/class/powercap/intel-rapl:1/name", "psys\n");
	put(root, "sys/class/powercap/intel-rapl:1/energy_uj", "5\n");
	assert_int_equal(batch_init(&b, -1, 1, NULL), STATUS_OK);
	busy = &b.list[0][TELEMETRY_cpu_busy_share];
	energy = &b.list[0][TELEMETRY_cpu_energy_j];
	dram = &b.list[0][TELEMETRY_dram_energy_j];
	sample_host_init(&h, root, 0, 0);
	assert_int_equal(h.packages.zones, 1);
	assert_int_equal(h.dram.zones, 2);
	sample_host_tick(&h, &b, &clock);
	assert_int_equal(busy->count, 0);
	assert_true(energy->count == 1 && energy->value[0] == 0);
	put(root, "proc/stat", "cpu  130 0 110 840 10 5 5 0 9 0\n");
	put(root, "sys/class/powercap/intel-rapl:0/energy_uj", "400000\n");
	put(root, "sys/class/powercap/intel-rapl:0:1/energy_uj", "150000\n");
	put(root, "sys/class/powercap/intel-rapl:2:0/energy_uj", "300000\n");
	time.now_ns = 200000000;
	sample_host_tick(&h, &b, &clock);
	assert_int_equal(busy->count, 1);
	assert_true(fabs(busy->value[0] - 0.5) < 1e-12); /* 50 of 100 */
	assert_true(fabs(energy->value[1] - 0.5) < 1e-12);
	assert_int_equal(dram->count, 2);
	assert_true(fabs(dram->value[1] - 0.15) < 1e-12);
	put(root, "proc/stat", "cpu  garbage\n");
	put(root, "sys/class/powercap/intel-rapl:0:1/energy_uj",
	    "10\n"); /* wrapped at a range that is not known */
	time.now_ns = 400000000;
	sample_host_tick(&h, &b, &clock);
	assert_int_equal(busy->count, 1);
	assert_true(energy->count == 3 && dram->count == 2);
	sample_host_release(&h);
	sample_host_init(&h, "/nowhere", 0, 0);
	sample_host_tick(&h, &b, &clock);
	assert_int_equal(busy->count, 1);
	sample_host_release(&h);
	batch_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_telemetry__every_signal_is_found_by_its_name),
		cmocka_unit_test(test_schedule__once_a_period_and_nothing_is_made_up_for),
		cmocka_unit_test(test_batch__lines_are_journal_bodies),
		cmocka_unit_test(test_batch__a_full_pipe_loses_the_oldest_lines_and_never_blocks),
		cmocka_unit_test_setup_teardown(test_sample_host__the_only_power_meter_is_the_nodes,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_sample_host__a_failed_reading_of_the_meter_is_left_out,
						make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_sample_host__busy_share_and_energy_through_a_wrap,
						make_root, remove_root),
	};

	signal(SIGPIPE, SIG_IGN); /* as main does */
	return cmocka_run_group_tests_name("telemetry_batch", tests, NULL, NULL);
}
