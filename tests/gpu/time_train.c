/* SPDX-License-Identifier: Apache-2.0 */
/* Times the training kernels at their real shapes, each operand's bytes once over the time, beside the
 * driver's copy. */
#include "cases_train.h"

struct timed {
	struct kit *k;
	struct train_build b;
	gpu_ptr from, to; /* of the driver's copy */
	uint64_t size;
};

static enum status call_kernel(void *arg, struct error *err)
{
	struct timed *t = arg;

	return train_launch(t->k, &t->b, err);
}

static enum status call_copy(void *arg, struct error *err)
{
	struct timed *t = arg;

	return gpu_stream_copy(t->k->stream, t->to, t->from, t->size, err);
}

/* Bytes a second, read and written, of the driver's copy: what a kernel that reads and writes once is held
 * to. */
static enum status copy_rate(struct kit *k, double *rate, struct error *err)
{
	struct timed t = {.k = k, .size = (uint64_t)1 << 30};
	double ns = 0;
	enum status st = gpu_alloc(k->device, &t.from, t.size, err);

	if (!st)
		st = gpu_alloc(k->device, &t.to, t.size, err);
	if (!st)
		st = kit_time(k, call_copy, &t, 10, &ns, err);
	*rate = !st && ns > 0 ? 2 * (double)t.size / ns * 1e9 : 0;
	gpu_free(k->device, &t.from);
	gpu_free(k->device, &t.to);
	return st;
}

static double bytes_of(const struct train_build *b)
{
	double bytes = 0;

	for (int i = 0; i < b->operands; i++) {
		const struct operand *o = &b->operand[i];

		bytes += (o->use == USE_ADDED ? 2.0 : 1.0) * (double)train_bytes(o);
	}
	return b->bytes > 0 ? b->bytes : bytes;
}

static enum status time_case(struct kit *k, const struct kernel_case *c, double rate, struct error *err)
{
	struct timed t = {.k = k};
	double ns = 0, bytes;
	enum status st = train_made(k, c, true, &t.b, err);

	if (!st)
		st = train_ready(k, &t.b, err);
	if (!st)
		st = kit_time(k, call_kernel, &t, 20, &ns, err);
	bytes = bytes_of(&t.b);
	if (!st && ns > 0)
		printf("%-22s %-22s %9.1f us %7.0f GB/s %5.1f %% of the driver's copy %5.1f %% of peak\n",
		       c->entry, c->why, ns / 1e3, bytes / ns, 100 * bytes / ns * 1e9 / rate,
		       100 * bytes / ns * 1e9 / gpu_dram_rate(k->device));
	train_done(k, &t.b);
	return st;
}

/* All real shapes: --small leaves out large references, not times. */
enum status train_time(struct kit *k, struct error *err)
{
	const uint64_t count_max = k->count_max;
	double rate = 0;
	enum status st = copy_rate(k, &rate, err);

	if (!st)
		printf("the driver's copy: %.0f GB/s\n", rate / 1e9);
	k->count_max = UINT64_MAX;
	for (size_t i = 0; i < group_train.count && !st; i++) {
		const struct kernel_case *c = &group_train.cases[i];

		if (c->p1 >> 24 & TRAIN_TIMED && kit_wants(k, c->entry, c))
			st = time_case(k, c, rate, err);
	}
	k->count_max = count_max;
	return st;
}
