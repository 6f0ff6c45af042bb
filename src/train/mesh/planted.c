/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/planted.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/text/text.h"
#include "kernel/timing/spin.h"
#include "model/gpu/backend.h"

enum { FIRST_STEP = 3, LATE_SHARE = 300, NETWORK_SHARE = 100 };
static const uint64_t HOUR_NS = 3600000000000u;

/* clang-format off */
#define KINDS(X) X(SIZE, "size") X(TYPE, "type") X(ORDER, "order") X(NOT_FINITE, "nan") X(HANG, "hang") X(LOST, "lost") X(LATE, "late") X(NETWORK, "network") X(WEIGHTS, "weights") X(LAYER, "layer") X(KERNEL, "kernel") X(ALONE, "alone")
/* clang-format on */
#define X(name, word) KIND_##name,
enum kind { KINDS(X) KIND_COUNT };
#undef X

enum { MOST = 3 };
static struct planted { /* one per process: communication of all, of the data axis, of the tensor axis */
	struct comm_ops ops[MOST];
	const struct comm_ops *inner[MOST];
	struct comm *all;
	struct backend *back;
	bool mine; /* this is the rank of the fault */
	enum kind kind;
	unsigned long rank, step;
	char more[PATH_MAX];
	double began_s, slept_s; /* begin of this step, and time slept in it */
	double all_s;		 /* time of all steps before, without sleeping */
	uint64_t steps;
	bool due; /* in this step, for the first sum or gather */
	bool on;  /* from this step on */
} planted;

/* The operations of `c` without a fault. */
static const struct comm_ops *inner_of(const struct comm *c)
{
	return planted.inner[c->ops - planted.ops];
}

/* Sleeps for a share of the mean step, without what was slept in it. So the fault is as large beside the
 * step, however fast the machine is. `preset`: in percent. */
static double sleep_share(double preset)
{
	const double share = 0.01 * (*planted.more ? strtod(planted.more, NULL) : preset),
		     now_s = clock_now_s();
	const double sleep_s = planted.steps ? share * planted.all_s / (double)planted.steps : 0;

	clock_sleep_ns(clock_monotonic(), (uint64_t)(sleep_s * 1e9));
	planted.slept_s += clock_now_s() - now_s;
	return clock_now_s() - now_s;
}

static void begin_step(void)
{
	const double now_s = clock_now_s();

	if (planted.began_s > 0) {
		planted.all_s += now_s - planted.began_s - planted.slept_s;
		planted.steps++;
	}
	planted.slept_s = 0;
	planted.began_s = now_s;
}

/* Tells a test when the fault began, in nanoseconds of the wall clock. */
static void note_time(void)
{
	const char *path = getenv("ASSAY_TEST_PLANT_AT");
	FILE *f = path ? fopen(path, "w") : NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (f) {
		fprintf(f, "%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
		fclose(f);
	}
}

static void hang(void)
{
	const int fd = open(planted.more, O_RDWR | O_CLOEXEC);
	char byte;

	note_time();
	while (fd < 0 || read(fd, &byte, 1) < 0)
		pause();
	close(fd);
}

/* The device is busy with one block, behind which all its later work waits. */
static enum status hang_device(struct error *err)
{
	struct gpu_kernel *spin;
	enum status st = gpu_kernel(gpu_backend_device(planted.back), &spin, "spin", "spin", err);

	if (!st)
		st = gpu_launch_1d(spin, gpu_backend_stream(planted.back), 1, 32, 0,
				   &(struct spin_args){HOUR_NS}, err);
	note_time();
	return st;
}

/* The fault of this step that strikes before its first collective. */
static enum status strike_step(struct error *err)
{
	const bool first = !planted.on;

	planted.on = planted.due = true;
	if (!planted.mine)
		return STATUS_OK;
	if (planted.kind == KIND_HANG)
		hang();
	if (planted.kind == KIND_LOST) {
		note_time();
		raise(SIGKILL);
	}
	if (planted.kind == KIND_LATE && first)
		note_time();
	if (planted.kind == KIND_LATE)
		sleep_share(LATE_SHARE);
	return planted.kind == KIND_KERNEL && first ? hang_device(err) : STATUS_OK;
}

/* No collective takes place: ranks keep their own numbers. */
static bool is_alone(void)
{
	return planted.on && planted.kind == KIND_ALONE;
}

static enum status part(struct comm *c, const char *name, uint64_t number, uint64_t shape, struct error *err)
{
	enum status st = STATUS_OK;

	if (!strcmp(name, "step"))
		begin_step();
	if (!strcmp(name, "step") && number >= planted.step)
		st = strike_step(err);
	if (st)
		return st;
	if (is_alone() && !strcmp(name, "step")) { /* fewer collectives than the ranks agreed on */
		name = "step of ranks alone";
		shape = COMM_PART_ONCE;
	}
	return inner_of(c)->part ? inner_of(c)->part(c, name, number, shape, err) : STATUS_OK;
}

/* Puts NaN in the place of the sum's first number. */
static enum status put_nan(struct mat x, struct error *err)
{
	const float f32 = NAN;
	const uint16_t bf16 = 0x7fc0;
	const bool wide = x.dtype == DTYPE_F32;

	x.cols = x.ld = 1;
	return planted.back->ops->put(planted.back, x, wide ? (const void *)&f32 : &bf16, err);
}

/* A collective that no other rank asks for. */
static enum status gather_more(struct comm *c, struct error *err)
{
	uint64_t more = 0, *all = calloc(c->size, sizeof(*all));
	enum status st = all ? inner_of(c)->gather(c, &more, sizeof(more), all, err)
			     : error_errno(err, ENOMEM, "a planted fault");

	free(all);
	return st;
}

/* The fault of the gradient's first sum, which is *x. *replaced: another collective came in its place. */
static enum status strike_sum(struct comm *c, struct mat *x, bool *replaced, struct error *err)
{
	*replaced = false;
	if (!planted.due || !planted.mine || planted.kind > KIND_NOT_FINITE || !x->cols)
		return STATUS_OK;
	planted.due = false;
	note_time();
	if (planted.kind == KIND_ORDER)
		return gather_more(c, err);
	if (planted.kind == KIND_NOT_FINITE)
		return put_nan(*x, err);
	*replaced = planted.kind == KIND_TYPE;
	if (*replaced)
		return inner_of(c)->broadcast(c, *x, err);
	x->cols = x->ld = x->cols - 1;
	return STATUS_OK;
}

static enum status all_reduce(struct comm *c, struct mat x, struct error *err)
{
	bool replaced;
	const enum status st = strike_sum(c, &x, &replaced, err);

	return st || replaced || is_alone() ? st : inner_of(c)->all_reduce(c, x, err);
}

static enum status reduce_scatter(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	bool replaced;
	const enum status st = strike_sum(c, &x, &replaced, err);

	return st || replaced || is_alone() ? st : inner_of(c)->reduce_scatter(c, x, border, err);
}

static enum status all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	if (planted.due && planted.mine && planted.kind == KIND_WEIGHTS) {
		planted.due = false;
		note_time();
		x.cols = x.ld = x.cols - 1;
	}
	return is_alone() ? STATUS_OK : inner_of(c)->all_gather(c, x, border, err);
}

/* -- within a copy of the model -- */

static void strike_layer(void)
{
	if (!planted.due || !planted.mine || planted.kind != KIND_LAYER)
		return;
	planted.due = false;
	hang();
}

static enum status layer_reduce_scatter(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	strike_layer();
	return inner_of(c)->reduce_scatter(c, x, border, err);
}

static enum status layer_all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	strike_layer();
	return inner_of(c)->all_gather(c, x, border, err);
}

/* -- */

static enum status wait_for(struct comm *c, struct error *err)
{
	const enum status st = inner_of(c)->wait(c, err);

	if (!st && planted.on && planted.kind == KIND_NETWORK)
		planted.all->count.wait_s += sleep_share(NETWORK_SHARE);
	return st;
}

/* A fault of all ranks, whatever rank is named. */
static bool is_of_all(enum kind kind)
{
	return kind == KIND_NETWORK || kind == KIND_ALONE;
}

static bool parse(const char *words)
{
#define X(name, word) word,
	static const char *const kinds[] = {KINDS(X)};
#undef X
	const char *colon = strchr(words, ':');
	char *end;

	planted.kind = KIND_COUNT;
	for (int k = 0; colon && k < KIND_COUNT; k++)
		if (strlen(kinds[k]) == (size_t)(colon - words) &&
		    !strncmp(words, kinds[k], (size_t)(colon - words)))
			planted.kind = (enum kind)k;
	if (planted.kind == KIND_COUNT)
		return false;
	planted.rank = strtoul(colon + 1, &end, 10);
	planted.step = FIRST_STEP;
	if (end == colon + 1)
		return false;
	if (*end == '@')
		planted.step = strtoul(end + 1, &end, 10);
	if (*end == ':')
		text_copy(planted.more, sizeof(planted.more), end + 1);
	return *end == ':' || !*end;
}

static struct comm_ops *copy_ops(struct comm *c, int at)
{
	struct comm_ops *ops = &planted.ops[at];

	planted.inner[at] = c->ops;
	*ops = *c->ops;
	c->ops = ops;
	return ops;
}

static void put(struct comm *c, int at)
{
	struct comm_ops *ops = copy_ops(c, at);

	ops->part = part;
	ops->all_reduce = all_reduce;
	ops->reduce_scatter = reduce_scatter;
	ops->all_gather = all_gather;
	ops->wait = wait_for;
}

static void put_layer(struct comm *c, int at)
{
	struct comm_ops *ops = copy_ops(c, at);

	ops->reduce_scatter = layer_reduce_scatter;
	ops->all_gather = layer_all_gather;
}

enum status planted_put(struct comm *all, struct comm *data, struct comm *tensor, struct backend *back,
			struct error *err)
{
	const char *words = getenv("ASSAY_TEST_PLANT"), *test = getenv("ASSAY_TEST");

	if (!words)
		return STATUS_OK;
	if (!test || strcmp(test, "1"))
		return error_set(
			err, STATUS_BAD_INPUT,
			"ASSAY_TEST_PLANT=%.40s plants a fault, which only tests may do: set ASSAY_TEST=1",
			words);
	if (!parse(words) || (planted.rank >= all->size && !is_of_all(planted.kind)))
		return error_set(
			err, STATUS_BAD_INPUT,
			"ASSAY_TEST_PLANT=%.40s is not KIND:RANK[@STEP][:MORE] with a kind of size, type, "
			"order, nan, hang, lost, late, network, weights, layer, kernel, alone and a rank below %u",
			words, all->size);
	if (planted.kind == KIND_KERNEL && back->kind != BACKEND_GPU)
		return error_set(err, STATUS_BAD_INPUT, "ASSAY_TEST_PLANT=%.40s needs GPUs", words);
	if (planted.kind == KIND_ALONE && tensor)
		return error_set(
			err, STATUS_BAD_INPUT,
			"ASSAY_TEST_PLANT=%.40s: ranks that share a copy of the model cannot compute alone",
			words);
	planted.all = all;
	planted.back = back;
	planted.mine = all->rank == planted.rank;
	put(all, 0);
	if (data)
		put(data, 1);
	if (tensor)
		put_layer(tensor, 2);
	return STATUS_OK;
}
