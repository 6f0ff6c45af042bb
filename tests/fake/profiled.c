/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that behaves to the injected library as one of CUDA does: what its "driver" does is planted into
 * the fake CUPTI. Words, in order:
 *
 * - init: as cuInit, loads CUDA_INJECTION64_PATH, and makes the context; leave: ends the context
 * - steps N: a range, two kernels with their launches, a copy, a set, a graph of two nodes, a call that
 * nobody waits for, a synchronisation
 * - kernels N: kernels alone
 * - threads N: so many launch 500 kernels each, at once
 * - nccl: a communicator and an all-reduce of NCCL's, half of it under a kernel
 * - sleep MS, exit N, _exit N, kill, segv
 * - fork (the child does the rest too), exec (starts itself with the rest)
 * - close (all descriptors above 2), trap (ends with 7 after TERM)
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wundef"
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#pragma GCC diagnostic pop
#else
#define nvtxRangePushA(text) (void)(text)
#define nvtxRangePop() (void)0
#define NO_NVTX 1
#endif
#include "cupti_fake.h"
#include "cupti_launch.h"

static uint32_t correlation;
static const char kernel_a[] = "_Z5gemm_ILi128EEvPKfPf", kernel_b[] = "softmax_kernel",
		  kernel_c[] = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";

static uint64_t now(void)
{
	uint64_t ns;

	cuptiGetTimestamp(&ns);
	return ns;
}

static void plant_device(void)
{
	struct cupti_device d = {.kind = CUPTI_KIND_DEVICE,
				 .bandwidth_kbytes = 3352320000,
				 .memory_bytes = 80ull << 30,
				 .sms = 132,
				 .warp = 32,
				 .clock_khz = 1980000,
				 .warps_per_sm = 64,
				 .blocks_per_sm = 32,
				 .registers_per_sm = 65536,
				 .shared_per_sm = 233472,
				 .threads_per_block = 1024,
				 .major = 9,
				 .name = "Fake H100"};
	struct cupti_context c = {.kind = CUPTI_KIND_CONTEXT, .id = 1};

	fake_cupti_plant(&d, sizeof(d));
	fake_cupti_plant(&c, sizeof(c));
}

static void init(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	void *found = library ? dlsym(library, "InitializeInjection") : NULL;
	int (*begin)(void);

	if (!path)
		return;
	if (!found) {
		fprintf(stderr, "profiled: %s\n", dlerror());
		exit(99);
	}
	memcpy(&begin, &found, sizeof(begin));
	setenv("FAKE_CUDA_BEGINS", "1", 1);
	begin();
	unsetenv("FAKE_CUDA_BEGINS");
	fake_cupti_context(true);
	plant_device();
}

static void call(uint32_t cbid, uint64_t start, uint64_t ns)
{
	struct cupti_api a = {.kind = CUPTI_KIND_RUNTIME,
			      .cbid = cbid,
			      .start = start,
			      .end = start + ns,
			      .process = (uint32_t)getpid(),
			      .thread = fake_cupti_thread(),
			      .correlation = correlation};

	fake_cupti_plant(&a, sizeof(a));
}

static void sleep_ms(unsigned long ms)
{
	const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&time, NULL);
}

static void kernel_on(uint32_t stream, const char *name, uint64_t start, uint64_t ns, uint32_t graph)
{
	struct cupti_kernel k = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
				 .registers = 128,
				 .start = start,
				 .end = start + ns,
				 .context = 1,
				 .stream = stream,
				 .grid = {264, 1, 1},
				 .block = {256, 1, 1},
				 .shared_dynamic = 32768,
				 .correlation = correlation,
				 .name = name,
				 .graph = graph,
				 .graph_node = graph ? 4000000000u + graph : 0,
				 .cluster = {2, 1, 1}};

	fake_cupti_plant(&k, sizeof(k));
	if (!graph)
		fake_cupti_launch(name, correlation, (double)ns);
}

static void kernel(const char *name, uint64_t start, uint64_t ns, uint32_t graph)
{
	kernel_on(7, name, start, ns, graph);
}

static void copy(uint64_t start)
{
	struct cupti_memcpy c = {.kind = CUPTI_KIND_MEMCPY,
				 .copy_kind = 1,
				 .from = 2,
				 .to = 3,
				 .flags = 1,
				 .bytes = 1 << 20,
				 .start = start,
				 .end = start + 20000,
				 .context = 1,
				 .stream = 13,
				 .correlation = correlation};
	struct cupti_memcpy_peer p = {.kind = CUPTI_KIND_MEMCPY2,
				      .copy_kind = 10,
				      .from = 3,
				      .to = 3,
				      .bytes = 1 << 22,
				      .start = start + 30000,
				      .end = start + 40000,
				      .context = 1,
				      .stream = 13,
				      .to_device = 1,
				      .correlation = correlation};
	struct cupti_memset s = {.kind = CUPTI_KIND_MEMSET,
				 .bytes = 4096,
				 .start = start + 50000,
				 .end = start + 51000,
				 .context = 1,
				 .stream = 7,
				 .correlation = correlation};

	fake_cupti_plant(&c, sizeof(c));
	fake_cupti_plant(&p, sizeof(p));
	fake_cupti_plant(&s, sizeof(s));
}

static void wait_for_all(uint64_t start)
{
	struct cupti_sync s = {.kind = CUPTI_KIND_SYNCHRONIZATION,
			       .type = 4,
			       .start = start,
			       .end = start + 5000,
			       .correlation = correlation,
			       .context = 1,
			       .stream = UINT32_MAX};
	struct cupti_overhead o = {.kind = CUPTI_KIND_OVERHEAD,
				   .overhead = 1 << 16,
				   .start = start,
				   .end = start + 700,
				   .thread = fake_cupti_thread()};

	fake_cupti_plant(&s, sizeof(s));
	fake_cupti_plant(&o, sizeof(o));
}

/* Told where graphs are traced as a whole. */
static void graph(uint64_t start)
{
	struct cupti_graph_trace g = {.kind = CUPTI_KIND_GRAPH_TRACE,
				      .correlation = correlation,
				      .start = start,
				      .end = start + 55000,
				      .graph = 9,
				      .context = 1,
				      .stream = 7};

	fake_cupti_plant(&g, sizeof(g));
}

/* One behind the other, as on a device. */
static void step(void)
{
	static uint64_t free_at;
	uint64_t t = now();

	if (t < free_at)
		t = free_at;
	free_at = t + 300000;
	nvtxRangePushA("step");
	correlation++;
	call(FAKE_CUPTI_LAUNCH, t, 3000);
	kernel(kernel_a, t + 5000, 100000, 0);
	correlation++;
	call(FAKE_CUPTI_LAUNCH, t + 4000, 3000);
	kernel(kernel_b, t + 110000, 10000, 0);
	correlation++;
	call(FAKE_CUPTI_COPY, t + 8000, 2000);
	copy(t + 130000);
	correlation++;
	call(FAKE_CUPTI_GET, t + 11000, 100);
	correlation++;
	call(FAKE_CUPTI_GRAPH, t + 12000, 4000);
	fake_cupti_graph();
	kernel(kernel_a, t + 200000, 50000, 9);
	kernel(kernel_b, t + 250000, 5000, 9);
	graph(t + 200000);
	correlation++;
	call(FAKE_CUPTI_SYNC, t + 20000, 240000);
	wait_for_all(t + 20000);
	nvtxRangePop();
}

static void kernels(unsigned long count)
{
	uint64_t t = now();

	for (unsigned long i = 0; i < count; i++) {
		correlation++;
		kernel(i % 3 ? kernel_a : kernel_b, t + i * 1000, 900, 0);
	}
}

/* NCCL's, and half a softmax beside it. */
static void reduce_kernels(void)
{
	uint64_t t = now();

	sleep_ms(1); /* a call takes its time, so that it lies in its range by any clock */
	correlation++;
	call(FAKE_CUPTI_LAUNCH, t + 400000, 3000);
	kernel_on(20, kernel_c, t + 450000, 100000, 0);
	correlation++;
	call(FAKE_CUPTI_LAUNCH, t + 410000, 3000);
	kernel_on(7, kernel_b, t + 500000, 80000, 0);
}

#ifndef NO_NVTX
#define SCHEMA_HAS                                                                                           \
	(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |                      \
	 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |           \
	 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID)
enum { COMM = 77, RANKS = 2 };

/* NCCL's own ids of its schemas. */
static uint64_t schema_of(nvtxDomainHandle_t domain, unsigned number, const nvtxPayloadSchemaEntry_t *entries,
			  size_t count, size_t bytes)
{
	const nvtxPayloadSchemaAttr_t schema = {.fieldMask = SCHEMA_HAS,
						.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
						.entries = entries,
						.numEntries = count,
						.payloadStaticSize = bytes,
						.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + number};

	return nvtxPayloadSchemaRegister(domain, &schema);
}

static nvtxEventAttributes_t range_of(nvtxDomainHandle_t domain, const char *name)
{
	return (nvtxEventAttributes_t){.version = NVTX_VERSION,
				       .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				       .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
				       .message.registered = nvtxDomainRegisterStringA(domain, name)};
}

/* As ncclCommInitRank tells: with the end of its range. */
static void make_comm(nvtxDomainHandle_t domain)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "No. of ranks", .offset = 8},
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "Rank", .offset = 12}};
	struct {
		uint64_t comm;
		int ranks, rank;
	} value = {COMM, RANKS, getenv("RANK") && *getenv("RANK") == '1'};
	nvtxEventAttributes_t a = range_of(domain, "ncclCommInitRank");
	nvtxPayloadData_t data = {schema_of(domain, 0, entries, 3, sizeof(value)), sizeof(value), &value};

	nvtxDomainRangePushEx(domain, &a);
	nvtxRangePopPayload(domain, &data, 1);
}

static void all_reduce(nvtxDomainHandle_t domain, size_t bytes)
{
	static const nvtxPayloadSchemaEntry_t entries[] = {
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = "NCCL communicator ID"},
		{.type = NVTX_PAYLOAD_ENTRY_TYPE_SIZE, .name = "Message size [bytes]", .offset = 8}};
	struct {
		uint64_t comm;
		size_t bytes;
	} value = {COMM, bytes};
	nvtxPayloadData_t data = {schema_of(domain, 5, entries, 2, sizeof(value)), sizeof(value), &value};
	nvtxEventAttributes_t a = range_of(domain, "ncclAllReduce");

	a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	a.reserved0 = 1;
	a.payload.ullValue = (uint64_t)(uintptr_t)&data;
	nvtxDomainRangePushEx(domain, &a);
	reduce_kernels();
	nvtxDomainRangePop(domain);
}
#endif

static void nccl(void)
{
#ifndef NO_NVTX
	nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");

	make_comm(domain);
	all_reduce(domain, 1 << 25);
#else
	reduce_kernels();
#endif
}

static void *launch_many(void *arg)
{
	static uint32_t launched = 1u << 20;

	for (unsigned i = 0; i < 500; i++)
		fake_cupti_launch(i % 2 ? kernel_a : kernel_b,
				  __atomic_fetch_add(&launched, 1, __ATOMIC_RELAXED), 1000);
	return arg;
}

static void threads(unsigned long count)
{
	pthread_t thread[16];
	unsigned long n = 0;

	for (; n < count && n < 16; n++)
		if (pthread_create(&thread[n], NULL, launch_many, NULL))
			exit(97);
	while (n)
		pthread_join(thread[--n], NULL);
}

static volatile sig_atomic_t trapped;

static void on_term(int number)
{
	trapped = number;
}

static void wait_for_term(void)
{
	const struct timespec turn = {.tv_nsec = 10000000};

	signal(SIGTERM, on_term);
	printf("trapping\n");
	fflush(stdout);
	while (!trapped)
		nanosleep(&turn, NULL);
	exit(7);
}

static void fork_here(void)
{
	pid_t child = fork();
	int how;

	if (child > 0)
		waitpid(child, &how, 0);
}

/* Words that take no number; false: it is none. */
static int plain_word(const char *word, char **argv, int at)
{
	if (!strcmp(word, "init"))
		init();
	else if (!strcmp(word, "nccl"))
		nccl();
	else if (!strcmp(word, "leave"))
		fake_cupti_context(false);
	else if (!strcmp(word, "fork"))
		fork_here();
	else if (!strcmp(word, "close"))
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
	else if (!strcmp(word, "kill"))
		raise(SIGKILL);
	else if (!strcmp(word, "segv"))
		raise(SIGSEGV);
	else if (!strcmp(word, "trap"))
		wait_for_term();
	else if (!strcmp(word, "exec")) {
		argv[at] = argv[0];
		execv("/proc/self/exe", argv + at);
	} else
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		unsigned long n;

		if (plain_word(argv[i], argv, i))
			continue;
		n = i + 1 < argc ? strtoul(argv[i + 1], NULL, 10) : 0;
		if (!strcmp(argv[i], "steps"))
			for (unsigned long k = 0; k < n; k++)
				step();
		else if (!strcmp(argv[i], "kernels"))
			kernels(n);
		else if (!strcmp(argv[i], "threads"))
			threads(n);
		else if (!strcmp(argv[i], "sleep"))
			sleep_ms(n);
		else if (!strcmp(argv[i], "exit"))
			exit((int)n);
		else if (!strcmp(argv[i], "_exit"))
			_exit((int)n);
		else
			return 98;
		i++;
	}
	return 0;
}
