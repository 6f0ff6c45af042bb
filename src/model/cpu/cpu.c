/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "core/process/cpu_wait.h"
#include "model/cpu/real.h"

/* Below this size, waking a second thread takes longer than its half of the work; likewise a thread that
 * spins. */
enum { ALONE_BYTES = 64 << 10, ALONE_BYTES_BEGUN = 8 << 10 };
enum { HUGE_PAGE = 2 << 20 };
enum { PARTS_PER_THREAD = 2 }; /* of a pool that is begun, in which each free thread takes the next part */

static bool is_alone(const struct cpu_pool *pool, double bytes)
{
	return bytes < (cpu_pool_is_begun(pool) ? ALONE_BYTES_BEGUN : ALONE_BYTES);
}

struct parts {
	void (*work)(void *arg, int64_t first, int64_t last, unsigned thread);
	void *arg;
	uint64_t count, grain;
	unsigned parts;
};

static void do_part(const struct parts *p, unsigned part, unsigned thread)
{
	uint64_t first, last;

	cpu_share(p->count, p->grain, part, p->parts, &first, &last);
	if (first < last)
		p->work(p->arg, (int64_t)first, (int64_t)last, thread);
}

static void own_part(void *arg, unsigned thread)
{
	do_part(arg, thread, thread);
}

static void next_part(void *arg, int64_t part, unsigned thread)
{
	do_part(arg, (unsigned)part, thread);
}

void cpu_parts(const struct backend *back, int64_t count, int64_t grain, double bytes,
	       void (*work)(void *arg, int64_t first, int64_t last, unsigned thread), void *arg)
{
	struct cpu_pool *pool = cpu_of(back)->pool;
	struct parts p = {.work = work, .arg = arg, .count = (uint64_t)count, .grain = (uint64_t)grain};

	p.parts = cpu_pool_count(pool);
	if (count <= 0)
		return;
	if (is_alone(pool, bytes)) {
		work(arg, 0, count, 0);
	} else if (cpu_pool_is_begun(pool)) {
		p.parts *= PARTS_PER_THREAD;
		cpu_pool_share(pool, p.parts, next_part, &p);
	} else {
		cpu_pool_run(pool, own_part, &p);
	}
}

void cpu_items(const struct backend *back, int64_t count, double bytes,
	       void (*work)(void *arg, int64_t item, unsigned thread), void *arg)
{
	if (!is_alone(cpu_of(back)->pool, bytes)) {
		cpu_pool_share(cpu_of(back)->pool, count, work, arg);
		return;
	}
	for (int64_t item = 0; item < count; item++)
		work(arg, item, 0);
}

/* OpenBLAS uses one thread, because assay divides the work itself. A missing or incomplete library is not an
 * error. */
static void open_blas(struct cpu *cpu)
{
	struct error ignored = {0};

	if (blas_open_alone(&cpu->blas, &cpu->blas_fact, &ignored)) {
		cpu->blas = (struct blas){0};
		return;
	}
	snprintf(cpu->gemm, sizeof(cpu->gemm), "%.100s",
		 cpu->blas.get_config ? cpu->blas.get_config() : "OpenBLAS");
}

unsigned cpu_backend_threads(void)
{
	enum { MOST = 32 };
	cpu_set_t mine;
	int count = sched_getaffinity(0, sizeof(mine), &mine) ? 1 : CPU_COUNT(&mine);

	return count > MOST ? MOST : (unsigned)count;
}

enum status cpu_backend_create(struct backend *back, const struct cpu_options *options, struct arena *arena,
			       struct error *err)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));
	enum status st;

	if (!cpu)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for a CPU back end");
	snprintf(cpu->gemm, sizeof(cpu->gemm), "own");
	if (!options->own_gemm) /* sets an environment variable, so it must run before other threads start */
		open_blas(cpu);
	st = options->threads ? cpu_pool_create(&cpu->pool, NULL, options->threads, err)
			      : cpu_pool_usable(&cpu->pool, err);
	cpu->wait_ns = st ? NULL : calloc(2 * (size_t)cpu_pool_count(cpu->pool), sizeof(*cpu->wait_ns));
	if (!st && !cpu->wait_ns)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for a CPU back end");
	if (st) {
		cpu_pool_destroy(&cpu->pool);
		lib_fact_release(&cpu->blas_fact);
		free(cpu);
		return st;
	}
	*back = (struct backend){
		.ops = &cpu_ops,
		.device = cpu,
		.arena = arena,
		.dtype = DTYPE_F32,
		.stat = DTYPE_F32,
		.threads = (int)cpu_pool_count(cpu->pool),
		.invariant = options->invariant,
	};
	return STATUS_OK;
}

void cpu_backend_release(struct backend *back)
{
	struct cpu *cpu = back->device;

	if (!cpu)
		return;
	cpu_pool_destroy(&cpu->pool);
	free(cpu->wait_ns);
	lib_fact_release(&cpu->blas_fact);
	for (int i = 0; i < FETCHES; i++)
		free(cpu->fetch[i].data);
	free(cpu);
	back->device = NULL;
}

void cpu_backend_wait_begin(struct backend *back)
{
	cpu_pool_waits(cpu_of(back)->pool, cpu_of(back)->wait_ns);
}

double cpu_backend_wait_s(struct backend *back)
{
	const struct cpu *cpu = cpu_of(back);
	const unsigned threads = cpu_pool_count(cpu->pool);

	cpu_pool_waits(cpu->pool, cpu->wait_ns + threads);
	return 1e-9 * (double)cpu_wait_longest_ns(cpu->wait_ns, cpu->wait_ns + threads, threads);
}

void *cpu_memory(size_t size)
{
	const size_t align = size >= HUGE_PAGE ? HUGE_PAGE : ARENA_ALIGN;
	void *memory;

	if (posix_memalign(&memory, align, size))
		return NULL;
	if (align == HUGE_PAGE)
		madvise(memory, size, MADV_HUGEPAGE); /* a kernel without them answers with an error */
	return memory;
}

enum status cpu_backend_check_room(const struct backend *back, struct error *err)
{
	const struct cpu *cpu = cpu_of(back);

	return cpu->blas.set_num_threads ? blas_check_buffers(cpu_pool_count(cpu->pool), err) : STATUS_OK;
}

const char *cpu_backend_gemm(const struct backend *back)
{
	return cpu_of(back)->gemm;
}
