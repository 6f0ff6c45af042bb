/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place CONFIG: times of all-gather and reduce-scatter, bf16, of 2 and 8 GiB, a thread a GPU, in a process that is neither assay nor nccl-tests.
 * Of what differs between the two each letter of CONFIG is nccl-tests' side of it, but for D and V, which are assay's:
 *   E  arrays are made before the communicators (else behind them)    W  whole arrays of 8 GiB, once (else as large as needed, for each size)
 *   L  ncclMemAlloc (else cuMemAlloc)                                 G  one thread makes all communicators (else each its own)
 *   R  call i works at place i of the array (with W)                  D  arrays hold random numbers (else never written)
 *   V  an event behind each call
 * EWLGR is nccl-tests, DV assay. Two windows a size, 20 and 12 calls behind 5: op,mib,config,window,us; us by the host, the mean of the ranks.
 * cc -O2 place.c -lcuda -l:libnccl.so.2 -lpthread
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAXR = 8 };
static int n;
static const char *cfg;
static ncclUniqueId id;
static ncclComm_t comms[MAXR];
static CUcontext ctx[MAXR];
static pthread_barrier_t bar;
static double took[MAXR];
static const size_t sizes[] = {1ull << 31, 1ull << 33};
static const int calls[] = {20, 12};
static const size_t largest = 1ull << 33;
#define CK(x) do { int r_ = (int)(x); if (r_) { fprintf(stderr, "%s: %d line %d\n", #x, r_, __LINE__); exit(1); } } while (0)
static int has(char c) { return strchr(cfg, c) != NULL; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e6 + t.tv_nsec / 1e3; }

static void make(CUdeviceptr *p, size_t bytes)
{
	void *v = NULL;
	if (has('L')) { CK(ncclMemAlloc(&v, bytes)); *p = (CUdeviceptr)v; } else CK(cuMemAlloc(p, bytes));
	if (has('D')) {
		size_t part = 32 << 20;
		unsigned *h = malloc(part), s = 12345;
		for (size_t i = 0; i < part / 4; i++) h[i] = (s = s * 1664525u + 1013904223u) & 0xbfffbfffu; /* bf16 below 2 */
		CK(cuMemcpyHtoD(*p, h, part));
		for (size_t at = part; at < bytes; at *= 2) CK(cuMemcpyDtoD(*p + at, *p, at * 2 <= bytes ? at : bytes - at));
		CK(cuCtxSynchronize());
		free(h);
	}
}
static void drop(CUdeviceptr p) { if (has('L')) CK(ncclMemFree((void *)p)); else CK(cuMemFree(p)); }

static void call(int op, CUdeviceptr s, CUdeviceptr r, size_t bytes, int rank, CUstream st)
{
	size_t part = bytes / 2 / n;
	if (op) CK(ncclReduceScatter((void *)s, (void *)r, part, ncclBfloat16, ncclSum, comms[rank], (cudaStream_t)st));
	else CK(ncclAllGather((void *)s, (void *)r, part, ncclBfloat16, comms[rank], (cudaStream_t)st));
}
static void *rank_main(void *arg)
{
	int rank = (int)(long)arg;
	CUstream st;
	CUevent ev[32];
	CUdeviceptr big[2] = {0, 0};
	CK(cuCtxSetCurrent(ctx[rank]));
	CK(cuStreamCreate(&st, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 32; i++) CK(cuEventCreate(&ev[i], 0));
	if (has('W') && has('E')) { make(&big[0], largest); make(&big[1], largest); }
	pthread_barrier_wait(&bar);
	if (!has('G')) CK(ncclCommInitRank(&comms[rank], n, id, rank));
	else if (!rank) {
		CK(ncclGroupStart());
		for (int i = 0; i < n; i++) { CK(cuCtxSetCurrent(ctx[i])); CK(ncclCommInitRank(&comms[i], n, id, i)); }
		CK(ncclGroupEnd());
		CK(cuCtxSetCurrent(ctx[0]));
	}
	pthread_barrier_wait(&bar);
	if (has('W') && !has('E')) { make(&big[0], largest); make(&big[1], largest); }
	for (int op = 0; op < 2; op++)
		for (int z = 0; z < (int)(sizeof(sizes) / sizeof(*sizes)); z++) {
			size_t b = sizes[z], places = has('R') ? largest / b : 1;
			CUdeviceptr s = big[0], r = big[1];
			if (!has('W')) { make(&s, op ? b : b / n); make(&r, op ? b / n : b); }
			for (int i = 0; i < 5; i++) call(op, s, r, b, rank, st);
			CK(cuStreamSynchronize(st));
			for (int w = 0; w < 2; w++) {
				pthread_barrier_wait(&bar);
				double t0 = now();
				for (int i = 0; i < calls[z]; i++) {
					size_t o = i % places * b;
					call(op, s + o, r + o, b, rank, st);
					if (has('V')) CK(cuEventRecord(ev[i], st));
				}
				CK(cuStreamSynchronize(st));
				took[rank] = (now() - t0) / calls[z];
				pthread_barrier_wait(&bar);
				if (!rank) {
					double sum = 0;
					for (int i = 0; i < n; i++) sum += took[i];
					printf("%s,%zu,%s,%d,%.1f\n", op ? "reducescatter" : "allgather", b >> 20, cfg, w, sum / n);
					fflush(stdout);
				}
			}
			if (!has('W')) { pthread_barrier_wait(&bar); drop(s); drop(r); }
		}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t t[MAXR];
	cfg = argc > 1 ? argv[1] : "";
	CK(cuInit(0));
	CK(cuDeviceGetCount(&n));
	if (n > MAXR) n = MAXR;
	for (int i = 0; i < n; i++) { CUdevice d; CK(cuDeviceGet(&d, i)); CK(cuDevicePrimaryCtxRetain(&ctx[i], d)); CK(cuCtxSetCurrent(ctx[i])); }
	CK(ncclGetUniqueId(&id));
	pthread_barrier_init(&bar, NULL, n);
	for (long i = 0; i < n; i++) pthread_create(&t[i], NULL, rank_main, (void *)i);
	for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
	return 0;
}
