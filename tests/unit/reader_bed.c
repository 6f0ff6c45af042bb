/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_bed.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <zstd.h>
#include "core/process/process.h"
#include "watch/read/reader.h"

static volatile sig_atomic_t stop;

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

/* What src/cmd/internal/watch.c does; the log and the limits come from the environment. */
static int play(int argc, char **argv)
{
	static int (*const parts[])(const struct reader_spec *) = {reader_node,	 reader_gpu,  reader_host,
								   reader_ports, reader_runs, reader_names};
	static const char *const names[] = {"node", "gpu", "host", "ports", "runs", "names"};
	struct reader_spec spec = {.interval = 1,
				   .slow = 5,
				   .sys = "/sys",
				   .proc = "/proc",
				   .kmsg = "/dev/null",
				   .skip = "none",
				   .stop = &stop};
	const struct sigaction action = {.sa_handler = on_term};

	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TEST_KMSG"))
		spec.kmsg = getenv("TEST_KMSG");
	if (getenv("TEST_LIMIT"))
		spec.limit = strtod(getenv("TEST_LIMIT"), NULL);
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--lifeline"))
			spec.lifeline = true;
		else if (!strcmp(argv[i], "--interval"))
			spec.interval = strtod(value, NULL);
		else if (!strcmp(argv[i], "--slow"))
			spec.slow = strtod(value, NULL);
		else if (!strcmp(argv[i], "--sys"))
			spec.sys = value;
		else if (!strcmp(argv[i], "--proc"))
			spec.proc = value;
		else if (!strcmp(argv[i], "--runs"))
			spec.runs = value;
		else if (!strcmp(argv[i], "--skip"))
			spec.skip = value;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(argv[2], names[i]))
			return parts[i](&spec);
	return 64;
}

void bed_start(struct bed *b, const char *root, double interval)
{
	struct watch_feed_spec spec = {.interval = interval, .slow = 2 * interval};
	struct error err = {0};

	b->root = root;
	snprintf(b->sys, sizeof(b->sys), "%s/sys", root);
	snprintf(b->proc, sizeof(b->proc), "%s/proc", root);
	snprintf(b->runs, sizeof(b->runs), "%s/runs", root);
	snprintf(b->kmsg, sizeof(b->kmsg), "%s/kmsg", root);
	setenv("TEST_KMSG", b->kmsg, 1);
	spec.sys = b->sys;
	spec.proc = b->proc;
	spec.runs = b->runs;
	if (watch_feed_start(&b->feed, &spec, &err))
		fail_msg("%s", err.text);
}

static void clear_stage(void)
{
	static const char *const names[] = {"FAKE_NVML_HANG",	 "FAKE_NVML_CRASH", "FAKE_NVML_LOST",
					    "FAKE_NVML_AFTER",	 "FAKE_NVML_UNTIL", "FAKE_NVML_BEFORE",
					    "FAKE_NVML_COUNTED", "FAKE_NVML_RATE",  "FAKE_NVML_RET",
					    "FAKE_NVML_XID",	 "TEST_LIMIT",	    "FAKE_NVML_INIT",
					    "FAKE_NVML_VALUE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

void bed_stop(struct bed *b)
{
	watch_feed_close(b->feed);
	clear_stage();
}

const struct watch_state *bed_state(const struct bed *b)
{
	return watch_feed_state(b->feed);
}

const struct watch_entity *bed_find(const struct watch_state *s, enum metric_scope scope, const char *label,
				    const char *value)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const char *have = watch_label(&s->entity[i], label);

		if (s->entity[i].scope == scope && have && !strcmp(have, value))
			return &s->entity[i];
	}
	return NULL;
}

const struct watch_entity *bed_gpu(const struct bed *b, unsigned i)
{
	return bed_find(bed_state(b), METRIC_SCOPE_GPU, "pci_bus_id", i ? "0000:2b:00.0" : "0000:1b:00.0");
}

const char *bed_process_label(const struct bed *b, const char *pid, const char *label)
{
	const struct watch_entity *e = bed_find(bed_state(b), METRIC_SCOPE_PROCESS, "pid", pid);

	return e ? watch_label(e, label) : NULL;
}

double bed_value(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = e ? watch_get(e, row) : NULL;

	return v ? v->value : -1e300;
}

void bed_turn(struct bed *b)
{
	struct pollfd p = {.fd = watch_feed_fd(b->feed), .events = POLLIN};

	poll(&p, 1, 20);
	watch_feed_poll(b->feed);
}

void bed_give_up(struct bed *b, const char *condition)
{
	struct text all = {0};

	watch_state_write(bed_state(b), &all);
	print_message("%s\n%s\n", text_str(&all), watch_feed_why(b->feed) ? watch_feed_why(b->feed) : "");
	fail_msg("waited in vain for %s", condition);
}

struct watch_recorder *bed_record(struct bed *b)
{
	struct watch_recorder *r = NULL;
	struct error err = {0};
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/recorded", b->root);
	if (watch_recorder_open(&r, path, 1, &err))
		fail_msg("%s", err.text);
	watch_feed_record(b->feed, r, 0);
	return r;
}

void bed_recorded(struct bed *b, struct watch_recorder *r, struct text *out)
{
	enum { RECORDED_MOST = 16 << 20 };
	char path[PATH_MAX + 16], *packed, block[1 << 16];
	ZSTD_DStream *stream = ZSTD_createDStream();
	struct error err = {0};
	ZSTD_inBuffer in = {0};
	size_t size;

	watch_feed_record(b->feed, NULL, 0);
	assert_int_equal(watch_recorder_close(r, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/recorded", b->root);
	assert_int_equal(file_read(&packed, &size, path, RECORDED_MOST, &err), STATUS_OK);
	in = (ZSTD_inBuffer){.src = packed, .size = size};
	assert_non_null(stream);
	for (bool more = true; more && out->size < RECORDED_MOST;) {
		ZSTD_outBuffer room = {.dst = block, .size = sizeof(block)};

		assert_false(ZSTD_isError(ZSTD_decompressStream(stream, &room, &in)));
		text_add_bytes(out, block, room.pos);
		more = in.pos < in.size || room.pos == room.size;
	}
	ZSTD_freeDStream(stream);
	free(packed);
}

char *bed_recorded_after(const struct text *lines, const char *words)
{
	const char *at = strstr(text_str(lines), words);
	char *rest;

	if (!at)
		fail_msg("no line has \"%s\"", words);
	rest = strndup(at + strlen(words), strcspn(at + strlen(words), "\n"));
	assert_non_null(rest);
	return rest;
}

int bed_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t count)
{
	if (argc > 2 && !strcmp(argv[1], "__watch"))
		return play(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TEST_FILTER"))
		cmocka_set_test_filter(getenv("TEST_FILTER"));
	return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}
