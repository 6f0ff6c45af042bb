/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A neighbour on one GPU: memory traffic on about half of each multiprocessor, for so many seconds. It says
 * "busy" when it has begun. usage: busy PCI-ADDRESS SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include "gpu/device/gpu.h"
#include "kernel/test_data/collective.h"
#include "kernel/fatbin.h"

enum { WORDS = 64 << 20, BLOCKS_A_SM = 2, THREADS = 512 };

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	struct gpu_device *d = NULL;
	struct gpu_stream *s = NULL;
	struct gpu_kernel *k;
	struct error err = {0};
	gpu_ptr memory = 0, stop = 0;
	enum status st;

	if (!(seconds > 0)) {
		fprintf(stderr, "usage: busy PCI-ADDRESS SECONDS\n");
		return 64;
	}
	if (!kernel_fatbin_at(0)) {
		puts("busy: built without kernels: no nvcc at build time");
		return 77;
	}
	st = gpu_open(&d, argv[1], &err);
	if (!st)
		st = gpu_kernel(d, &k, "collective", "collective_busy", &err);
	if (!st)
		st = gpu_stream_create(d, &s, &err);
	if (!st)
		st = gpu_alloc(d, &memory, WORDS * sizeof(uint32_t), &err);
	if (!st)
		st = gpu_alloc(d, &stop, sizeof(uint32_t), &err);
	if (!st)
		st = gpu_stream_fill32(s, stop, 0, 1, &err);
	for (unsigned done = 0; !st && done < seconds; done++) { /* a second each: it ends soon after TERM */
		struct collective_busy_args a = {
			.memory = memory, .stop = stop, .words = WORDS, .ns = 1000000000};

		st = gpu_launch_1d(k, s, BLOCKS_A_SM * gpu_sm_count(d), THREADS, 0, &a, &err);
		if (!st && !done) {
			puts("busy");
			fflush(stdout);
		}
		if (!st && done % 2)
			st = gpu_stream_wait(s, &err);
	}
	if (!st)
		st = gpu_stream_wait(s, &err);
	if (st)
		fprintf(stderr, "busy: %s\n", err.text);
	gpu_stream_destroy(&s);
	if (d) {
		gpu_free(d, &memory);
		gpu_free(d, &stop);
		gpu_close(&d);
	}
	return st != STATUS_OK;
}
