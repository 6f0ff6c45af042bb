/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of assay top: pages as text for several sizes, themes and states, and what keys do. */
#include "screen_bed.h"

#include "core/file/file.h"
#include "core/text/utf8.h"
#include "watch/screen/value.h"

/* Compares with tests/data/watch/screen/NAME.txt; with UPDATE=1 in the environment writes it instead. */
static void golden(const char *name, const char *text)
{
	struct error err = {0};
	char path[600], *want = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/tests/data/watch/screen/%s.txt", SOURCE_DIR, name);
	if (getenv("UPDATE")) {
		assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
		return;
	}
	if (file_read(&want, &size, path, 1 << 20, &err))
		fail_msg("%s (UPDATE=1 writes it)", err.text);
	if (strcmp(text, want))
		fail_msg("%s differs (UPDATE=1 writes it):\n%s", path, text);
	free(want);
}

/* Control sequences as a reader of the file sees them. */
static void add_visible(struct text *out, const char *s)
{
	for (; *s; s++)
		if (*s == '\x1b')
			text_add(out, "\\e");
		else
			text_add_bytes(out, s, 1);
}

struct shot {
	unsigned columns, rows;
	enum screen_depth depth;
	bool ascii;
};

/* Draws, and compares with the golden text. */
static void shoot_nodes(const char *name, struct shot shot, struct screen_view *v, const struct screen_node *nodes,
			size_t count)
{
	struct screen s = {.ascii = shot.ascii};
	struct error err = {0};
	struct text plain = {0}, shown = {0};

	assert_int_equal(screen_resize(&s, shot.columns, shot.rows, &err), STATUS_OK);
	screen_draw(&s, v, nodes, count);
	screen_text(&plain, &s, shot.depth == SCREEN_MONO ? SCREEN_THEME_mono : v->theme, shot.depth);
	add_visible(&shown, text_str(&plain));
	golden(name, text_str(&shown));
	text_release(&plain);
	text_release(&shown);
	screen_release(&s);
}

static void shoot(const char *name, struct shot shot, struct screen_view *v, const struct bed *b)
{
	const struct screen_node n = bed_node(b, "");

	shoot_nodes(name, shot, v, &n, 1);
}

/* ---- machines ---- */

static void add_host(struct bed *b)
{
	bed_entity(b, 100, METRIC_SCOPE_NODE, BED_HOST, 100, "{}");
	bed_entity(b, 101, METRIC_SCOPE_CPU, BED_HOST, 101, "{}");
	bed_entity(b, 102, METRIC_SCOPE_INTERFACE, BED_HOST, 102, "{\"interface\":\"eth0\"}");
	bed_entity(b, 103, METRIC_SCOPE_DISK, BED_HOST, 103, "{\"disk\":\"nvme0n1\"}");
}

static void read_host(struct bed *b, unsigned second)
{
	bed_value(b, BED_HOST, 100, CATALOGUE_NODE_BOOT, 1764260000);
	bed_value(b, BED_HOST, 101, CATALOGUE_CPU_BUSY, 0.375);
	bed_value(b, BED_HOST, 101, CATALOGUE_CPU_COUNT, 128);
	bed_value(b, BED_HOST, 101, CATALOGUE_CPU_LOAD, 12.5);
	bed_value(b, BED_HOST, 101, CATALOGUE_CPU_ENERGY, 1000 + 410.0 * second);
	bed_value(b, BED_HOST, 101, CATALOGUE_MEMORY_TOTAL, 512.0 * (1 << 30));
	bed_value(b, BED_HOST, 101, CATALOGUE_MEMORY_AVAILABLE, 384.0 * (1 << 30));
	bed_value(b, BED_HOST, 102, CATALOGUE_INTERFACE_UP, 1);
	bed_value(b, BED_HOST, 102, CATALOGUE_INTERFACE_TX, 1.25e6 * second);
	bed_value(b, BED_HOST, 102, CATALOGUE_INTERFACE_RX, 3.5e6 * second);
	bed_value(b, BED_HOST, 103, CATALOGUE_DISK_READ, 2.1e9 * second);
	bed_value(b, BED_HOST, 103, CATALOGUE_DISK_WRITTEN, 0);
	bed_end(b, BED_HOST);
}

static void add_gpu(struct bed *b, unsigned i)
{
	char labels[300];

	snprintf(labels, sizeof(labels),
		 "{\"gpu\":\"%u\",\"UUID\":\"GPU-%04u\",\"pci_bus_id\":\"0000:%02x:00.0\",\"modelName\":"
		 "\"NVIDIA H100 80GB HBM3\",\"DCGM_FI_DRIVER_VERSION\":\"570.86.15\"}",
		 i, i, 0x10 + i);
	bed_entity(b, i, METRIC_SCOPE_GPU, BED_GPU, i, labels);
}

static void read_gpu(struct bed *b, unsigned i, unsigned second)
{
	double load = (i + second % 5) / 12.0;

	bed_value(b, BED_GPU, i, CATALOGUE_GPU_UP, 1);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_UTILIZATION, load);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_SM_ACTIVE, load * 0.9);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_TENSOR_ACTIVE, load * 0.5);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_DRAM_ACTIVE, load * 0.3);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_PCIE_TX, 1.2e9 * i);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_PCIE_RX, 25e9);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_MEMORY, 80.0 * (1 << 30));
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_MEMORY_USED, 9.5 * i * (1 << 30));
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_TEMPERATURE, 40 + 5 * i);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_POWER, 90 + 80 * i);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_POWER_LIMIT, 700);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_SM_CLOCK, 1.98e9);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_HELD_IDLE, i == 0);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_HELD_POWER, i == 7);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_HELD_SW_THERMAL, i == 6);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_ECC_CORRECTED, i == 2 ? 3 : 0);
	bed_value(b, BED_GPU, i, CATALOGUE_GPU_ECC_UNCORRECTED, i == 4 ? 1 : 0);
	if (i == 3)
		bed_value(b, BED_GPU, i, CATALOGUE_GPU_XID_LAST, 79);
}

static void add_nvlinks(struct bed *b, unsigned gpu)
{
	for (unsigned l = 0; l < 2; l++) {
		char labels[120];

		snprintf(labels, sizeof(labels), "{\"gpu\":\"%u\",\"pci_bus_id\":\"0000:%02x:00.0\",\"nvlink\":\"%u\"}", gpu,
			 0x10 + gpu, l);
		bed_entity(b, 20 + 2 * gpu + l, METRIC_SCOPE_NVLINK, BED_GPU, gpu, labels);
	}
}

static void read_nvlinks(struct bed *b, unsigned gpu, unsigned second)
{
	for (unsigned l = 0; l < 2; l++) {
		bed_value(b, BED_GPU, 20 + 2 * gpu + l, CATALOGUE_NVLINK_UP, !(gpu == 5 && l));
		bed_value(b, BED_GPU, 20 + 2 * gpu + l, CATALOGUE_NVLINK_TX, 9.216e9 * second);
		bed_value(b, BED_GPU, 20 + 2 * gpu + l, CATALOGUE_NVLINK_RX, 4.608e9 * second);
	}
}

static void add_process(struct bed *b, uint32_t id, unsigned gpu, unsigned pid, const char *user, const char *command)
{
	char labels[300];

	snprintf(labels, sizeof(labels),
		 "{\"gpu\":\"%u\",\"pci_bus_id\":\"0000:%02x:00.0\",\"pid\":\"%u\",\"user\":\"%s\",\"comm\":\"%.15s\",\"command\":"
		 "\"%s\",\"container\":\"%s\"}",
		 gpu, 0x10 + gpu, pid, user, command, command, pid == 4242 ? "docker 3f2a" : "");
	bed_entity(b, id, METRIC_SCOPE_PROCESS, BED_GPU, gpu, labels);
}

static void read_processes(struct bed *b)
{
	for (uint32_t id = 60; id < 63; id++) {
		bed_value(b, BED_GPU, id, CATALOGUE_PROCESS_MEMORY, (double)(id - 50) * (1 << 30));
		bed_value(b, BED_GPU, id, CATALOGUE_PROCESS_SM, (id - 59) * 0.2);
	}
}

/* Eight GPUs, links, host, a training and a serving run, processes. */
static void make_eight(struct bed *b, unsigned seconds)
{
	bed_begin(b, "gpu7");
	add_host(b);
	for (unsigned i = 0; i < 8; i++) {
		add_gpu(b, i);
		add_nvlinks(b, i);
	}
	add_process(b, 60, 0, 4242, "alice", "python train.py --model llama");
	add_process(b, 61, 1, 4242, "alice", "python train.py --model llama");
	add_process(b, 62, 1, 977, "bob", "vllm serve");
	bed_entity(b, 110, METRIC_SCOPE_PORT, BED_HOST, 110, "{\"device\":\"mlx5_0\",\"port\":\"1\"}");
	bed_entity(b, 120, METRIC_SCOPE_RUN, BED_RUNS, 120,
		   "{\"run\":\"/runs/2025-11-28-a\",\"kind\":\"train\",\"model\":\"llama-1b\"}");
	bed_entity(b, 121, METRIC_SCOPE_RUN, BED_RUNS, 121,
		   "{\"run\":\"/runs/2025-11-28-b\",\"kind\":\"serve\",\"model\":\"llama-8b\"}");
	for (unsigned second = 1; second <= seconds; second++) {
		b->t_ns += 1000000000;
		for (unsigned i = 0; i < 8; i++)
			read_gpu(b, i, second);
		for (unsigned i = 0; i < 8; i++)
			read_nvlinks(b, i, second);
		read_processes(b);
		bed_end(b, BED_GPU);
		bed_value(b, BED_HOST, 110, CATALOGUE_PORT_UP, 1);
		bed_value(b, BED_HOST, 110, CATALOGUE_PORT_TX, 40e9 * second);
		bed_value(b, BED_HOST, 110, CATALOGUE_PORT_RX, 41e9 * second);
		read_host(b, second);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_LOSS, 8.0 / (1 + second));
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_STEP, 100 + second);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_STEPS, 400);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_STEP_SECONDS, 0.84);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_PART_FORWARD, 0.252);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_PART_BACKWARD, 0.504);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_PART_OPTIMIZER, 0.042);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_PART_WAIT, 0.0336);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_TOKENS, 123456);
		bed_value(b, BED_RUNS, 120, CATALOGUE_RUN_MFU, 0.41);
		bed_value(b, BED_RUNS, 121, CATALOGUE_RUN_REQUESTS, 12);
		bed_value(b, BED_RUNS, 121, CATALOGUE_RUN_WAITING, 3);
		bed_value(b, BED_RUNS, 121, CATALOGUE_RUN_TTFT, 0.132);
		bed_value(b, BED_RUNS, 121, CATALOGUE_RUN_CACHE, 0.77);
		bed_value(b, BED_RUNS, 121, CATALOGUE_RUN_TOKENS, 4321);
		bed_end(b, BED_RUNS);
	}
}

static void make_cpu_only(struct bed *b)
{
	bed_begin(b, "laptop");
	add_host(b);
	for (unsigned second = 1; second <= 2; second++) {
		b->t_ns += 1000000000;
		bed_end(b, BED_GPU);
		read_host(b, second);
		bed_end(b, BED_RUNS);
	}
}

/* GPU 1 is lost; GPU 0 was last heard 12 s ago, because NVML hangs. */
static void make_lost(struct bed *b)
{
	bed_begin(b, "gpu8");
	add_host(b);
	add_gpu(b, 0);
	add_gpu(b, 1);
	for (unsigned second = 1; second <= 2; second++) {
		b->t_ns += 1000000000;
		read_gpu(b, 0, second);
		bed_end(b, BED_GPU);
	}
	bed_line(b, "{\"e\":1,\"why\":\"GPU is lost\"}");
	bed_value(b, BED_GPU, 1, CATALOGUE_GPU_UP, 0);
	bed_end(b, BED_GPU);
	bed_line(b, "{\"s\":0,\"why\":\"NVML did not answer for 10 s\"}");
	b->t_ns += 12000000000;
	read_host(b, 14);
}

static void make_mig(struct bed *b)
{
	bed_begin(b, "mig1");
	add_host(b);
	add_gpu(b, 0);
	for (unsigned i = 0; i < 3; i++) {
		char labels[200];

		snprintf(labels, sizeof(labels),
			 "{\"gpu\":\"0\",\"pci_bus_id\":\"0000:10:00.0\",\"GPU_I_ID\":\"%u\",\"GPU_C_ID\":\"0\",\"GPU_I_PROFILE\":"
			 "\"2g.20gb\"}",
			 i + 1);
		bed_entity(b, 10 + i, METRIC_SCOPE_GPU_INSTANCE, BED_GPU, 0, labels);
	}
	b->t_ns += 1000000000;
	bed_value(b, BED_GPU, 0, CATALOGUE_GPU_UP, 1);
	bed_value(b, BED_GPU, 0, CATALOGUE_GPU_TEMPERATURE, 44);
	for (unsigned i = 0; i < 3; i++) {
		bed_value(b, BED_GPU, 10 + i, CATALOGUE_INSTANCE_MEMORY, 20.0 * (1 << 30));
		bed_value(b, BED_GPU, 10 + i, CATALOGUE_INSTANCE_MEMORY_USED, 5.0 * i * (1 << 30));
	}
	bed_end(b, BED_GPU);
	read_host(b, 1);
}

/* ---- pages ---- */

static void test_watch_screen__eight_gpus_fit_every_size(void **state)
{
	static const struct {
		const char *name;
		struct shot shot;
	} shots[] = {{"eight-20x5", {20, 5, SCREEN_MONO, false}},     {"eight-40x10", {40, 10, SCREEN_MONO, false}},
		     {"eight-80x24", {80, 24, SCREEN_MONO, false}},   {"eight-120x40", {120, 40, SCREEN_MONO, false}},
		     {"eight-200x50", {200, 50, SCREEN_MONO, false}}, {"eight-ascii", {120, 24, SCREEN_MONO, true}}};
	struct bed b;

	(void)state;
	make_eight(&b, 30);
	for (size_t i = 0; i < sizeof(shots) / sizeof(shots[0]); i++) {
		struct screen_view v = {.page = SCREEN_NODE};

		shoot(shots[i].name, shots[i].shot, &v, &b);
	}
	bed_release(&b);
}

static void test_watch_screen__themes_colour_the_same_cells(void **state)
{
	static const struct {
		const char *name;
		enum screen_theme theme;
		enum screen_depth depth;
	} shots[] = {{"theme-dark-256", SCREEN_THEME_dark, SCREEN_256},
		     {"theme-light-16", SCREEN_THEME_light, SCREEN_16},
		     {"theme-contrast-rgb", SCREEN_THEME_contrast, SCREEN_RGB},
		     {"theme-dark-mono", SCREEN_THEME_dark, SCREEN_MONO}};
	struct bed b;

	(void)state;
	make_eight(&b, 3);
	for (size_t i = 0; i < sizeof(shots) / sizeof(shots[0]); i++) {
		struct screen_view v = {.page = SCREEN_NODE, .theme = shots[i].theme};

		shoot(shots[i].name, (struct shot){60, 12, shots[i].depth, false}, &v, &b);
	}
	bed_release(&b);
}

static void test_watch_screen__machines_without_gpu_lost_and_mig(void **state)
{
	const struct shot shot = {100, 18, SCREEN_MONO, false};
	struct screen_view v = {.page = SCREEN_NODE};
	struct bed b;

	(void)state;
	make_cpu_only(&b);
	shoot("no-gpu", shot, &v, &b);
	bed_release(&b);
	make_lost(&b);
	shoot("lost-and-stale", shot, &v, &b);
	shoot("lost-and-stale-20x5", (struct shot){20, 5, SCREEN_MONO, false}, &v, &b);
	bed_release(&b);
	make_mig(&b);
	shoot("mig", shot, &v, &b);
	bed_release(&b);
	bed_begin(&b, "new");
	shoot("nothing-read-yet", shot, &v, &b);
	bed_release(&b);
}

static void test_watch_screen__the_worst_node_comes_first(void **state)
{
	struct screen_view v = {.page = SCREEN_FLEET};
	struct bed eight, cpu, lost;
	struct watch_state none = {0};

	(void)state;
	make_eight(&eight, 3);
	make_cpu_only(&cpu);
	make_lost(&lost);
	{
		const struct screen_node nodes[] = {bed_node(&cpu, "laptop"), bed_node(&eight, "gpu7"), bed_node(&lost, "gpu8"),
						    {.name = "gpu9", .state = &none, .why = "ssh: connection refused"}};

		shoot_nodes("fleet-120x10", (struct shot){120, 10, SCREEN_MONO, false}, &v, nodes, 4);
		shoot_nodes("fleet-40x8", (struct shot){40, 8, SCREEN_MONO, false}, &v, nodes, 4);
		shoot_nodes("fleet-20x5", (struct shot){20, 5, SCREEN_MONO, false}, &v, nodes, 4);
		v.sort = SCREEN_SORT_power;
		shoot_nodes("fleet-by-power", (struct shot){100, 8, SCREEN_MONO, false}, &v, nodes, 4);
		snprintf(v.filter, sizeof(v.filter), "GPU");
		shoot_nodes("fleet-filtered", (struct shot){100, 8, SCREEN_MONO, false}, &v, nodes, 4);
		v = (struct screen_view){.page = SCREEN_NODE, .node = 3};
		shoot_nodes("node-without-answer", (struct shot){80, 8, SCREEN_MONO, false}, &v, nodes, 4);
	}
	bed_release(&eight);
	bed_release(&cpu);
	bed_release(&lost);
}

static void test_watch_screen__values_graphs_and_help(void **state)
{
	struct screen_view v = {.page = SCREEN_METRICS};
	const struct shot shot = {80, 24, SCREEN_MONO, false};
	struct bed b;

	(void)state;
	make_eight(&b, 200);
	shoot("values", shot, &v, &b);
	v = (struct screen_view){.page = SCREEN_GRAPH, .entity = 3, .row = CATALOGUE_GPU_UTILIZATION};
	shoot("graph-80x24", shot, &v, &b);
	shoot("graph-20x5", (struct shot){20, 5, SCREEN_MONO, false}, &v, &b);
	v.entity = 102;
	v.row = CATALOGUE_INTERFACE_RX;
	shoot("graph-of-a-counter", (struct shot){60, 12, SCREEN_MONO, false}, &v, &b);
	v.entity = 120;
	v.row = CATALOGUE_RUN_LOSS;
	shoot("graph-of-a-loss", (struct shot){60, 12, SCREEN_MONO, false}, &v, &b);
	v.entity = 9999;
	shoot("graph-of-what-is-gone", (struct shot){60, 8, SCREEN_MONO, false}, &v, &b);
	v = (struct screen_view){.page = SCREEN_HELP};
	shoot("help", (struct shot){100, 36, SCREEN_MONO, false}, &v, &b);
	v = (struct screen_view){.page = SCREEN_LINES, .lines = "first\nsecond\nthird\n", .title = "assay top nccl"};
	shoot("lines", (struct shot){30, 5, SCREEN_MONO, false}, &v, &b);
	bed_release(&b);
}

static void test_watch_screen__processes_sort_filter_and_group(void **state)
{
	struct screen_view v = {.page = SCREEN_NODE, .tree = true, .on_processes = true, .process_at = 1};
	const struct shot shot = {100, 32, SCREEN_MONO, false};
	struct bed b;

	(void)state;
	make_eight(&b, 2);
	shoot("tree", shot, &v, &b);
	v = (struct screen_view){.page = SCREEN_NODE, .sort = SCREEN_SORT_command};
	snprintf(v.filter, sizeof(v.filter), "VLLM");
	shoot("filtered", shot, &v, &b);
	v = (struct screen_view){.page = SCREEN_NODE, .only_pid = 4242, .sort = SCREEN_SORT_power};
	shoot("only-pid", shot, &v, &b);
	v = (struct screen_view){.page = SCREEN_NODE, .replay = true, .paused = true, .at = 61, .length = 600};
	shoot("paused", (struct shot){100, 10, SCREEN_MONO, false}, &v, &b);
	snprintf(v.question, sizeof(v.question), "end process 4242?");
	shoot("question", (struct shot){60, 8, SCREEN_MONO, false}, &v, &b);
	bed_release(&b);
}

/* Whatever a node sends, no cell holds what steers a terminal. */
static void test_watch_screen__text_of_nodes_is_clean(void **state)
{
	struct screen_view v = {.page = SCREEN_NODE};
	struct screen s = {0};
	struct error err = {0};
	struct bed b;

	(void)state;
	make_eight(&b, 2);
	bed_line(&b, "{\"e\":62,\"labels\":{\"command\":\"a\\u001b[31m\\u0007\\u202eb\\u009bc \\u6f22\\u5b57\"}}");
	{
		struct screen_node n = bed_node(&b, "x\x1b[2J\xff\xc2\x9b");

		assert_int_equal(screen_resize(&s, 120, 40, &err), STATUS_OK);
		screen_draw(&s, &v, &n, 1);
	}
	for (size_t i = 0; i < (size_t)s.columns * s.rows; i++)
		assert_false(s.cell[i].code && utf8_is_control(s.cell[i].code));
	screen_release(&s);
	bed_release(&b);
}

/* ---- keys ---- */

static enum screen_action press(struct screen_view *v, const struct bed *b, const char *keys)
{
	const struct screen_node nodes[] = {bed_node(b, ""), bed_node(b, "other")};
	struct screen s = {0};
	struct error err = {0};
	enum screen_action action = SCREEN_NOTHING;

	assert_int_equal(screen_resize(&s, 100, 40, &err), STATUS_OK);
	for (; *keys; keys++) {
		screen_draw(&s, v, nodes, 2);
		action = screen_key(v, nodes, 2, &s, (struct screen_event){(uint32_t)*keys, 0, 0});
	}
	screen_release(&s);
	return action;
}

static void test_watch_screen__keys_lead_to_pages_and_back(void **state)
{
	struct screen_view v = {.page = SCREEN_FLEET};
	struct bed b;

	(void)state;
	make_eight(&b, 2);
	press(&v, &b, "\n");
	assert_int_equal(v.page, SCREEN_NODE);
	press(&v, &b, "g");
	assert_int_equal(v.page, SCREEN_GRAPH);
	assert_int_equal(v.row, CATALOGUE_GPU_UTILIZATION);
	press(&v, &b, ">");
	assert_int_not_equal(v.row, CATALOGUE_GPU_UTILIZATION);
	press(&v, &b, "<");
	assert_int_equal(v.row, CATALOGUE_GPU_UTILIZATION);
	press(&v, &b, "?");
	assert_int_equal(v.page, SCREEN_HELP);
	press(&v, &b, "qqm");
	assert_int_equal(v.page, SCREEN_METRICS);
	press(&v, &b, "\n");
	assert_int_equal(v.page, SCREEN_GRAPH);
	press(&v, &b, "qqq");
	assert_int_equal(v.page, SCREEN_FLEET);
	assert_int_equal(press(&v, &b, "q"), SCREEN_QUIT);
	assert_int_equal(press(&v, &b, "\x03"), SCREEN_QUIT);
	press(&v, &b, "\n/al\x7fx");
	assert_string_equal(v.filter, "ax");
	assert_true(v.typing);
	press(&v, &b, "\nt");
	assert_false(v.typing);
	assert_true(v.tree);
	press(&v, &b, "/\x1b");
	assert_string_equal(v.filter, "");
	press(&v, &b, "sr\t");
	assert_int_equal(v.sort, SCREEN_SORT_utilization);
	assert_true(v.reversed && v.on_processes);
	assert_int_equal(press(&v, &b, "k"), SCREEN_ASK_END);
	snprintf(v.question, sizeof(v.question), "?");
	assert_int_equal(press(&v, &b, "n"), SCREEN_KEEP);
	snprintf(v.question, sizeof(v.question), "?");
	assert_int_equal(press(&v, &b, "y"), SCREEN_END);
	assert_string_equal(v.question, "");
	bed_release(&b);
}

static void test_watch_screen__arrows_seek_in_a_recording_and_select_elsewhere(void **state)
{
	struct screen_view v = {.page = SCREEN_NODE, .replay = true, .length = 100};
	struct screen s = {0};
	struct error err = {0};
	struct screen_node n;
	struct bed b;

	(void)state;
	make_eight(&b, 2);
	n = bed_node(&b, "");
	assert_int_equal(screen_resize(&s, 100, 40, &err), STATUS_OK);
	screen_draw(&s, &v, &n, 1);
#define PRESS(name) screen_key(&v, &n, 1, &s, (struct screen_event){SCREEN_KEY_##name, 0, 0})
	assert_int_equal(PRESS(RIGHT), SCREEN_SEEK);
	assert_true(v.at == 10);
	PRESS(PAGE_DOWN);
	PRESS(PAGE_DOWN);
	assert_true(v.at == 100);
	PRESS(HOME);
	assert_true(v.at == 0);
	v.replay = false;
	PRESS(DOWN);
	PRESS(DOWN);
	PRESS(UP);
	assert_int_equal(v.gpu_at, 1);
	PRESS(END);
	assert_int_equal(v.gpu_at, 7);
	for (unsigned y = 0; y < s.rows; y++) /* a click selects what the row shows */
		if (s.hit[y].target == SCREEN_TARGET_PROCESS && s.hit[y].index == 1)
			screen_key(&v, &n, 1, &s, (struct screen_event){SCREEN_KEY_CLICK, 3, y});
	assert_true(v.on_processes);
	assert_int_equal(v.process_at, 1);
	for (unsigned y = 0; y < s.rows; y++)
		if (s.hit[y].target == SCREEN_TARGET_GPU && s.hit[y].index == 5)
			screen_key(&v, &n, 1, &s, (struct screen_event){SCREEN_KEY_DOUBLE_CLICK, 3, y});
	assert_int_equal(v.page, SCREEN_METRICS);
#undef PRESS
	screen_release(&s);
	bed_release(&b);
}

static void test_watch_screen__numbers_keep_their_width(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {{0, "0"}, {7, "7"}, {999, "999"}, {1000, "1.00k"}, {1234, "1.23k"}, {99960, "100k"}, {1e6, "1.00M"}, {2.5e-3, "0.00"}, {1e30, "1000000000000E"}};
	char out[SCREEN_VALUE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) - 1; i++) {
		screen_compact(out, rows[i].value, 1000);
		assert_string_equal(out, rows[i].text);
	}
	assert_string_equal(screen_short(out, CATALOGUE_GPU_UTILIZATION, 0.934, true), "93%");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_POWER, -0.0, true), "0W");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_POWER, -0.4, true), "0W");
	assert_string_equal(screen_long(out, CATALOGUE_GPU_POWER, -0.0, true), "0 W");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_UTILIZATION, -0.0, true), "0%");
	assert_string_equal(screen_long(out, CATALOGUE_GPU_TEMPERATURE, -0.0, true), "0 C");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_UTILIZATION, 0.934, false), "-");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_MEMORY, 80.0 * (1 << 30), true), "80.0G");
	assert_string_equal(screen_long(out, CATALOGUE_GPU_MEMORY, 80.0 * (1 << 30), true), "80.0 GiB");
	assert_string_equal(screen_long(out, CATALOGUE_INTERFACE_TX, 3.5e6, true), "3.50 MB/s");
	assert_string_equal(screen_short(out, CATALOGUE_GPU_SM_CLOCK, 1.98e9, true), "1980M");
	assert_string_equal(screen_duration(out, 12), "12 s");
	assert_string_equal(screen_duration(out, 7300), "2 h");
}

static void test_watch_screen__a_size_outside_the_limits_is_moved(void **state)
{
	struct screen s = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(screen_resize(&s, 1, 1, &err), STATUS_OK);
	assert_int_equal(s.columns, SCREEN_COLUMNS_MIN);
	assert_int_equal(s.rows, SCREEN_ROWS_MIN);
	assert_int_equal(screen_put(&s, 18, 4, 10, SCREEN_ROLE_TEXT, "\xe6\xbc\xa2\xe5\xad\x97"), 2);
	assert_int_equal(screen_put(&s, 20, 4, 10, SCREEN_ROLE_TEXT, "x"), 0);
	assert_int_equal(screen_put(&s, 0, 5, 10, SCREEN_ROLE_TEXT, "x"), 0);
	screen_release(&s);
}

static void test_watch_screen__a_line_tells_a_node(void **state)
{
	struct text t = {0};
	struct screen_node n;
	struct bed b;

	(void)state;
	make_lost(&b);
	n = bed_node(&b, "");
	screen_line(&t, &n);
	text_add(&t, "\n");
	golden("line", text_str(&t));
	text_release(&t);
	bed_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watch_screen__eight_gpus_fit_every_size),
		cmocka_unit_test(test_watch_screen__themes_colour_the_same_cells),
		cmocka_unit_test(test_watch_screen__machines_without_gpu_lost_and_mig),
		cmocka_unit_test(test_watch_screen__the_worst_node_comes_first),
		cmocka_unit_test(test_watch_screen__values_graphs_and_help),
		cmocka_unit_test(test_watch_screen__processes_sort_filter_and_group),
		cmocka_unit_test(test_watch_screen__text_of_nodes_is_clean),
		cmocka_unit_test(test_watch_screen__keys_lead_to_pages_and_back),
		cmocka_unit_test(test_watch_screen__arrows_seek_in_a_recording_and_select_elsewhere),
		cmocka_unit_test(test_watch_screen__numbers_keep_their_width),
		cmocka_unit_test(test_watch_screen__a_size_outside_the_limits_is_moved),
		cmocka_unit_test(test_watch_screen__a_line_tells_a_node),
	};

	return cmocka_run_group_tests_name("watch_screen", tests, NULL, NULL);
}
