/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl_ranks.h"
#include <stdio.h>
#include <string.h>
#include "vendor/cuda.h"

enum { CHAIN = 20 };

bool crew_meet(struct nccl_rank *k)
{
	bool well;

	pthread_barrier_wait(&k->crew->barrier);
	well = !k->crew->failed;
	pthread_barrier_wait(&k->crew->barrier); /* nobody goes on to fail before all have looked */
	return well;
}

void crew_fail(struct nccl_rank *k, const char *what, ncclResult_t r, const struct error *err)
{
	struct nccl_crew *c = k->crew;

	if (!c->failed)
		snprintf(c->why, sizeof(c->why), "rank %u: %s: %s", k->rank, what,
			 err && err->status ? err->text : c->nccl.error_string(r));
	c->failed = true;
}

double crew_most(const struct nccl_crew *c)
{
	double most = 0;

	for (unsigned r = 0; r < c->ranks; r++)
		most = c->number[r] > most ? c->number[r] : most;
	return most;
}

bool crew_comm(struct nccl_rank *k, bool blocking, int ctas)
{
	struct nccl_crew *c = k->crew;
	ncclConfig_t config = nccl_config(&c->nccl);
	ncclResult_t r, state = ncclInProgress;

	config.blocking = blocking;
	if (ctas)
		config.minCTAs = config.maxCTAs = ctas;
	if (!k->rank && c->nccl.unique_id(&c->id) != ncclSuccess)
		crew_fail(k, "ncclGetUniqueId", ncclSystemError, NULL);
	if (!crew_meet(k))
		return false;
	r = c->nccl.init(&k->comm, (int)c->ranks, c->id, (int)k->rank, &config);
	while (!blocking && (r == ncclSuccess || r == ncclInProgress) && state == ncclInProgress)
		r = c->nccl.async_error(k->comm, &state);
	if (r != ncclSuccess)
		crew_fail(k, "ncclCommInitRankConfig", r, NULL);
	return crew_meet(k);
}

void crew_comm_end(struct nccl_rank *k)
{
	if (k->comm)
		k->crew->nccl.destroy(k->comm);
	k->comm = NULL;
	crew_meet(k);
}

static enum status calls_of(struct nccl_rank *k, uint64_t bytes, unsigned calls, struct error *err)
{
	struct nccl_crew *c = k->crew;

	for (unsigned i = 0; i < calls; i++) {
		ncclResult_t r = c->nccl.all_reduce((void *)(uintptr_t)k->send, (void *)(uintptr_t)k->receive,
						    bytes / 2, ncclBfloat16, ncclSum, k->comm,
						    gpu_stream_raw(k->stream));
		enum status st = nccl_check(&c->nccl, r, k->comm, "ncclAllReduce", err);

		while (!st && r == ncclInProgress)
			st = nccl_check(&c->nccl, c->nccl.async_error(k->comm, &r), k->comm,
					"ncclCommGetAsyncError", err);
		if (st)
			return st;
	}
	return STATUS_OK;
}

static enum status timed(struct nccl_rank *k, uint64_t bytes, unsigned calls, struct gpu_graph *g, double *us,
			 struct error *err)
{
	double ns = 0;
	enum status st = gpu_event_record(k->event[0], k->stream, err);

	if (!g && !st)
		st = calls_of(k, bytes, calls, err);
	for (unsigned i = 0; g && i < calls && !st; i++)
		st = gpu_graph_launch(g, k->stream, err);
	if (!st)
		st = gpu_event_record(k->event[1], k->stream, err);
	if (!st)
		st = gpu_event_wait(k->event[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(k->event[0], k->event[1], &ns, err);
	*us = ns / 1e3 / calls / (g ? CHAIN : 1);
	return st;
}

double crew_time(struct nccl_rank *k, uint64_t bytes, unsigned calls, bool graph)
{
	struct gpu_graph *g = NULL;
	struct error err = {0};
	double us = 0;
	enum status st = calls_of(k, bytes, 5, &err);

	if (!st && graph)
		st = gpu_capture_begin(k->stream, &err);
	if (!st && graph) {
		enum status ended;

		st = calls_of(k, bytes, CHAIN, &err);
		ended = gpu_capture_end(k->stream, &g, &err);
		st = st ? st : ended;
	}
	if (st)
		crew_fail(k, "a collective", ncclSuccess, &err);
	if (crew_meet(k)) {
		st = timed(k, bytes, calls, g, &us, &err);
		if (st)
			crew_fail(k, "timing", ncclSuccess, &err);
	}
	gpu_graph_destroy(&g);
	k->crew->number[k->rank] = us;
	return crew_meet(k) ? crew_most(k->crew) : 0;
}

static enum status device_pci(unsigned ordinal, char pci[16], struct error *err)
{
	struct cuda cu;
	CUdevice d;
	enum status st = cuda_open(&cu, NULL, err);

	if (!st)
		st = CUDA_CALL(&cu, err, device_get, &d, (int)ordinal);
	return st ? st : CUDA_CALL(&cu, err, device_pci, pci, 16, d);
}

static enum status rank_open(struct nccl_rank *k, struct error *err)
{
	char pci[16];
	enum status st = device_pci(k->rank, pci, err);

	if (!st)
		st = gpu_open(&k->device, pci, err);
	if (!st)
		st = gpu_stream_create(k->device, &k->stream, err);
	if (!st)
		st = gpu_stream_create(k->device, &k->beside, err);
	for (int i = 0; i < 2 && !st; i++)
		st = gpu_event_create(k->device, &k->event[i], err);
	if (!st)
		st = gpu_alloc(k->device, &k->send, k->crew->bytes, err);
	if (!st)
		st = gpu_alloc(k->device, &k->receive, k->crew->bytes, err);
	k->crew->memory[k->rank] = k->receive;
	if (!st)
		st = gpu_stream_fill32(k->stream, k->send, 0, k->crew->bytes / 4, err);
	return st ? st : gpu_synchronize(k->device, err);
}

static void rank_close(struct nccl_rank *k)
{
	gpu_free(k->device, &k->send);
	gpu_free(k->device, &k->receive);
	for (int i = 0; i < 2; i++)
		gpu_event_destroy(&k->event[i]);
	gpu_stream_destroy(&k->beside);
	gpu_stream_destroy(&k->stream);
	gpu_close(&k->device);
}

struct start {
	struct nccl_rank rank;
	void (*step)(struct nccl_rank *k);
};

static void *rank_thread(void *arg)
{
	struct start *s = arg;
	struct error err = {0};

	if (rank_open(&s->rank, &err))
		crew_fail(&s->rank, "its device", ncclSuccess, &err);
	if (crew_meet(&s->rank))
		s->step(&s->rank);
	crew_meet(&s->rank);
	if (s->rank.device)
		rank_close(&s->rank);
	return NULL;
}

bool crew_run(struct nccl_crew *c, void (*step)(struct nccl_rank *k))
{
	struct start start[NCCL_RANKS];
	pthread_t thread[NCCL_RANKS];

	c->failed = false;
	pthread_barrier_init(&c->barrier, NULL, c->ranks);
	for (unsigned r = 0; r < c->ranks; r++) {
		start[r] = (struct start){{.crew = c, .rank = r}, step};
		if (pthread_create(&thread[r], NULL, rank_thread, &start[r]))
			abort(); /* those before it wait for it */
	}
	for (unsigned r = 0; r < c->ranks; r++)
		pthread_join(thread[r], NULL);
	pthread_barrier_destroy(&c->barrier);
	return !c->failed;
}

enum status crew_open(struct nccl_crew *c, unsigned most, uint64_t bytes, struct error *err)
{
	struct cuda cu;
	int devices = 0;
	enum status st = cuda_open(&cu, NULL, err);

	*c = (struct nccl_crew){.bytes = bytes};
	if (!st)
		st = CUDA_CALL(&cu, err, device_count, &devices);
	if (!st && devices < 2)
		return error_set(err, STATUS_UNAVAILABLE, "one device: collectives need two");
	c->ranks = (unsigned)devices < most ? (unsigned)devices : most;
	return st ? st : nccl_open(&c->nccl, NULL, err);
}
