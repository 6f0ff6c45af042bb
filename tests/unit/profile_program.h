/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a test's choosing as a profile sees them: a host that calls, a device that works off its queue,
 * ranks that meet in collectives. Times in ns. All ranks share a clock.
 */
#ifndef TESTS_PROFILE_PROGRAM_H
#define TESTS_PROFILE_PROGRAM_H
#include "profile/findings/findings.h"
#include "profile/findings/savings.h"
#include "profile_bed.h"

#define US 1000ull
#define MS 1000000ull
enum { PROGRAM_RANKS = 4, PROGRAM_CALL_NS = 5000, PROGRAM_LATENCY_NS = 3000 };

struct program {
	struct writer w;
	uint64_t host_ns, gpu_ns; /* what each has come to */
	uint32_t correlation;
};

/* A rank of a communicator where there are several. */
static inline void program_begin(struct program *p, const char *dir, unsigned rank, unsigned ranks)
{
	*p = (struct program){.host_ns = 10 * MS, .correlation = 1};
	bed_open(&p->w, dir);
	p->w.header->rank = ranks > 1 ? (int32_t)rank : -1;
	if (ranks > 1)
		bed_comm(&p->w, 9, ranks, rank);
}

static inline void program_call(struct program *p, const char *name, uint64_t ns, uint32_t correlation)
{
	struct ring_api a = {
		.head = {.type = RING_API, .size = sizeof(a), .name = writer_string(&p->w, name)},
		.start = p->host_ns + CUPTI_AHEAD,
		.end = p->host_ns + ns + CUPTI_AHEAD,
		.thread = 1,
		.correlation = correlation,
		.domain = 2};

	writer_add(&p->w, &a);
	p->host_ns += ns;
}

/* Work that the host queued just now begins once what is before it has ended. */
static inline uint64_t program_queue(struct program *p, uint64_t ns)
{
	uint64_t start_ns = p->host_ns + PROGRAM_LATENCY_NS;

	start_ns = start_ns > p->gpu_ns + US ? start_ns : p->gpu_ns + US;
	p->gpu_ns = start_ns + ns;
	return start_ns;
}

static inline void program_kernel(struct program *p, const char *name, uint64_t ns)
{
	uint32_t correlation = ++p->correlation;

	program_call(p, "cudaLaunchKernel", PROGRAM_CALL_NS, correlation);
	add_kernel(&p->w, name, program_queue(p, ns), ns, correlation);
}

/* A node of a graph's launch, whose call was made before. */
static inline void program_node(struct program *p, const char *name, uint64_t ns, uint32_t correlation)
{
	struct ring_kernel k = {
		.head = {.type = RING_KERNEL, .size = sizeof(k), .name = writer_string(&p->w, name)},
		.start = program_queue(p, ns) + CUPTI_AHEAD,
		.stream = 7,
		.context = 1,
		.graph = 5,
		.correlation = correlation,
		.grid = {132, 1, 1},
		.block = {256, 1, 1}};

	k.end = k.start + ns;
	writer_add(&p->w, &k);
}

static inline void program_wait(struct program *p)
{
	uint64_t until_ns = p->gpu_ns > p->host_ns ? p->gpu_ns : p->host_ns;

	program_call(p, "cudaDeviceSynchronize", until_ns - p->host_ns + 2 * US, 0);
}

static inline void program_sleep(struct program *p, uint64_t ns)
{
	p->host_ns += ns;
}

/* From pageable memory the host waits until it is through. */
static inline void program_copy(struct program *p, uint64_t bytes, uint64_t ns, bool pageable)
{
	uint32_t correlation = ++p->correlation;
	struct ring_copy c = {.head = {.type = RING_COPY, .size = sizeof(c)},
			      .bytes = bytes,
			      .context = 1,
			      .stream = 9,
			      .correlation = correlation,
			      .kind = 1,
			      .from = pageable ? 1 : 2,
			      .to = 3};

	if (!pageable)
		program_call(p, "cudaMemcpyAsync", PROGRAM_CALL_NS, correlation);
	c.start = program_queue(p, ns) + CUPTI_AHEAD;
	c.end = c.start + ns;
	if (pageable)
		program_call(p, "cudaMemcpy", p->gpu_ns - p->host_ns, correlation);
	writer_add(&p->w, &c);
}

/* The host is in it for `ns`, beside what the device still works off. */
static inline void program_allocate(struct program *p, uint64_t ns)
{
	program_call(p, "cudaMalloc", ns, ++p->correlation);
}

static inline void program_free(struct program *p, uint64_t ns)
{
	uint64_t until_ns = p->gpu_ns > p->host_ns ? p->gpu_ns : p->host_ns;

	program_call(p, "cudaFree", until_ns - p->host_ns + ns, ++p->correlation);
}

static inline void program_range(struct program *p, const char *name)
{
	add_range(&p->w, name ? RING_PUSH : RING_POP, name, p->host_ns, 1, 0);
}

/* All of them come together: who comes first waits in its kernel. */
static inline void program_all_reduce(struct program *ranks, unsigned count, uint64_t bytes, uint64_t ns)
{
	uint64_t start_ns[PROGRAM_RANKS], last_ns = 0;

	for (unsigned r = 0; r < count; r++) {
		start_ns[r] = ranks[r].host_ns + PROGRAM_CALL_NS + PROGRAM_LATENCY_NS;
		start_ns[r] = start_ns[r] > ranks[r].gpu_ns + US ? start_ns[r] : ranks[r].gpu_ns + US;
		last_ns = start_ns[r] > last_ns ? start_ns[r] : last_ns;
	}
	for (unsigned r = 0; r < count; r++) {
		struct program *p = &ranks[r];
		uint32_t correlation = ++p->correlation;

		bed_call(&p->w, "ncclAllReduce", p->host_ns, 9, bytes, 0);
		p->host_ns += US;
		program_call(p, "cudaLaunchKernelExC", 1000, correlation); /* within NCCL's range */
		add_kernel(&p->w,
			   "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
			   start_ns[r], last_ns + ns - start_ns[r], correlation);
		p->gpu_ns = last_ns + ns;
		p->host_ns += 3 * US;
	}
}

static inline void program_end(struct program *p)
{
	bed_close(&p->w);
}
#endif
