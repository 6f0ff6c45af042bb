/* SPDX-License-Identifier: Apache-2.0 */
/* Times the small kernels of a step at the shape of Qwen2-7B, for batches of decode. */
#include "cases_step.h"
#include "kernel/step/rows.h"

enum { CHAIN = 64 };

struct chain {
	struct kit *k;
	struct gpu_graph *graph;
};

static enum status call_graph(void *arg, struct error *err)
{
	struct chain *c = arg;

	return gpu_graph_launch(c->graph, c->k->stream, err);
}

enum status step_time_chain(struct kit *k, enum status (*launch)(void *arg, struct error *err), void *arg,
			    double *ns, struct error *err)
{
	struct chain c = {.k = k};
	enum status st = launch(arg, err), ended; /* it may opt in to shared memory */

	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = gpu_capture_begin(k->stream, err);
	if (st)
		return st;
	for (int i = 0; i < CHAIN && !st; i++)
		st = launch(arg, err);
	ended = gpu_capture_end(k->stream, &c.graph, st ? NULL : err);
	st = st ? st : ended;
	if (!st)
		st = kit_time(k, call_graph, &c, 5, ns, err);
	*ns /= CHAIN;
	gpu_graph_destroy(&c.graph);
	return st;
}

struct timed {
	struct kit *k;
	struct train_build b;
	struct gpu_kernel *kernel;
	bool early;
};

static enum status call_kernel(void *arg, struct error *err)
{
	struct timed *t = arg;
	const unsigned block[3] = {t->b.threads, 1, 1};

	return t->early ? gpu_launch_early(t->kernel, t->k->stream, t->b.grid, block, t->b.shared_bytes,
					   t->b.args, err)
			: gpu_launch(t->kernel, t->k->stream, t->b.grid, block, t->b.shared_bytes, t->b.args,
				     err);
}

static enum status time_case(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct timed t = {.k = k};
	double ns[2] = {0};
	enum status st = train_made(k, c, true, &t.b, err);

	if (!st)
		st = train_ready(k, &t.b, err);
	if (!st)
		st = gpu_kernel(k->device, &t.kernel, t.b.file, c->entry, err);
	for (int i = 0; i < 2 && !st; i++) {
		t.early = i;
		st = step_time_chain(k, call_kernel, &t, &ns[i], err);
	}
	if (!st)
		printf("%-16s %-12s batch %4u: %6.2f us, begun early %6.2f us\n", c->entry, c->why, c->p0,
		       ns[0] / 1e3, ns[1] / 1e3);
	train_done(k, &t.b);
	return st;
}

/* The training kernels stand beside those that replace them for few rows. */
enum status step_time(struct kit *k, struct error *err)
{
	static const struct {
		const char *entry, *why;
		unsigned cols, flags;
	} shapes[] = {
		{"step_embed", "7B", 3584, 0},
		{"step_rmsnorm", "7B", 3584, 0},
		{"train_rmsnorm", "7B", 3584, 0},
		{"step_rope", "7B", 28 + 256 * 4 + 65536 * 8, 0},
		{"step_rope", "7B, E4M3", 28 + 256 * 4 + 65536 * 8, TRAIN_B},
		{"step_swiglu", "7B", 18944, 0},
		{"train_swiglu", "7B", 18944, 0},
		{"step_swiglu_e4m3", "7B", 18944, 0},
		{"step_swiglu_e4m3_wide", "7B", 18944, 0},
		{"step_quantize", "7B, hidden", 3584, 0},
		{"step_quantize", "7B, inner", 18944, 0},
	};
	static const unsigned batches[] = {1, 32, 64, 128, 256};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t j = 0; j < sizeof(batches) / sizeof(batches[0]) && !st; j++) {
			const struct kernel_case c = TRAIN_CASE(shapes[i].entry, shapes[i].why, batches[j],
								shapes[i].cols, shapes[i].flags);

			if (!k->filter || strstr(c.entry, k->filter))
				st = time_case(k, &c, err);
		}
	return st;
}
