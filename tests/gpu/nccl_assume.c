/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probe `collective` is built on, asked of a real machine, one line each:
 *   nccl_assume [small]    all of them, with as many GPUs as there are (2 to 8); small: 64 KiB instead of 64
 * MiB nccl_assume latency    us of an 8-byte all-reduce by graph, for a comparison of environments Nothing is
 * judged; exit 0: all could be asked. Without two GPUs or NCCL it skips (77).
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "kernel/test_data/collective.h"
#include "kernel/fatbin.h"
#include "nccl_ranks.h"
#include "probe/collective/expect.h"
#include "team/libraries/nccl_hooks.h"
#include "vendor/cuda.h"
#include "vendor/nvml.h"

enum { BUFFER = 64 << 20, SMALL = 64 << 10, CALLS = 400 };

static double seconds(void)
{
	return (double)clock_now_ns(clock_monotonic()) / 1e9;
}

static void say(const struct nccl_rank *k, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct nccl_rank *k, const char *format, ...)
{
	va_list args;

	if (k->rank)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void latency(struct nccl_rank *k)
{
	double us[5], swap;

	if (!crew_comm(k, true, 0))
		return;
	for (int i = 0; i < 5; i++)
		us[i] = crew_time(k, 8, 200, true);
	for (int i = 0; i < 5; i++)
		for (int j = i + 1; j < 5; j++)
			if (us[j] < us[i]) {
				swap = us[i];
				us[i] = us[j];
				us[j] = swap;
			}
	say(k, "%.3f", us[2]);
	crew_comm_end(k);
}

static const char *told_text(char *out, size_t size)
{
	struct nccl_choice t = nccl_hooks_choice();

	if (t.told)
		snprintf(out, size, "%s %s, %u channels, %u warps", t.algorithm, t.protocol, t.channels,
			 t.warps);
	else
		snprintf(out, size, "nothing told");
	return out;
}

/* One call with listening on, and what came of it. */
static const char *ask(struct nccl_rank *k, uint64_t bytes, char *out, size_t size)
{
	if (!k->rank)
		nccl_hooks_listen(true);
	crew_meet(k);
	crew_time(k, bytes, 1, false);
	if (!k->rank) {
		told_text(out, size);
		nccl_hooks_listen(false);
	}
	crew_meet(k);
	return out;
}

/* 1, 6, 9 */
static void plain(struct nccl_rank *k)
{
	char small[64] = "", large[64] = "";
	double t0 = seconds(), stream, graph;

	if (!crew_comm(k, true, 0))
		return;
	k->crew->number[k->rank] = seconds() - t0;
	crew_meet(k);
	say(k, "6 init of %u ranks, a thread each, the first of the process: %.2f s", k->crew->ranks,
	    crew_most(k->crew));
	t0 = seconds();
	crew_time(k, 8, 1, false);
	say(k, "6 the first calls, 8 B: %.3f s", seconds() - t0);
	ask(k, 8, small, sizeof(small));
	ask(k, k->crew->bytes, large, sizeof(large));
	say(k, "1 hooks in the program: 8 B %s; all of the buffer %s", small, large);
	stream = crew_time(k, 8, CALLS, false);
	graph = crew_time(k, 8, CALLS / 4, true);
	say(k, "9 capture by %u threads at once: 8 B stream %.2f us, graph %.2f us", k->crew->ranks, stream,
	    graph);
	crew_comm_end(k);
}

/* 2: rank 0 sets the environment between meetings. */
static void forced(struct nccl_rank *k)
{
	static const char *const ways[][2] = {
		{"Ring", "Simple"}, {"Ring", "LL"}, {"Ring", "LL128"}, {"Tree", "Simple"}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char told[64] = "";

		if (!k->rank) {
			setenv("NCCL_ALGO", ways[i][0], 1);
			setenv("NCCL_PROTO", ways[i][1], 1);
		}
		if (!crew_meet(k) || !crew_comm(k, true, 0))
			return;
		ask(k, k->crew->bytes / 64, told, sizeof(told));
		say(k, "2 NCCL_ALGO=%s NCCL_PROTO=%s at init: 1/64 of it %s, %.1f us", ways[i][0], ways[i][1],
		    told, crew_time(k, k->crew->bytes / 64, 50, false));
		crew_comm_end(k);
	}
	if (!k->rank) {
		unsetenv("NCCL_ALGO");
		unsetenv("NCCL_PROTO");
	}
	crew_meet(k);
}

/* 3 */
static void windows(struct nccl_rank *k)
{
	struct nccl_crew *c = k->crew;
	gpu_ptr own[2] = {k->send, k->receive};
	void *p[2] = {NULL, NULL};
	ncclWindow_t w[2] = {NULL, NULL};
	char told[64] = "";

	if (!c->nccl.window || !c->nccl.alloc) {
		say(k, "3 windows: not in this NCCL");
		return;
	}
	if (!crew_comm(k, true, 0))
		return;
	for (int i = 0; i < 2 && !c->failed; i++) {
		ncclResult_t r = c->nccl.alloc(&p[i], c->bytes);

		if (r == ncclSuccess)
			r = c->nccl.window(k->comm, p[i], c->bytes, &w[i], NCCL_WIN_COLL_SYMMETRIC);
		if (r != ncclSuccess)
			crew_fail(k, "ncclCommWindowRegister", r, NULL);
		if (!crew_meet(k))
			return;
	}
	k->send = (uintptr_t)p[0];
	k->receive = (uintptr_t)p[1];
	ask(k, 8, told, sizeof(told));
	say(k, "3 a call on windows: 8 B %s; graph %.2f us, stream %.2f us", told,
	    crew_time(k, 8, CALLS / 4, true), crew_time(k, 8, CALLS, false));
	k->send = own[0];
	k->receive = own[1];
	for (int i = 0; i < 2; i++) {
		c->nccl.unwindow(k->comm, w[i]);
		c->nccl.free(p[i]);
	}
	crew_comm_end(k);
}

/* 4: the last rank stays away. */
static void absent(struct nccl_rank *k)
{
	struct nccl_crew *c = k->crew;
	ncclConfig_t config = nccl_config(&c->nccl);
	ncclResult_t r = ncclSuccess, now = ncclSuccess;
	double t0 = seconds(), aborted = 0;

	config.blocking = 0;
	if (!k->rank)
		c->nccl.unique_id(&c->id);
	crew_meet(k);
	if (k->rank + 1 < c->ranks) {
		r = c->nccl.init(&k->comm, (int)c->ranks, c->id, (int)k->rank, &config);
		while (k->comm && seconds() - t0 < 0.5 && !c->nccl.async_error(k->comm, &now) &&
		       now == ncclInProgress)
			clock_sleep_ns(clock_monotonic(), 1000000);
		t0 = seconds();
		if (k->comm)
			c->nccl.abort(k->comm);
		aborted = seconds() - t0;
		k->comm = NULL;
	}
	c->number[k->rank] = aborted;
	crew_meet(k);
	say(k, "4 blocking=0 with a peer missing: init said %d, state %d after 0.5 s; abort took %.3f s",
	    (int)r, (int)now, crew_most(c));
}

/* 4: what such a communicator costs a call, and whether it can be captured. */
static void nonblocking(struct nccl_rank *k)
{
	double us;

	if (!crew_comm(k, false, 0))
		return;
	us = crew_time(k, 8, CALLS, false);
	say(k, "4 8 B on a communicator with blocking=0: %.2f us by stream", us);
	us = crew_time(k, 8, 20, true);
	say(k, "4 the same by graph: %.2f us", us);
	crew_comm_end(k);
}

/* 5 */
static void split(struct nccl_rank *k)
{
	struct nccl_crew *c = k->crew;
	ncclComm_t part = NULL;
	double t0;
	ncclResult_t r;

	if (!c->nccl.split) {
		say(k, "5 split: not in this NCCL");
		return;
	}
	if (!crew_comm(k, true, 0))
		return;
	t0 = seconds();
	r = c->nccl.split(k->comm, k->rank + 1 < c->ranks ? 0 : -1, (int)k->rank, &part, NULL);
	c->number[k->rank] = seconds() - t0;
	c->result[k->rank] = r;
	crew_meet(k);
	say(k, "5 split without the last rank: %.3f s, %s", crew_most(c), c->nccl.error_string(r));
	if (part)
		c->nccl.destroy(part);
	crew_comm_end(k);
}

static enum status launch(struct nccl_rank *k, struct gpu_stream *s, const char *entry, unsigned blocks,
			  const void *args, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "collective", entry, err);

	return st ? st : gpu_launch_1d(kernel, s, blocks, 256, 0, args, err);
}

struct counts {
	struct operand_found found;
	unsigned long long suspect[2 * NCCL_RANKS + 1];
};

/* 8: one type's sum over all ranks; the number of wrong elements into `number`. */
static void exact(struct nccl_rank *k, enum operand_type type, ncclDataType_t nccl_type)
{
	struct nccl_crew *c = k->crew;
	struct collective_inputs in = collective_inputs(type, COLLECTIVE_SUM, c->ranks, 5);
	struct counts counts = {.found.first = UINT64_MAX};
	uint64_t count = c->bytes / 64;
	gpu_ptr at = k->send + k->crew->bytes / 2;
	struct error err = {0};
	ncclResult_t r;
	enum status st;
	struct collective_fill_args fill = {.out = k->send,
					    .count = count,
					    .seed = in.seed,
					    .type = type,
					    .rule = in.rule,
					    .ranks = in.ranks,
					    .rank = k->rank,
					    .slots = in.slots,
					    .most = in.most,
					    .unit = in.unit};
	struct collective_check_args check = {.data = k->receive,
					      .found = at + offsetof(struct counts, found),
					      .suspect = at + offsetof(struct counts, suspect),
					      .count = count,
					      .seed = in.seed,
					      .type = type,
					      .rule = in.rule,
					      .ranks = in.ranks,
					      .slots = in.slots,
					      .most = in.most,
					      .unit = in.unit};

	st = gpu_copy_to(k->device, at, &counts, sizeof(counts), &err);
	if (!st)
		st = launch(k, k->stream, "collective_fill", 256, &fill, &err);
	if (!st) {
		r = c->nccl.all_reduce((void *)(uintptr_t)k->send, (void *)(uintptr_t)k->receive, count,
				       nccl_type, ncclSum, k->comm, gpu_stream_raw(k->stream));
		st = nccl_check(&c->nccl, r, k->comm, "ncclAllReduce", &err);
	}
	if (!st)
		st = launch(k, k->stream, "collective_check", 256, &check, &err);
	if (!st)
		st = gpu_copy_from(k->device, &counts, at, sizeof(counts), &err);
	if (st)
		crew_fail(k, "an exact sum", ncclSuccess, &err);
	c->number[k->rank] = (double)counts.found.wrong;
}

static void sums(struct nccl_rank *k)
{
	static const struct {
		const char *name;
		enum operand_type type;
		ncclDataType_t nccl;
	} types[] = {{"e4m3", OPERAND_E4M3, ncclFloat8e4m3}, {"e5m2", OPERAND_E5M2, ncclFloat8e5m2},
		     {"bf16", OPERAND_BF16, ncclBfloat16},   {"fp16", OPERAND_F16, ncclFloat16},
		     {"int8", OPERAND_S8, ncclInt8},	     {"fp32", OPERAND_F32, ncclFloat32}};

	if (!crew_comm(k, true, 0))
		return;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		exact(k, types[i].type, types[i].nccl);
		if (!crew_meet(k))
			break;
		say(k, "8 sum of %s over %u ranks: %.0f of %.0f elements are not the predicted bits",
		    types[i].name, k->crew->ranks, crew_most(k->crew), (double)k->crew->bytes / 64);
		crew_meet(k);
	}
	crew_comm_end(k);
}

/* 10: what a busy kernel on rank 1 does to every rank's own time of single calls. */
static void single(struct nccl_rank *k, double us[32])
{
	for (int i = 0; i < 32; i++) {
		crew_time(k, k->crew->bytes / 16, 1, false);
		us[i] = k->crew->number[k->rank];
	}
}

static double mean(const double *v, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += v[i];
	return sum / n;
}

static void slow(struct nccl_rank *k)
{
	struct collective_busy_args busy = {.memory = k->send + k->crew->bytes / 2,
					    .stop = k->send + k->crew->bytes - 64,
					    .words = k->crew->bytes / 16,
					    .ns = 400000000};
	double us[32];
	struct error err = {0};

	if (!crew_comm(k, true, 0))
		return;
	single(k, us);
	k->crew->number[k->rank] = mean(us, 32);
	crew_meet(k);
	for (unsigned r = 0; r < k->crew->ranks; r++)
		say(k, "10 1/16 of it alone, rank %u: %.1f us", r, k->crew->number[r]);
	crew_meet(k);
	if (k->rank == 1 && launch(k, k->beside, "collective_busy", 4 * gpu_sm_count(k->device), &busy, &err))
		crew_fail(k, "the busy kernel", ncclSuccess, &err);
	single(k, us);
	k->crew->number[k->rank] = mean(us, 32);
	crew_meet(k);
	for (unsigned r = 0; r < k->crew->ranks; r++)
		say(k, "10 1/16 of it with rank 1 busy, rank %u: %.1f us", r, k->crew->number[r]);
	gpu_synchronize(k->device, &err);
	crew_comm_end(k);
}

/* 7: NVML's link counters over a copy that is known. */
static double counter(const struct nvml *n, nvmlDevice_t d, unsigned field)
{
	nvmlFieldValue_t v = {.fieldId = field, .scopeId = UINT32_MAX};

	if (!n->fields || n->fields(d, 1, &v) || v.nvmlReturn)
		return NAN;
	return (double)v.value.ullVal * 1024;
}

static void counters(struct nccl_rank *k)
{
	static const unsigned fields[] = {NVML_LINK_FIELD_data_tx, NVML_LINK_FIELD_data_rx,
					  NVML_LINK_FIELD_raw_tx, NVML_LINK_FIELD_raw_rx};
	double before[4], moved = 0;
	struct error err = {0};
	struct nvml n;
	nvmlDevice_t d;

	if (k->rank)
		return;
	if (lib_open(&n, &nvml_lib, NULL, NULL, &err) || n.init() || n.by_index(0, &d)) {
		printf("7 NVML: %s\n", err.status ? err.text : "does not answer");
		return;
	}
	for (int i = 0; i < 4; i++)
		before[i] = counter(&n, d, fields[i]);
	for (int i = 0; i < 64; i++, moved += (double)k->crew->bytes)
		if (gpu_stream_copy(k->stream, k->crew->memory[1], k->send, k->crew->bytes, &err))
			break;
	gpu_synchronize(k->device, &err);
	clock_sleep_ns(clock_monotonic(), 200000000);
	for (int i = 0; i < 4; i++)
		printf("7 NVML field %u of GPU 0 over a copy of %.2f GB to GPU 1: %.2f GB\n", fields[i],
		       moved / 1e9, (counter(&n, d, fields[i]) - before[i]) / 1e9);
}

/* 1: the same process with the hooks and without, in turns. */
static double child(const char *program, const char *plugin)
{
	char command[4200], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "NCCL_PROFILER_PLUGIN=%s '%s' latency", plugin, program);
	f = popen(command, "r");
	if (!f)
		return NAN;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	return pclose(f) ? NAN : strtod(line, NULL);
}

static void cost(const char *program)
{
	double with[2], without[2];

	with[0] = child(program, "STATIC_PLUGIN");
	without[0] = child(program, "none");
	without[1] = child(program, "none");
	with[1] = child(program, "STATIC_PLUGIN");
	printf("1 8 B by graph in 4 processes: with the hooks %.3f %.3f us, without %.3f %.3f us\n", with[0],
	       with[1], without[0], without[1]);
}

int main(int argc, char **argv)
{
	/* The last one may hang: what it asks for is not promised. */
	static void (*const steps[])(struct nccl_rank * k) = {plain, sums,     forced, windows,	   split,
							      slow,  counters, absent, nonblocking};
	bool quick = argc > 1 && !strcmp(argv[1], "latency");
	char program[4096] = "";
	bool small = argc > 1 && !strcmp(argv[1], "small");
	struct error err = {0};
	struct nccl_crew crew;
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed stays, however this ends */
	if (!kernel_fatbin_at(0) || crew_open(&crew, 8, small ? SMALL : BUFFER, &err)) {
		printf("1..0 # SKIP %s\n",
		       err.status ? err.text : "built without kernels: no nvcc at build time");
		return 77;
	}
	cuda_keep_no_cache();
	if (!nccl_hooks_offer() && !quick)
		printf("1 NCCL_PROFILER_PLUGIN is the user's: nothing will be told\n");
	if (quick)
		return crew_run(&crew, latency) ? 0 : 1;
	printf("%u ranks\n", crew.ranks);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		double t0 = seconds();

		if (steps[i] == nonblocking && readlink("/proc/self/exe", program, sizeof(program) - 1) > 0)
			cost(program);
		if (!crew_run(&crew, steps[i])) {
			printf("FAIL step %zu: %s\n", i, crew.why);
			failed++;
		}
		printf("  (%.1f s)\n", seconds() - t0);
	}
	return failed ? 1 : 0;
}
