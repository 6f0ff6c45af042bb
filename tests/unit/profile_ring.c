/* SPDX-License-Identifier: Apache-2.0 */
/* Ring files: what the injected library's writer leaves, read back; cut, full and strange ones. */
#include "test.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include "profile/timeline/clock_map.h"
#include "profile_bed.h"
#include "scratch.h"

enum { SMALL = RING_SEGMENTS_MIN * RING_SEGMENT };

/* CUPTI's clock as one that runs 100 ppm fast, with a pair that was interrupted. */
static void test_ring__clocks_that_drift_are_told_and_taken_away(void **state)
{
	enum { SECONDS = 10 };
	const uint64_t second = 1000000000, begin = 5 * second;
	struct clock_map m = {0};
	uint64_t own_ns;

	(void)state;
	for (uint64_t i = 0; i <= SECONDS; i++) {
		uint64_t own = begin + i * second, foreign = own + 7 * second + i * 100000;

		assert_true(clock_map_add(&m, own - 40, foreign, own + 40));
	}
	assert_true(clock_map_add(&m, begin + 2 * second, begin + 9 * second + 900000,
				  begin + 2 * second + 4000000));
	assert_false(clock_map_add(&m, 10, 10, 9)); /* backwards */
	clock_map_fit(&m);
	assert_int_equal(m.count, SECONDS + 1);
	assert_int_equal(m.error_ns, 40);
	assert_true(m.drift < -99.9e-6 && m.drift > -100.1e-6);
	assert_true(clock_map_own(&m, begin + 7 * second + second / 2 + 50000, &own_ns));
	assert_true(own_ns >= begin + second / 2 - 10 && own_ns <= begin + second / 2 + 10);
	assert_true(clock_map_own(&m, begin + 7 * second - 1000, &own_ns)); /* before all */
	assert_int_equal(own_ns, begin - 1000);
	clock_map_release(&m);
	assert_false(clock_map_own(&m, 1, &own_ns));
}

static void test_ring__what_is_written_reads_on_our_clock(void **state)
{
	struct writer w;
	struct timeline t;
	const struct timeline_event *e;

	assert_true(writer_open(&w, *state, SMALL));
	add_clock(&w, 1000000);
	add_clock(&w, 9000000);
	add_kernel(&w, "_Z4scalev", 2000000, 500, 11);
	add_kernel(&w, "gemm", 1500000, 700, 12);
	add_call(&w, "cudaLaunchKernel", 1490000, 5000, 12);
	writer_close(&w);
	writer_forget(&w);
	read_back(&t, *state);
	assert_int_equal(t.processes, 1);
	assert_int_equal(t.process[0].pid, getpid());
	assert_true(t.process[0].closed);
	assert_int_equal(t.process[0].clock_pairs, 2);
	assert_int_equal(t.events, 3);
	assert_int_equal(t.event[0].kind, TIMELINE_RUNTIME);
	e = named(&t, "gemm");
	assert_int_equal(e->start_ns, 1500000);
	assert_int_equal(e->end_ns, 1500700);
	assert_int_equal(t.kernel[e->detail].grid[0], 132);
	assert_ptr_equal(timeline_call(&t, e), &t.event[0]);
	assert_int_equal(t.track[e->track].stream, 7);
	assert_int_equal(t.track[e->track].count, 2);
	assert_int_equal(t.by_track[t.track[e->track].first], e - t.event);
	assert_null(timeline_call(&t, &t.event[2])); /* its call was not recorded */
	timeline_release(&t);
}

static void test_ring__ranges_nest_by_thread_and_end_with_the_recording(void **state)
{
	struct writer w;
	struct timeline t;
	const struct timeline_event *e;

	assert_true(writer_open(&w, *state, SMALL));
	add_range(&w, RING_PUSH, "step", 100, 1, 0);
	add_range(&w, RING_PUSH, "forward", 110, 1, 0);
	add_range(&w, RING_PUSH, "other thread", 115, 2, 0);
	add_range(&w, RING_POP, NULL, 120, 1, 0);
	add_range(&w, RING_START, "loose", 125, 1, 77);
	add_range(&w, RING_POP, NULL, 130, 1, 0);
	add_range(&w, RING_END, NULL, 140, 2, 77);
	add_range(&w, RING_POP, NULL, 150, 1, 0); /* of none */
	add_range(&w, RING_MARK, "here", 160, 1, 0);
	writer_forget(&w); /* as when the process was killed */
	read_back(&t, *state);
	assert_false(t.process[0].closed);
	assert_int_equal(t.process[0].odd, 1);
	assert_int_equal(t.events, 5);
	e = named(&t, "step");
	assert_int_equal(e->end_ns, 130);
	assert_false(t.range[e->detail].cut);
	assert_int_equal(named(&t, "forward")->end_ns, 120);
	assert_int_equal(named(&t, "loose")->end_ns, 140);
	assert_int_equal(named(&t, "here")->kind, TIMELINE_MARK);
	e = named(&t, "other thread");
	assert_true(t.range[e->detail].cut);
	assert_int_equal(e->end_ns, t.process[0].ended_ns);
	timeline_release(&t);
}

static void test_ring__payloads_are_told_by_their_schema(void **state)
{
	struct {
		struct ring_schema s;
		struct ring_field f[3];
	} schema = {.s = {.head = {.type = RING_SCHEMA, .size = sizeof(schema)}, .id = 5, .fields = 3}};
	struct {
		struct ring_range r;
		uint64_t payload[3];
	} range = {.r = {.head = {.type = RING_RANGE, .size = sizeof(range)},
			 .kind = RING_MARK,
			 .payload_kind = RING_PAYLOAD_SCHEMA,
			 .payload_size = 24},
		   .payload = {5, 1ull << 40, 0xfffffffeull}};
	const struct timeline_range *r;
	struct writer w;
	struct timeline t;

	assert_true(writer_open(&w, *state, SMALL));
	schema.f[0] = (struct ring_field){.type = 18, .offset = 0, .name = writer_string(&w, "bytes")};
	schema.f[1] = (struct ring_field){.type = 15, .offset = 8, .name = writer_string(&w, "root")};
	schema.f[2] = (struct ring_field){.type = 18, .offset = 4000000000u}; /* outside: not there */
	writer_add(&w, &schema);
	range.r.head.name = writer_string(&w, "ncclAllReduce");
	writer_add(&w, &range);
	writer_forget(&w);
	read_back(&t, *state);
	r = &t.range[t.event[0].detail];
	assert_int_equal(r->values, 2);
	assert_string_equal(timeline_name(&t, t.value[r->value_first].name), "bytes");
	assert_int_equal(t.value[r->value_first].u64, 1ull << 40);
	assert_int_equal((int64_t)t.value[r->value_first + 1].u64, -2);
	timeline_release(&t);
}

/* NCCL tells of a communicator as the call that made it ends; that outlives the events around it. */
static void test_ring__what_comes_with_a_ranges_end_is_its_too(void **state)
{
	const struct bed_field
		begun[] = {{"asked", 5}, {0}},
		told[] = {{"NCCL communicator ID", 0xfeed}, {"No. of ranks", 8}, {"Rank", 3}, {0}},
		shrunk[] = {{"NCCL communicator ID", 0xbeef}, {"No. of ranks", 8}, {"num_exclude", 2}, {0}};
	const struct timeline_range *r;
	struct writer w;
	struct timeline t;

	bed_open(&w, *state);
	bed_nccl(&w, RING_PUSH, "ncclCommInitRank", 10, 1, begun, false);
	bed_nccl(&w, RING_PUSH, "ncclCommShrink", 11, 1, NULL, false);
	bed_nccl(&w, RING_POP, NULL, 12, 1, shrunk, true);
	bed_nccl(&w, RING_POP, NULL, 20, 1, told, true);
	bed_close(&w);
	read_back(&t, *state);
	r = &t.range[named(&t, "ncclCommInitRank")->detail];
	assert_int_equal(r->values, 4);
	assert_string_equal(timeline_name(&t, t.value[r->value_first].name), "asked");
	assert_int_equal(t.value[r->value_first].u64, 5);
	assert_int_equal(t.value[r->value_first + 1].u64, 0xfeed);
	assert_int_equal(t.comms, 2);
	assert_int_equal(t.comm[0].ranks, 6);
	assert_int_equal(t.comm[0].rank, TIMELINE_NONE);
	assert_int_equal(t.comm[1].id, 0xfeed);
	assert_int_equal(t.comm[1].ranks, 8);
	assert_int_equal(t.comm[1].rank, 3);
	timeline_release(&t);
}

static void test_ring__at_the_limit_the_oldest_make_room_and_are_counted(void **state)
{
	enum { KERNELS = 200000 }; /* 19 MB into 4 */
	struct writer w;
	struct timeline t;

	assert_true(writer_open(&w, *state, SMALL));
	add_clock(&w, 1000);
	for (uint32_t i = 0; i < KERNELS; i++)
		add_kernel(&w, "k", 1000 + 10 * i, 5, i + 1);
	writer_close(&w);
	writer_forget(&w);
	read_back(&t, *state);
	assert_true(t.events > 20000);
	assert_int_equal(t.events + t.process[0].overwritten, KERNELS);
	assert_int_equal(t.event[t.events - 1].correlation, KERNELS); /* the last are kept, without holes */
	for (size_t i = 1; i < t.events; i++)
		assert_int_equal(t.event[i].correlation, t.event[i - 1].correlation + 1);
	assert_string_equal(timeline_name(&t, t.event[0].name), "k");
	timeline_release(&t);
}

static void test_ring__a_limit_of_events_leaves_the_later_ones_out(void **state)
{
	struct writer w;
	struct timeline t;
	struct text note = {0};
	struct error err = {0};

	assert_true(writer_open(&w, *state, SMALL));
	add_clock(&w, 1000);
	for (uint32_t i = 0; i < 100; i++)
		add_kernel(&w, "k", 1000 + 10 * i, 5, i + 1);
	writer_forget(&w);
	assert_int_equal(timeline_read(&t, *state, 30, &note, &err), STATUS_OK);
	assert_int_equal(t.events, 30);
	assert_int_equal(t.process[0].left_out, 70);
	timeline_release(&t);
	text_release(&note);
}

/* A limit of the file's size takes effect as a full disk does, and kills nobody. */
static void test_ring__a_file_that_may_not_grow_keeps_what_it_has(void **state)
{
	struct rlimit limit = {.rlim_cur = 3 << 20, .rlim_max = 3 << 20};
	struct timeline t;
	struct writer w;
	pid_t child = fork();
	int how = -1;

	if (!child) {
		if (setrlimit(RLIMIT_FSIZE, &limit) || !writer_open(&w, *state, 64 << 20))
			_exit(1);
		add_clock(&w, 1000);
		for (uint32_t i = 0; i < 100000; i++)
			add_kernel(&w, "k", 1000 + 10 * i, 5, i + 1);
		writer_close(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_int_equal(how, 0);
	read_back(&t, *state);
	assert_int_equal(t.process[0].stop, RING_STOP_FILE_LIMIT);
	assert_int_equal(t.events + t.process[0].overwritten + t.process[0].dropped, 100000);
	assert_true(t.events > 1000);
	timeline_release(&t);
}

/* Names that find no room on the disk do not take it from events: all of these are there or counted. */
static void test_ring__names_leave_events_the_segment_that_they_go_on_in(void **state)
{
	enum { EVENTS = 1000, NAMES = 400, NAME = 4000 };
	const rlim_t two = (rlim_t)ring_segments_at(64) + 2 * RING_SEGMENT;
	struct rlimit limit = {.rlim_cur = two, .rlim_max = two};
	char name[NAME + 1];
	struct timeline t;
	struct writer w;
	pid_t child = fork();
	int how = -1;

	if (!child) {
		if (setrlimit(RLIMIT_FSIZE, &limit) || !writer_open(&w, *state, 64 * RING_SEGMENT))
			_exit(1);
		add_clock(&w, 1000);
		add_kernel(&w, "k", 1000, 5, 1);
		for (unsigned i = 0; i < NAMES; i++) {
			memset(name, 'a' + (int)(i % 26), NAME);
			snprintf(name, NAME, "%u", i);
			name[strlen(name)] = ' ';
			name[NAME] = '\0';
			writer_string(&w, name);
		}
		for (uint32_t i = 1; i < EVENTS; i++)
			add_kernel(&w, "k", 1000 + 10 * i, 5, i + 1);
		writer_close(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_int_equal(how, 0);
	read_back(&t, *state);
	assert_int_equal(t.process[0].stop, RING_STOP_FILE_LIMIT);
	assert_true(t.process[0].names_lost > 0);
	assert_int_equal(t.events, EVENTS);
	assert_int_equal(t.process[0].overwritten + t.process[0].dropped, 0);
	timeline_release(&t);
}

/* As a signal's handler finds it that came inside it: what cannot be written is counted, and nobody hangs. */
static void test_ring__a_lock_that_is_never_free_costs_what_wanted_it(void **state)
{
	struct writer w;
	struct timeline t;

	assert_true(writer_open(&w, *state, SMALL));
	add_clock(&w, 1000);
	add_kernel(&w, "k", 1000, 5, 1);
	w.lock = 1;
	assert_int_equal(writer_string(&w, "another"), 0);
	add_kernel(&w, NULL, 2000, 5, 2);
	w.lock = 0;
	add_kernel(&w, "k", 3000, 5, 3);
	writer_close(&w);
	writer_forget(&w);
	read_back(&t, *state);
	assert_true(t.process[0].closed);
	assert_int_equal(t.events, 2);
	assert_int_equal(t.process[0].dropped, 1);
	assert_int_equal(t.process[0].names_lost, 1);
	timeline_release(&t);
}

static void cut_file(const char *dir, off_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d.ring", dir, (int)getpid());
	assert_int_equal(truncate(path, size), 0);
}

static void test_ring__a_cut_file_reads_up_to_the_cut(void **state)
{
	struct writer w;
	struct timeline t;

	assert_true(writer_open(&w, *state, SMALL));
	add_clock(&w, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		add_kernel(&w, "k", 1000 + 10 * i, 5, i + 1);
	writer_forget(&w);
	cut_file(*state, (off_t)(ring_segments_at(RING_SEGMENTS_MIN) + RING_SEGMENT +
				 100 * sizeof(struct ring_kernel) + 40));
	read_back(&t, *state);
	assert_int_equal(t.events, 100);
	assert_int_equal(t.process[0].cut_bytes, 900 * sizeof(struct ring_kernel));
	timeline_release(&t);
}

static void test_ring__what_is_no_ring_file_is_said_and_passed_over(void **state)
{
	struct timeline t;
	struct text note = {0};
	struct error err = {0};
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/1.ring", (char *)*state);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/2.ring", (char *)*state);
	f = fopen(path, "w");
	fprintf(f, "hello");
	fclose(f);
	assert_int_equal(timeline_read(&t, *state, 0, &note, &err), STATUS_OK);
	assert_int_equal(t.processes, 0);
	assert_non_null(strstr(text_str(&note), "1.ring is empty"));
	assert_non_null(strstr(text_str(&note), "2.ring is not a ring file"));
	timeline_release(&t);
	text_release(&note);
	assert_int_equal(timeline_read(&t, "/nonexistent/folder", 0, &note, &err), STATUS_UNAVAILABLE);
	text_release(&note);
}

static void test_ring__a_second_file_of_a_process_number_has_another_name(void **state)
{
	struct writer first, second;
	struct timeline t;

	assert_true(writer_open(&first, *state, SMALL));
	assert_true(writer_open(&second, *state, SMALL));
	add_range(&first, RING_MARK, "one", 10, 1, 0);
	add_range(&second, RING_MARK, "two", 20, 1, 0);
	writer_forget(&first);
	writer_forget(&second);
	read_back(&t, *state);
	assert_int_equal(t.processes, 2);
	assert_int_equal(t.events, 2);
	timeline_release(&t);
}

static void test_ring__no_folder_no_file_and_no_harm(void **state)
{
	struct writer w;

	(void)state;
	assert_false(writer_open(&w, "/nonexistent/folder", SMALL));
	add_range(&w, RING_MARK, "nowhere", 10, 1, 0);
	assert_int_equal(writer_string(&w, "x"), 0);
	writer_close(&w);
}

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Not asserted: the machine is shared. CPU time of a record, beside CUPTI's part. */
static void test_ring__what_a_record_costs(void **state)
{
	enum { RECORDS = 100000 };
	uint64_t begin_ns, kernel_ns, range_ns;
	struct writer w;

	assert_true(writer_open(&w, *state, 32 << 20));
	begin_ns = cpu_ns();
	for (uint32_t i = 0; i < RECORDS; i++)
		add_kernel(&w,
			   i % 2 ? "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn" : "softmax",
			   i, 5, i);
	kernel_ns = cpu_ns() - begin_ns;
	begin_ns = cpu_ns();
	for (uint32_t i = 0; i < RECORDS; i++)
		add_range(&w, i % 2 ? RING_POP : RING_PUSH, i % 2 ? NULL : "forward", writer_now_ns(), 1, 0);
	range_ns = cpu_ns() - begin_ns;
	assert_int_equal(w.header->records, 2 * RECORDS + 3); /* three names */
	writer_forget(&w);
	print_message("# a kernel %.0f ns, a push or pop %.0f ns\n", (double)kernel_ns / RECORDS,
		      (double)range_ns / RECORDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_ring__what_is_written_reads_on_our_clock),
		cmocka_unit_test(test_ring__clocks_that_drift_are_told_and_taken_away),
		scratch_test(test_ring__ranges_nest_by_thread_and_end_with_the_recording),
		scratch_test(test_ring__payloads_are_told_by_their_schema),
		scratch_test(test_ring__what_comes_with_a_ranges_end_is_its_too),
		scratch_test(test_ring__at_the_limit_the_oldest_make_room_and_are_counted),
		scratch_test(test_ring__a_limit_of_events_leaves_the_later_ones_out),
		scratch_test(test_ring__a_file_that_may_not_grow_keeps_what_it_has),
		scratch_test(test_ring__names_leave_events_the_segment_that_they_go_on_in),
		scratch_test(test_ring__a_lock_that_is_never_free_costs_what_wanted_it),
		scratch_test(test_ring__a_cut_file_reads_up_to_the_cut),
		scratch_test(test_ring__what_is_no_ring_file_is_said_and_passed_over),
		scratch_test(test_ring__a_second_file_of_a_process_number_has_another_name),
		scratch_test(test_ring__no_folder_no_file_and_no_harm),
		scratch_test(test_ring__what_a_record_costs),
	};

	return cmocka_run_group_tests_name("profile_ring", tests, NULL, NULL);
}
