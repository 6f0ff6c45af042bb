/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text/text.h"
#include "gpu/matmul/matmul.h"
#include "kernel/timing/empty.h"
#include "pairs_internal.h"
#include <time.h>

int pairs_told(enum status st, const struct error *err, char *text, size_t size)
{
	if (!st)
		return 0;
	text_copy(text, size, err->text);
	return 1;
}

struct gpu_stream pairs_stream(const struct pairs *p, void *raw)
{
	return (struct gpu_stream){.raw = raw, .device = p->device};
}

struct pairs *pairs_open(const char *pci, char *text, size_t size)
{
	struct pairs *p = calloc(1, sizeof(*p));
	struct error err = {0};
	enum status st;

	if (!p)
		st = error_set_cause(&err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for a device's pairs");
	else
		st = gpu_open(&p->device, pci, &err);
	if (pairs_told(st, &err, text, size)) {
		free(p);
		return NULL;
	}
	return p;
}

void pairs_close(struct pairs *p)
{
	if (!p)
		return;
	matmul_plan_destroy(&p->plan);
	matmul_close(&p->matmul);
	for (unsigned i = 0; i < PAIRS_SLOTS; i++)
		gpu_stamps_destroy(&p->stamps[i]);
	gpu_close(&p->device);
	free(p);
}

int pairs_stamp(struct pairs *p, unsigned slot, unsigned which, void *stream, char *text, size_t size)
{
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};
	enum status st = STATUS_OK;

	if (slot >= PAIRS_SLOTS || which > 1)
		st = error_set(&err, STATUS_BAD_INPUT, "no stamp %u of slot %u", which, slot);
	if (!st && !p->stamps[slot])
		st = gpu_stamps_create(p->device, &p->stamps[slot], &err);
	if (!st)
		st = gpu_stamps_enqueue(p->stamps[slot], which, &s, &err);
	return pairs_told(st, &err, text, size);
}

int pairs_clock(struct pairs *p, unsigned slot, double *hz, char *text, size_t size)
{
	struct gpu_clock clock = {0};
	struct error err = {0};
	enum status st;

	if (slot >= PAIRS_SLOTS || !p->stamps[slot])
		st = error_set(&err, STATUS_BAD_INPUT, "slot %u has no stamps", slot);
	else
		st = gpu_stamps_read(p->stamps[slot], &clock, &err);
	*hz = clock.hz_mean;
	return pairs_told(st, &err, text, size);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int pairs_launches(struct pairs *p, void *stream, unsigned count, double *ns, char *text, size_t size)
{
	enum { WAIT_EVERY = 256 }; /* well below what the driver queues before it makes a launch wait */
	struct gpu_stream s = pairs_stream(p, stream);
	struct gpu_kernel *empty;
	struct error err = {0};
	enum status st = gpu_kernel(p->device, &empty, "empty", "empty", &err);

	for (unsigned i = 0; i < count && !st; i++) {
		double from = now_ns();

		st = gpu_launch_1d(empty, &s, 1, 32, 0, &(struct empty_args){0}, &err);
		ns[i] = now_ns() - from;
		if (!st && i % WAIT_EVERY == WAIT_EVERY - 1)
			st = gpu_stream_wait(&s, &err);
	}
	if (!st)
		st = gpu_stream_wait(&s, &err);
	return pairs_told(st, &err, text, size);
}
