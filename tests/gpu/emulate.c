/* SPDX-License-Identifier: Apache-2.0 */
#undef _FORTIFY_SOURCE /* it takes a jump to another stack for an error */
#include "emulate.h"
#undef __shared__
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 64 << 10, WARP = 32, UNDER_WAY = 0xff /* bytes of a place that a copy is to fill: a NaN */ };

struct copy {
	void *to;
	const void *from;
	size_t bytes, zeros; /* copied, and written as zeros behind them */
	unsigned group;
};
struct fiber {
	ucontext_t context; /* it begins in */
	jmp_buf at;	    /* it waits at: swapcontext asks the kernel for the signal mask each time */
	struct copy *copy; /* not made yet */
	unsigned copies, room, groups; /* groups that are closed */
	void *stack;
	unsigned shuffles; /* that it has done */
	bool begun, done;
};
struct warp {
	uint32_t lane[2][WARP][EMULATE_WORDS]; /* two rounds: a lane may be one ahead of another's reading */
	unsigned arrived, round;
};
struct block {
	struct fiber *fiber;
	struct warp *warp;
	unsigned arrived, round, left;
	uint8_t *shared; /* NULL: it has not run yet */
};

struct emulate_index threadIdx, blockIdx, gridDim, blockDim;
float4 shared[EMULATE_SHARED / 16];

static jmp_buf scheduler;
static struct block *blocks;
static uint64_t progress; /* barriers passed, threads ended, words added: without it all wait for ever */
static unsigned launches;
static void (*running)(const void *args);
static const void *running_args;

static struct fiber *own(void)
{
	return &blocks[blockIdx.x].fiber[threadIdx.x];
}

static void pause_fiber(void)
{
	struct fiber *f = own();
	const unsigned thread = threadIdx.x;

	if (!_setjmp(f->at))
		_longjmp(scheduler, 1);
	threadIdx.x = thread;
}

void __syncthreads(void)
{
	struct block *b = &blocks[blockIdx.x];
	const unsigned round = b->round;

	if (++b->arrived == b->left) {
		b->arrived = 0;
		b->round++;
		progress++;
	}
	while (b->round == round)
		pause_fiber();
}

const uint32_t (*emulate_warp(const uint32_t *words, unsigned count))[EMULATE_WORDS]
{
	struct warp *w = &blocks[blockIdx.x].warp[threadIdx.x / WARP];
	struct fiber *f = &blocks[blockIdx.x].fiber[threadIdx.x];
	uint32_t(*lane)[EMULATE_WORDS] = w->lane[f->shuffles++ % 2];
	const unsigned round = w->round;

	memcpy(lane[threadIdx.x % WARP], words, count * sizeof(*words));
	if (++w->arrived == WARP) {
		w->arrived = 0;
		w->round++;
		progress++;
	}
	while (w->round == round)
		pause_fiber();
	return (const uint32_t(*)[EMULATE_WORDS])lane;
}

uint64_t emulate_shuffle(uint64_t v, unsigned from)
{
	const uint32_t words[2] = {(uint32_t)v, (uint32_t)(v >> 32)};
	const uint32_t *got;

	if (from >= WARP)
		__trap();
	got = emulate_warp(words, 2)[from];
	return got[0] | (uint64_t)got[1] << 32;
}

float __shfl_xor_sync(unsigned mask, float v, unsigned lane_mask)
{
	if (mask != 0xffffffffu)
		__trap();
	return __uint_as_float((uint32_t)emulate_shuffle(__float_as_uint(v), threadIdx.x % WARP ^ lane_mask));
}

void __syncwarp(void)
{
	__shfl_xor_sync(0xffffffffu, 0, 0);
}

uint32_t emulate_poll(const uint32_t *p)
{
	pause_fiber();
	return *(const volatile uint32_t *)p;
}

uint32_t atomicAdd(uint32_t *p, uint32_t v)
{
	progress++;
	*p += v;
	return *p - v;
}

uint32_t atomicCAS(uint32_t *p, uint32_t old, uint32_t now)
{
	const uint32_t had = *p;

	progress++;
	if (had == old)
		*p = now;
	return had;
}

void emulate_add64(uint64_t *p, uint64_t v)
{
	progress++;
	*p += v;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

void emulate_copy(void *to, const void *from, size_t bytes, size_t zeros)
{
	struct fiber *f = own();

	if (f->copies == f->room) {
		f->room = 2 * f->room + 16;
		f->copy = must(realloc(f->copy, f->room * sizeof(*f->copy)));
	}
	f->copy[f->copies++] = (struct copy){to, from, bytes, zeros, f->groups};
	memset(to, UNDER_WAY, bytes + zeros);
}

/* On a device it may have been made at any time since it was asked for: its place is nobody else's. */
static void make_copy(const struct copy *c)
{
	for (size_t i = 0; i < c->bytes + c->zeros; i++)
		if (((const uint8_t *)c->to)[i] != UNDER_WAY) {
			fprintf(stderr, "emulated kernel: thread %u of block %u: the place of a copy under way was written to\n",
				threadIdx.x, blockIdx.x);
			abort();
		}
	if (c->bytes)
		memcpy(c->to, c->from, c->bytes);
	memset((uint8_t *)c->to + c->bytes, 0, c->zeros);
}

void emulate_commit(void)
{
	own()->groups++;
}

void emulate_wait(unsigned later)
{
	struct fiber *f = own();
	unsigned done = 0;

	while (done < f->copies && f->copy[done].group + later < f->groups)
		make_copy(&f->copy[done++]);
	memmove(f->copy, f->copy + done, (f->copies - done) * sizeof(*f->copy));
	f->copies -= done;
}

void __trap(void)
{
	fprintf(stderr, "emulated kernel: trap in thread %u of block %u\n", threadIdx.x, blockIdx.x);
	abort();
}

static void run_fiber(void)
{
	struct block *b = &blocks[blockIdx.x];

	running(running_args);
	b->fiber[threadIdx.x].done = true;
	progress++;
	b->left--; /* as on a device, who has ended is not waited for */
	if (b->left && b->arrived == b->left) {
		b->arrived = 0;
		b->round++;
	}
	_longjmp(scheduler, 1);
}

/* Until it waits or has ended. */
static void go_on(struct fiber *f)
{
	if (_setjmp(scheduler))
		return;
	if (f->begun)
		_longjmp(f->at, 1);
	f->begun = true;
	setcontext(&f->context);
}

/* Stacks that no fiber has: a launch takes those of the one before. Meson lets malloc and free fill every block, which for
 * 64 KiB of each thread of each launch takes far longer than the kernels do. */
static struct spare_stack {
	struct spare_stack *next;
} *spare_stacks;

static void *take_stack(void)
{
	struct spare_stack *s = spare_stacks;

	if (!s)
		return must(malloc(STACK));
	spare_stacks = s->next;
	return s;
}

static void keep_stack(void *stack)
{
	struct spare_stack *s = stack;

	s->next = spare_stacks;
	spare_stacks = s;
}

static void open_fiber(struct fiber *f)
{
	getcontext(&f->context);
	f->stack = take_stack();
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK;
	makecontext(&f->context, run_fiber, 0);
}

static void open_block(struct block *b, unsigned threads)
{
	*b = (struct block){.left = threads,
			    .fiber = must(calloc(threads, sizeof(*b->fiber))),
			    .warp = must(calloc((threads + WARP - 1) / WARP, sizeof(*b->warp)))};
	for (unsigned i = 0; i < threads; i++)
		open_fiber(&b->fiber[i]);
}

static void close_block(struct block *b, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++) {
		if (b->fiber[i].copies) {
			fprintf(stderr, "emulated kernel: thread %u ends with copies under way\n", i);
			abort();
		}
		free(b->fiber[i].copy);
		keep_stack(b->fiber[i].stack);
	}
	free(b->fiber);
	free(b->warp);
	free(b->shared);
}

/* Shared memory of a block that has not run yet: NaN in each third launch. In the others it is as another block left it, as on
 * a device. So a kernel that reads what it never wrote gets NaN, or numbers that look like results. */
static void take_shared(void)
{
	if (launches % 3 == 0)
		memset(shared, 0xff, EMULATE_SHARED);
}

/* As long as something in it goes on; forwards, then backwards, so that what relies on an order shows. */
static void run_block(struct block *b, unsigned threads)
{
	static unsigned pass;
	uint64_t before;

	if (b->shared) {
		memcpy(shared, b->shared, EMULATE_SHARED);
	} else {
		b->shared = must(malloc(EMULATE_SHARED));
		take_shared();
	}
	do {
		before = progress;
		for (unsigned i = 0; i < threads; i++) {
			const unsigned thread = pass % 2 ? threads - 1 - i : i;

			threadIdx.x = thread;
			if (!b->fiber[thread].done)
				go_on(&b->fiber[thread]);
		}
		pass++;
	} while (progress != before && b->left);
	memcpy(b->shared, shared, EMULATE_SHARED);
}

void emulate(void (*kernel)(const void *args), const void *args, unsigned count, unsigned threads)
{
	unsigned left = count;

	launches++;
	running = kernel;
	running_args = args;
	gridDim.x = count;
	blockDim.x = threads;
	blocks = must(calloc(count, sizeof(*blocks)));
	for (unsigned i = 0; i < count; i++)
		open_block(&blocks[i], threads);
	while (left) {
		const uint64_t before = progress;

		left = 0;
		for (unsigned i = 0; i < count; i++) {
			blockIdx.x = i;
			if (blocks[i].left)
				run_block(&blocks[i], threads);
			left += blocks[i].left;
		}
		if (left && progress == before) {
			fprintf(stderr, "emulated kernel: all %u threads wait\n", left);
			abort();
		}
	}
	for (unsigned i = 0; i < count; i++)
		close_block(&blocks[i], threads);
	free(blocks);
	blocks = NULL;
}
