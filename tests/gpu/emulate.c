/* SPDX-License-Identifier: Apache-2.0 */
#include "emulate.h"
#undef __shared__
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 64 << 10, WARP = 32 };

struct fiber {
	ucontext_t context;
	void *stack;
	unsigned shuffles; /* that it has done */
	bool done;
};
struct warp {
	float lane[2][WARP]; /* two rounds: a lane may be one ahead of another's reading */
	unsigned arrived, round;
};
struct block {
	struct fiber *fiber;
	struct warp *warp;
	unsigned arrived, round, left;
	uint8_t *shared;
};

struct emulate_index threadIdx, blockIdx, gridDim, blockDim;
float4 shared[EMULATE_SHARED / 16];

static ucontext_t scheduler;
static struct block *blocks;
static uint64_t progress; /* barriers passed, threads ended, words added: without it all wait for ever */
static void (*running)(const void *args);
static const void *running_args;

static void pause_fiber(void)
{
	const unsigned thread = threadIdx.x;

	swapcontext(&blocks[blockIdx.x].fiber[thread].context, &scheduler);
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

float __shfl_xor_sync(unsigned mask, float v, unsigned lane_mask)
{
	struct warp *w = &blocks[blockIdx.x].warp[threadIdx.x / WARP];
	struct fiber *f = &blocks[blockIdx.x].fiber[threadIdx.x];
	float *lane = w->lane[f->shuffles++ % 2];
	const unsigned round = w->round;

	if (mask != 0xffffffffu)
		__trap();
	lane[threadIdx.x % WARP] = v;
	if (++w->arrived == WARP) {
		w->arrived = 0;
		w->round++;
		progress++;
	}
	while (w->round == round)
		pause_fiber();
	return lane[threadIdx.x % WARP ^ lane_mask];
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
	setcontext(&scheduler);
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static void open_fiber(struct fiber *f)
{
	getcontext(&f->context);
	f->stack = must(malloc(STACK));
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK;
	makecontext(&f->context, run_fiber, 0);
}

static void open_block(struct block *b, unsigned threads)
{
	*b = (struct block){.left = threads,
			    .fiber = must(calloc(threads, sizeof(*b->fiber))),
			    .warp = must(calloc((threads + WARP - 1) / WARP, sizeof(*b->warp))),
			    .shared = must(malloc(EMULATE_SHARED))};
	memset(b->shared, 0xff, EMULATE_SHARED); /* NaN: what was not written shows */
	for (unsigned i = 0; i < threads; i++)
		open_fiber(&b->fiber[i]);
}

static void close_block(struct block *b, unsigned threads)
{
	for (unsigned i = 0; i < threads; i++)
		free(b->fiber[i].stack);
	free(b->fiber);
	free(b->warp);
	free(b->shared);
}

/* As long as something in it goes on. */
static void run_block(struct block *b, unsigned threads)
{
	uint64_t before;

	memcpy(shared, b->shared, EMULATE_SHARED);
	do {
		before = progress;
		for (unsigned i = 0; i < threads; i++) {
			threadIdx.x = i;
			if (!b->fiber[i].done)
				swapcontext(&scheduler, &b->fiber[i].context);
		}
	} while (progress != before && b->left);
	memcpy(b->shared, shared, EMULATE_SHARED);
}

void emulate(void (*kernel)(const void *args), const void *args, unsigned count, unsigned threads)
{
	unsigned left = count;

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
