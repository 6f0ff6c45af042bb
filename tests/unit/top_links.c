/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay top nccl|nvlink|ib` makes of settings and counters, from answers written down here. */
#include "cmd/top/links/links.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "cmd/info/info.h"
#include "machine/nccl/variables.h"
#include "machine/nccl/settings.h"
#include "machine/watch/watch.h"

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *value = json_loads(text, 0, &e);

	if (!value)
		fail_msg("%s: %s", text, e.text);
	return value;
}

static void test_top_links__names_are_sorted_and_found(void **state)
{
	const struct nccl_variable *n, *before = NULL;
	size_t count = 0;

	(void)state;
	for (; (n = nccl_variable_at(count)); count++) {
		if (before)
			assert_true(strcmp(before->name, n->name) < 0);
		assert_ptr_equal(nccl_variable_find(n->name), n);
		before = n;
	}
	assert_true(count > 190);
	assert_null(nccl_variable_find("NCCL_DEBGU"));
	assert_string_equal(nccl_variable_nearest("NCCL_DEBGU"), "NCCL_DEBUG");
	assert_null(nccl_variable_nearest("NCCL_XYZZYXYZZY"));
	assert_null(nccl_variable_nearest("CUDA_DEBUG"));
	assert_int_equal(nccl_variable_find("NCCL_FASTRAK_CTRL_DEV")->reader, NCCL_READER_PLUGIN);
	assert_int_equal(nccl_variable_find("NCCL_BLOCKING_WAIT")->reader, NCCL_READER_TORCH);
}

static json_t *settings_of(const char *environment, const char *files)
{
	json_t *e = parse(environment), *f = parse(files), *rows = nccl_settings(e, f);

	json_decref(e);
	json_decref(f);
	return rows;
}

static void test_top_links__the_environment_wins_over_files_and_the_first_file_over_the_second(void **state)
{
	json_t *rows = settings_of("{\"NCCL_DEBUG\": \"WARN\", \"HOME\": \"/\", \"NCCL_ALGO\": \"ring\"}",
				   "[{\"path\": \"~/.nccl.conf\", \"text\": \"# "
				   "NCCL_PROTO=LL\\nNCCL_DEBUG=TRACE\\nNCCL_NTHREADS=256\\n\"},"
				   " {\"path\": \"/etc/nccl.conf\", \"text\": \"NCCL_NTHREADS=512\\nno "
				   "setting\\nNCCL_NET=IB\"}]");

	(void)state;
	assert_int_equal(json_array_size(rows), 6);
	assert_string_equal(nccl_setting(rows, "NCCL_DEBUG"), "WARN");
	assert_string_equal(nccl_setting(rows, "NCCL_NTHREADS"), "256");
	assert_string_equal(nccl_setting(rows, "NCCL_NET"), "IB");
	assert_null(nccl_setting(rows, "NCCL_PROTO"));
	assert_string_equal(json_member_text(json_array_get(rows, 0), "name"), "NCCL_ALGO");
	assert_string_equal(json_member_text(json_array_get(rows, 2), "beaten_by"), "environment");
	assert_string_equal(json_member_text(json_array_get(rows, 4), "beaten_by"), "~/.nccl.conf");
	json_decref(rows);
}

static void test_top_links__an_environment_block_gives_its_nccl_variables(void **state)
{
	static const char block[] = "PATH=/bin\0NCCL_ALGO=ring=x\0NCCL_EMPTY=\0NCCL_NONE\0XNCCL_A=1";
	json_t *map = nccl_environment(block, sizeof(block));

	(void)state;
	assert_int_equal(json_object_size(map), 2);
	assert_string_equal(json_member_text(map, "NCCL_ALGO"), "ring=x");
	assert_string_equal(json_member_text(map, "NCCL_EMPTY"), "");
	assert_non_null(json_object_get(map, "NCCL_EMPTY"));
	json_decref(map);
}

#define PORTS                                                                                                \
	"{\"interfaces\": [{\"name\": \"lo\", \"state\": \"unknown\"}, {\"name\": \"eth0\", \"state\": "     \
	"\"up\"},"                                                                                           \
	" {\"name\": \"ib0\", \"state\": \"down\"}],"                                                        \
	" \"ports\": [{\"device\": \"mlx5_0\", \"port\": \"1\", \"kind\": \"infiniband\", \"state\": "       \
	"\"ACTIVE\"},"                                                                                       \
	" {\"device\": \"mlx5_1\", \"port\": \"1\", \"kind\": \"roce\", \"state\": \"DOWN\"},"               \
	" {\"device\": \"eth0\", \"kind\": \"ethernet\", \"state\": \"up\"}]}"

static void test_top_links__what_is_named_and_not_here_is_told(void **state)
{
	static const struct {
		const char *name, *value, *says;
	} rows[] = {
		{"NCCL_SOCKET_IFNAME", "eth", ""},
		{"NCCL_SOCKET_IFNAME", "=eth", "eth is missing"},
		{"NCCL_SOCKET_IFNAME", "eth0,ib,xx0", "ib is down, xx0 is missing"},
		{"NCCL_SOCKET_IFNAME", "^lo", ""},
		{"NCCL_SOCKET_IFNAME", "^lo,eth", "it excludes every port that is up"},
		{"NCCL_SOCKET_IFNAME", "", ""},
		{"NCCL_IB_HCA", "mlx5", ""},
		{"NCCL_IB_HCA", "=mlx5_0:1", ""},
		{"NCCL_IB_HCA", "mlx5_0:2,mlx5_1", "mlx5_0:2 is missing, mlx5_1 is down"},
		{"NCCL_IB_HCA", "eth0", "eth0 is missing"},
		{"NCCL_IB_HCA", "^mlx5_0", "it excludes every port that is up"},
		{"NCCL_NET", "nowhere", ""},
	};
	json_t *facts = parse(PORTS), *nothing = parse("{}");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct text t = {0};

		nccl_missing(&t, rows[i].name, rows[i].value, facts);
		assert_string_equal(text_str(&t), rows[i].says);
		text_release(&t);
		nccl_missing(&t, rows[i].name, rows[i].value, nothing); /* nobody can tell */
		assert_string_equal(text_str(&t), "");
		text_release(&t);
	}
	json_decref(facts);
	json_decref(nothing);
}

static const json_t *row_named(const json_t *part, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(part, "settings"), i, row)
	{
		if (!strcmp(json_member_text(row, "name"), name))
			return row;
	}
	fail_msg("no row %s", name);
	return NULL;
}

/* Values that hurt, one by one, by the rules that come with the program; the same values harmless. */
static void test_top_links__what_hurts_is_called_so(void **state)
{
	static const struct {
		const char *name, *value, *verdict;
		bool fails;
	} rows[] = {
		{"NCCL_P2P_DISABLE", "1", "hurts", true},
		{"NCCL_P2P_DISABLE", "0", "ok", false},
		{"NCCL_P2P_LEVEL", "loc", "hurts", true},
		{"NCCL_P2P_LEVEL", "NVL", "ok", false},
		{"NCCL_SHM_DISABLE", "1", "hurts", false},
		{"NCCL_IB_DISABLE", "1", "hurts", false},
		{"NCCL_NVLS_ENABLE", "0", "hurts", false},
		{"NCCL_NVLS_ENABLE", "2", "ok", false},
		{"NCCL_ALGO", "Ring", "hurts", false},
		{"NCCL_PROTO", "Simple", "hurts", false},
		{"NCCL_DEBUG", "Trace", "hurts", false},
		{"NCCL_DEBUG", "WARN", "ok", false},
		{"NCCL_LAUNCH_MODE", "group", "hurts", false},
		{"NCCL_LAUNCH_MODE", "PARALLEL", "ok", false},
		{"NCCL_BUFFSIZE", "1048576", "hurts", false},
		{"NCCL_BUFFSIZE", "8388608", "ok", false},
		{"NCCL_MIN_NCHANNELS", "32", "hurts", false},
		{"NCCL_MAX_NCHANNELS", "4", "hurts", false},
		{"NCCL_MAX_NCHANNELS", "32", "ok", false},
		{"NCCL_NET_GDR_LEVEL", "LOC", "hurts", false},
		{"NCCL_NET_GDR_LEVEL", "SYS", "ok", false},
		{"NCCL_NET", "Socket", "hurts", false},
		{"NCCL_SOCKET_IFNAME", "xx", "hurts", true},
		{"NCCL_SOCKET_IFNAME", "eth0", "ok", false},
		{"NCCL_IB_HCA", "mlx5_7", "hurts", false},
		{"NCCL_IB_HCA", "mlx5_0", "ok", false},
		{"NCCL_CHECK_POINTERS", "1", "hurts", false},
		{"NCCL_CUMEM_ENABLE", "0", "hurts", false},
		{"NCCL_FOO_BAR", "1", "unknown", false},
		{"NCCL_TREE_THRESHOLD", "0", "unknown", false},
		{"NCCL_TIMEOUT", "5", "ok", false},
		{"NCCL_IB_TIMEOUT", "22", "ok", false},
		{"NCCL_DEBUG", "WARN\r", "hurts", false},
	};
	json_t *facts = parse(PORTS);
	struct expectations *e = NULL;

	(void)state;
	assert_int_equal(expectations_load(&e, NULL, NULL), STATUS_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *environment = json_pack("{s:s}", rows[i].name, rows[i].value);
		json_t *part = links_nccl(environment, NULL, facts, e);
		const json_t *row = row_named(part, rows[i].name);

		if (strcmp(json_member_text(row, "verdict"), rows[i].verdict))
			fail_msg("%s=%s is %s: %s", rows[i].name, rows[i].value, json_member_text(row, "verdict"),
				 json_member_text(row, "says"));
		assert_int_equal(json_is_true(json_object_get(row, "fails")), rows[i].fails);
		json_decref(part);
		json_decref(environment);
	}
	expectations_free(e);
	json_decref(facts);
}

static struct machine *no_machine(void)
{
	struct machine *m = NULL;
	json_t *facts =
		parse("{\"format\": 1, \"live\": true, \"label\": \"\", \"layer\": \"host\", \"gpus\": []}");

	assert_int_equal(machine_from_json(&m, facts, NULL), STATUS_OK);
	json_decref(facts);
	return m;
}

#define LINK(n, t, tx, raw, errors)                                                                          \
	"{\"link\": " #n ", \"t_ns\": " #t ", \"active\": true, \"version\": 7, \"rate_gbps\": 26.562,"      \
	" \"error_crc\": " #errors ", \"data_tx_bytes\": " #tx                                               \
	", \"data_rx_bytes\": 0, \"raw_tx_bytes\": " #raw ", \"raw_rx_bytes\": 0}"

static void test_top_links__rates_are_differences_over_each_links_own_time(void **state)
{
	json_t *before = parse("{\"gpus\": [{\"pci\": \"0000:01:00.0\", \"links\": [" LINK(
		0, 1000000000, 5000, 6000, 2) ", " LINK(1, 1500000000, 100, 100, 0) "]}]}");
	json_t *now = parse("{\"gpus\": [{\"pci\": \"0000:01:00.0\", \"links\": [" LINK(
		0, 3000000000, 25000, 36000, 5) ", " LINK(1, 2000000000, 1100, 1300, 0) "]}]}");
	struct machine *m = no_machine();
	json_t *part = links_nvlink(before, now, m),
	       *gpu = json_array_get(json_object_get(part, "gpus"), 0);
	const json_t *links = json_object_get(gpu, "links"), *first = json_array_get(links, 0);

	(void)state;
	assert_float_equal(info_number(json_object_get(first, "rates"), "payload_tx"), 10000, 1e-6);
	assert_float_equal(info_number(json_object_get(first, "rates"), "raw_tx"), 15000, 1e-6);
	assert_float_equal(info_number(json_object_get(gpu, "sum"), "payload_tx"), 12000, 1e-6);
	assert_float_equal(info_number(json_object_get(gpu, "sum"), "raw_tx"), 17400, 1e-6);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "risen"), "error_crc")),
			 3);
	assert_int_equal(json_integer_value(json_object_get(first, "error_count")), 5);
	assert_null(json_object_get(json_array_get(links, 1), "risen"));
	assert_string_equal(json_member_text(first, "version"),
			    "4.0"); /* by its rate, whatever the driver calls it */
	assert_int_equal(info_number(gpu, "up"), 2);
	json_decref(part);
	part = links_nvlink(now, now, m);
	gpu = json_array_get(json_object_get(part, "gpus"), 0);
	first = json_array_get(json_object_get(gpu, "links"), 0);
	assert_string_equal(json_member_text(first, "rates_why"), "no second reading");
	json_decref(part);
	gpu = json_array_get(json_object_get(before, "gpus"), 0);
	json_object_set_new(json_array_get(json_object_get(gpu, "links"), 0), "t_ns",
			    json_integer(4000000000));
	part = links_nvlink(now, before, m); /* later and less: as after a reset of the GPU */
	gpu = json_array_get(json_object_get(part, "gpus"), 0);
	first = json_array_get(json_object_get(gpu, "links"), 0);
	assert_string_equal(json_member_text(first, "rates_why"), "the counters were reset");
	assert_null(json_object_get(first, "risen"));
	assert_null(json_object_get(json_object_get(gpu, "sum"), "payload_tx"));
	json_decref(part);
	machine_free(m);
	json_decref(before);
	json_decref(now);
}

static void test_top_links__what_is_not_supported_is_no_zero(void **state)
{
	json_t *now =
		parse("{\"gpus\": [{\"pci\": \"0000:01:00.0\", \"links\": [{\"link\": 0, \"t_ns\": 5, "
		      "\"active\": true,"
		      " \"rates_why\": \"not supported by this device or driver\"}]},"
		      " {\"pci\": \"0000:02:00.0\", \"links\": [], \"why\": \"GPU is lost\"},"
		      " {\"pci\": \"0000:03:00.0\", \"links\": [], \"links_why\": \"not supported\"}]}");
	struct machine *m = no_machine();
	json_t *state_ = json_pack("{s:s,s:o}", "t", "now", "nvlink", links_nvlink(now, now, m));
	struct text t = {0};

	(void)state;
	links_text(&t, state_, true);
	assert_non_null(strstr(text_str(&t), "rates not available: not supported by this device or driver"));
	assert_non_null(strstr(text_str(&t), "GPU 1 0000:02:00.0  unreadable: GPU is lost"));
	assert_non_null(strstr(text_str(&t), "no NVLink: not supported"));
	assert_null(strstr(text_str(&t), "0 B/s"));
	assert_int_equal(links_code(state_), 2);
	text_release(&t);
	links_line(&t, state_);
	assert_string_equal(text_str(&t),
			    "now; nvlink 3 GPUs, 1 of 1 up, out -, in -, errors +0, GPU is lost\n");
	text_release(&t);
	json_decref(state_);
	machine_free(m);
	json_decref(now);
}

static void test_top_links__codes_follow_the_table(void **state)
{
	static const struct {
		const char *state;
		int code;
	} rows[] = {
		{"{\"nvlink\": {\"gpus\": [{\"up\": 1, \"links\": [{}]}]}}", 0},
		{"{\"nvlink\": {\"gpus\": [{\"up\": 1, \"links\": [{}, {}]}]}}", 1},
		{"{\"nvlink\": {\"gpus\": [], \"none\": \"no GPU\"}}", 0},
		{"{\"nvlink\": {\"gpus\": [], \"why\": \"no answer\"}}", 2},
		{"{\"ib\": {\"ports\": []}, \"nccl\": {\"settings\": [{\"fails\": true}]}}", 1},
		{"{\"ib\": {\"ports\": [{\"unreadable\": {\"a\": \"b\"}}]}, \"nccl\": {\"settings\": "
		 "[{\"fails\": true}]}}",
		 1},
		{"{\"ib\": {\"ports\": [{\"unreadable\": {\"a\": \"b\"}}]}}", 2},
		{"{\"ib\": {\"ports\": [], \"why\": \"permission denied\"}}", 2},
		{"{\"nccl\": {\"settings\": [{\"verdict\": \"hurts\"}]}}", 0},
		{"{\"nccl\": {\"settings\": [], \"unreadable\": [{}]}}", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *s = parse(rows[i].state);

		if (links_code(s) != rows[i].code)
			fail_msg("%s: %d", rows[i].state, links_code(s));
		json_decref(s);
	}
}

static void put(const char *base, const char *path, const char *text)
{
	char file[512], command[600];
	FILE *f;

	snprintf(file, sizeof(file), "%s/class/infiniband/%s", base, path);
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname %s)\"", file);
	assert_int_equal(system(command), 0);
	f = fopen(file, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void fill_ports(const char *base)
{
	static const char *const files[][2] = {
		{"mlx5_0/ports/1/link_layer", "InfiniBand"},
		{"mlx5_0/ports/1/state", "4: ACTIVE"},
		{"mlx5_0/ports/1/phys_state", "5: LinkUp"},
		{"mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)"},
		{"mlx5_0/ports/1/lid", "0x1f"},
		{"mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001"},
		{"mlx5_0/ports/1/counters/port_xmit_data", "1000"},
		{"mlx5_0/ports/1/counters/port_rcv_data", "7"},
		{"mlx5_0/ports/1/counters/symbol_error", "3"},
		{"mlx5_10/ports/1/link_layer", "Ethernet"},
		{"mlx5_10/ports/1/state", "1: DOWN"},
		{"mlx5_10/ports/1/lid", "0x0"},
		{"mlx5_10/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0002"},
		{"mlx5_10/ports/1/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000"},
		{"mlx5_10/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001"},
		{"mlx5_10/ports/1/gid_attrs/types/0", "IB/RoCE v1"},
		{"mlx5_10/ports/1/gid_attrs/types/1", "RoCE v2"},
		{"mlx5_10/ports/1/gid_attrs/types/2", "RoCE v2"},
		{"mlx5_10/ports/1/gid_attrs/ndevs/2", "eth2"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(base, files[i][0], files[i][1]);
}

static void test_top_links__ports_are_read_from_sysfs(void **state)
{
	char base[] = "/tmp/assay-top-links-XXXXXX", command[600];
	json_t *before, *now, *part, *port;

	(void)state;
	assert_non_null(mkdtemp(base));
	before = watch_ib_read(base);
	part = links_ib(NULL, before);
	assert_string_equal(json_member_text(part, "none"), "no InfiniBand or RoCE port on this machine");
	json_decref(part);
	json_decref(before);
	fill_ports(base);
	before = watch_ib_read(base);
	put(base, "mlx5_0/ports/1/counters/port_xmit_data", "251000");
	put(base, "mlx5_0/ports/1/counters/symbol_error", "5");
	/* A counter that is there and cannot be read as a file. */
	snprintf(command, sizeof(command), "mkdir %s/class/infiniband/mlx5_0/ports/1/counters/link_downed",
		 base);
	assert_int_equal(system(command), 0);
	now = watch_ib_read(base);
	port = json_array_get(json_object_get(before, "ports"), 0);
	json_object_set_new(port, "t_ns", json_integer(1000000000));
	json_object_set_new(json_array_get(json_object_get(now, "ports"), 0), "t_ns",
			    json_integer(1500000000));
	part = links_ib(before, now);
	assert_int_equal(json_array_size(json_object_get(part, "ports")), 2);
	port = json_array_get(json_object_get(part, "ports"), 0);
	assert_float_equal(info_number(json_object_get(port, "rates"), "tx"), 2e6,
			   1e-6); /* words of 4 bytes */
	assert_float_equal(info_number(json_object_get(port, "rates"), "rx"), 0, 1e-6);
	assert_string_equal(json_member_text(port, "state"), "ACTIVE");
	assert_float_equal(info_number(port, "rate_gbit"), 400, 0);
	assert_float_equal(info_number(port, "lid"), 31, 0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(port, "risen"), "symbol_error")),
			 2);
	assert_non_null(json_object_get(json_object_get(port, "unreadable"), "counters/link_downed"));
	port = json_array_get(json_object_get(part, "ports"), 1);
	assert_string_equal(json_member_text(port, "device"), "mlx5_10");
	assert_string_equal(json_member_text(port, "kind"), "roce");
	assert_float_equal(info_number(port, "gid_index"), 2, 0);
	assert_string_equal(json_member_text(port, "interface"), "eth2");
	assert_null(json_object_get(port, "lid"));
	assert_null(json_object_get(json_object_get(port, "rates"), "tx"));
	assert_string_equal(json_member_text(port, "rates_why"), "not supported");
	json_decref(part);
	json_decref(before);
	json_decref(now);
	snprintf(command, sizeof(command), "rm -r %s && touch %s", base, base);
	assert_int_equal(system(command), 0);
	now = watch_ib_read(base); /* a file where a folder should be */
	assert_non_null(json_object_get(now, "why"));
	json_decref(now);
	unlink(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_top_links__names_are_sorted_and_found),
		cmocka_unit_test(
			test_top_links__the_environment_wins_over_files_and_the_first_file_over_the_second),
		cmocka_unit_test(test_top_links__an_environment_block_gives_its_nccl_variables),
		cmocka_unit_test(test_top_links__what_is_named_and_not_here_is_told),
		cmocka_unit_test(test_top_links__what_hurts_is_called_so),
		cmocka_unit_test(test_top_links__rates_are_differences_over_each_links_own_time),
		cmocka_unit_test(test_top_links__what_is_not_supported_is_no_zero),
		cmocka_unit_test(test_top_links__codes_follow_the_table),
		cmocka_unit_test(test_top_links__ports_are_read_from_sysfs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("top_links", tests, NULL, NULL);
}
