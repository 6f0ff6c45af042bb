/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/fault_injection.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/device/gpu.h"
#include "kernel/test_data/collective.h"
#include "kernel/timing/spin.h"

/*
 * The fault "busy": kernels of a millisecond that fill every multiprocessor, one after the other. The case's
 * kernels begin when one of them ends. So they are late by at most this time, and never blocked. After CHUNKS
 * kernels the load ends by itself, so nothing hangs if a worker was killed.
 */
enum { WORDS = 64 << 20, BLOCKS_A_SM = 2, THREADS = 1024, CHUNK_NS = 1000000, CHUNKS = 400 };

enum status fault_injection_asked(struct fault_injection *p, struct error *err)
{
	static const char *const kinds[] = {[FAULT_INJECTION_BUSY] = "busy",
					    [FAULT_INJECTION_WRONG] = "wrong",
					    [FAULT_INJECTION_LATE] = "late"};
	const char *words = getenv("ASSAY_TEST_PLANT"), *test = getenv("ASSAY_TEST"), *colon;
	char *end = NULL;

	*p = (struct fault_injection){0};
	if (!words)
		return STATUS_OK;
	if (!test || strcmp(test, "1"))
		return error_set(
			err, STATUS_BAD_INPUT,
			"ASSAY_TEST_PLANT=%.40s plants a fault, which only tests may do: set ASSAY_TEST=1",
			words);
	colon = strchr(words, ':');
	if (colon && isdigit((unsigned char)colon[1]))
		p->gpu = (unsigned)strtoul(colon + 1, &end, 10);
	for (int k = FAULT_INJECTION_BUSY; k <= FAULT_INJECTION_LATE && end && !*end; k++)
		if (strlen(kinds[k]) == (size_t)(colon - words) &&
		    !strncmp(words, kinds[k], (size_t)(colon - words)))
			p->kind = (enum fault_injection_kind)k;
	return p->kind ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT,
				   "ASSAY_TEST_PLANT=%.40s is not one of busy:GPU, wrong:GPU, late:GPU",
				   words);
}

bool fault_injection_in(enum fault_injection_kind kind, unsigned gpu)
{
	struct fault_injection p;

	return !fault_injection_asked(&p, NULL) && p.kind == kind && p.gpu == gpu;
}

struct fault_injection_busy {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_kernel *kernel;
	struct gpu_event *ended; /* recorded after the last kernel */
	gpu_ptr memory, stop_on_device;
	volatile uint32_t *stop; /* pinned */
	bool runs;
};

enum status fault_injection_busy_create(struct fault_injection_busy **out, struct gpu_device *d, unsigned gpu,
					struct error *err)
{
	struct fault_injection_busy *b;
	void *stop = NULL;
	enum status st;

	*out = NULL;
	if (!fault_injection_in(FAULT_INJECTION_BUSY, gpu))
		return STATUS_OK;
	b = calloc(1, sizeof(*b));
	if (!b)
		return error_errno(err, ENOMEM, "a busy kernel");
	b->device = d;
	st = gpu_kernel(d, &b->kernel, "collective", "collective_busy", err);
	if (!st)
		st = gpu_stream_create(d, &b->stream, err);
	if (!st)
		st = gpu_event_create(d, &b->ended, err);
	if (!st)
		st = gpu_alloc(d, &b->memory, WORDS * sizeof(uint32_t), err);
	if (!st)
		st = gpu_host_alloc(d, &stop, sizeof(uint32_t), err);
	b->stop = stop;
	if (!st)
		st = gpu_host_pointer(d, stop, &b->stop_on_device, err);
	if (st)
		fault_injection_busy_destroy(&b);
	*out = b;
	return st;
}

enum status fault_injection_busy_start(struct fault_injection_busy *b, struct error *err)
{
	struct collective_busy_args a = {.words = WORDS, .ns = CHUNK_NS};
	enum status st = STATUS_OK;

	if (!b || (b->runs && !gpu_event_done(b->ended)))
		return STATUS_OK;
	a.memory = b->memory;
	a.stop = b->stop_on_device;
	*b->stop = 0;
	b->runs = true;
	for (unsigned i = 0; i < CHUNKS && !st; i++)
		st = gpu_launch_1d(b->kernel, b->stream, BLOCKS_A_SM * gpu_sm_count(b->device), THREADS, 0,
				   &a, err);
	return st ? st : gpu_event_record(b->ended, b->stream, err);
}

void fault_injection_busy_stop(struct fault_injection_busy *b)
{
	if (!b || !b->runs)
		return;
	*b->stop = 1;
	(void)gpu_stream_wait(b->stream, NULL); /* the case's own calls report a fault of the device */
	b->runs = false;
}

void fault_injection_busy_destroy(struct fault_injection_busy **out)
{
	struct fault_injection_busy *b = *out;
	void *stop;

	if (!b)
		return;
	fault_injection_busy_stop(b);
	gpu_event_destroy(&b->ended);
	gpu_stream_destroy(&b->stream);
	stop = (void *)(uintptr_t)b->stop;
	gpu_host_free(b->device, &stop);
	gpu_free(b->device, &b->memory);
	free(b);
	*out = NULL;
}

enum status fault_injection_late_find(struct fault_injection_late *l, struct gpu_device *d, unsigned gpu,
				      struct error *err)
{
	*l = (struct fault_injection_late){0};
	return fault_injection_in(FAULT_INJECTION_LATE, gpu) ? gpu_kernel(d, &l->spin, "spin", "spin", err)
							     : STATUS_OK;
}

enum status fault_injection_late_put(const struct fault_injection_late *l, struct gpu_stream *on,
				     struct error *err)
{
	const struct spin_args a = {.ns = l->ns};

	return l->ns ? gpu_launch_1d(l->spin, on, 1, 32, 0, &a, err) : STATUS_OK;
}
