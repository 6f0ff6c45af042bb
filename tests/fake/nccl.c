/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL's functions; nccl_fake.h beside this says what it does and how failures are staged. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "cuda_fake.h"
#include "nccl_fake.h"
#include "nccl_move.h"
#include "vendor/nccl.h"
#include "vendor/nccl_profiler.h"

#define X(need, ret, field, symbol, params) ret symbol params;
NCCL_FUNCTIONS(X)
#undef X

#define REFUSED(symbol)                                                                                      \
	do {                                                                                                 \
		int staged_code = fake_nccl_code(#symbol);                                                   \
		if (staged_code)                                                                             \
			return (ncclResult_t)staged_code;                                                    \
	} while (0)

enum { NEWEST = 22809, WINDOWS = 16, INIT_US = 2000 };

/* What a call moved, by the ends of both arrays: a repetition finds its result there already, and need not be
 * done again. In place everything is. */
struct trace {
	const void *send;
	void *receive;
	size_t count;
	int kind, type, op;
	uint64_t ends[4];
};

/* Ranks that meet. */
struct group {
	struct group *next;
	ncclUniqueId id;
	unsigned ranks, joined, left;
	pthread_mutex_t lock;
	pthread_cond_t turned;
	unsigned arrived;
	uint64_t turn;
	const struct fake_call *call[FAKE_RANKS]; /* of this turn */
	int device[FAKE_RANKS];
	int color[FAKE_RANKS], key[FAKE_RANKS]; /* of a split */
	struct ncclComm *made[FAKE_RANKS];
	struct trace trace[FAKE_RANKS];
	bool aborted;
};

struct ncclComm {
	struct group *group;
	unsigned rank;
	ncclConfig_t config;
	char algorithm[16], protocol[16]; /* as the environment had it when this was made */
	struct fake_call *calls;	  /* all ever made: graphs keep them */
	uint64_t count;
	struct {
		const void *at;
		size_t size;
	} window[WINDOWS];
	const struct nccl_profiler_v5 *profiler;
	void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct group *groups;
static uint64_t ids;
static int profiler_mask;

static _Thread_local unsigned depth; /* of ncclGroupStart */
static _Thread_local struct {
	ncclComm_t comm;
	cudaStream_t stream;
	struct fake_call *call;
} grouped;

/* The driver that the program opened. */
static void *driver(const char *symbol)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *found;
	const char *named = getenv("ASSAY_LIB_CUDA");

	if (!handle && named)
		handle = dlopen(named, RTLD_LAZY | RTLD_NOLOAD);
	found = handle ? dlsym(handle, symbol) : NULL;
	if (handle)
		dlclose(handle); /* its user holds it */
	return found;
}
#define DRIVER(name) ((__typeof__(&name))(uintptr_t)driver(#name))

ncclResult_t ncclGetVersion(int *version)
{
	*version = (int)fake_nccl_number("version", NEWEST);
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
	return r == ncclSuccess		  ? "no error"
	       : r == ncclSystemError	  ? "unhandled system error"
	       : r == ncclInvalidArgument ? "invalid argument"
					  : "failed";
}

const char *ncclGetLastError(ncclComm_t c)
{
	(void)c;
	return "staged by the fake NCCL";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	REFUSED(ncclGetUniqueId);
	memset(id, 0, sizeof(*id));
	pthread_mutex_lock(&lock);
	ids++;
	memcpy(id->internal, &ids, sizeof(ids));
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

/* Communicators. */

static struct group *group_of(const ncclUniqueId *id, unsigned ranks)
{
	struct group *g;

	pthread_mutex_lock(&lock);
	for (g = groups; g && memcmp(&g->id, id, sizeof(*id)); g = g->next)
		;
	if (!g && (g = calloc(1, sizeof(*g)))) {
		g->id = *id;
		g->ranks = ranks;
		pthread_mutex_init(&g->lock, NULL);
		pthread_cond_init(&g->turned, NULL);
		g->next = groups;
		groups = g;
	}
	pthread_mutex_unlock(&lock);
	return g;
}

static const struct nccl_profiler_v5 *profiler(void)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	void *program = name && !strcasecmp(name, "STATIC_PLUGIN") ? dlopen(NULL, RTLD_NOW) : NULL;

	return program ? dlsym(program, "ncclProfiler_v5") : NULL;
}

static struct ncclComm *comm_make(struct group *g, unsigned rank, const ncclConfig_t *config)
{
	struct ncclComm *c = calloc(1, sizeof(*c));
	const char *algorithm = getenv("NCCL_ALGO"), *protocol = getenv("NCCL_PROTO");

	if (!c)
		return NULL;
	c->group = g;
	c->rank = rank;
	if (config)
		c->config = *config;
	if (algorithm)
		snprintf(c->algorithm, sizeof(c->algorithm), "%s", algorithm);
	if (protocol)
		snprintf(c->protocol, sizeof(c->protocol), "%s", protocol);
	c->profiler = profiler();
	if (c->profiler)
		c->profiler->init(&c->context, 1, &profiler_mask, NULL, 1, (int)g->ranks, (int)rank, NULL);
	return c;
}

/* Waits for the others. Where one hangs by plan, not for ever: a kernel would be waiting, and not the call.
 */
static bool given_up(struct group *g)
{
	struct timespec until;

	if (!fake_nccl_staged("hang")) {
		pthread_cond_wait(&g->turned, &g->lock);
		return false;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	return pthread_cond_timedwait(&g->turned, &g->lock, &until) == ETIMEDOUT;
}

/* Until all have come to this turn; the last one does `work` for all. False: aborted. */
static bool meet(struct group *g, void (*work)(struct group *g))
{
	uint64_t turn;
	bool well;

	turn = g->turn;
	if (++g->arrived == g->ranks) {
		if (work)
			work(g);
		g->arrived = 0;
		g->turn++;
		pthread_cond_broadcast(&g->turned);
	}
	while (g->turn == turn && !g->aborted && !given_up(g))
		;
	well = g->turn != turn;
	return well;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	struct group *g;
	ncclComm_t c;

	REFUSED(ncclCommInitRankConfig);
	if (ranks < 1 || ranks > FAKE_RANKS || rank < 0 || rank >= ranks ||
	    (config &&
	     (config->magic != VENDOR_NCCL_MAGIC || config->version > fake_nccl_number("version", NEWEST))))
		return ncclInvalidArgument;
	g = group_of(&id, (unsigned)ranks);
	c = g ? comm_make(g, (unsigned)rank, config) : NULL;
	*out = c;
	if (!c)
		return ncclSystemError;
	pthread_mutex_lock(&g->lock);
	g->device[rank] = DRIVER(fake_current)();
	g->joined++;
	for (unsigned r = 0; r < g->ranks; r++)
		g->aborted |= r != (unsigned)rank && g->made[r] && g->device[r] == g->device[rank];
	g->made[rank] = c;
	if (g->aborted) /* two ranks on one device: NCCL calls that an invalid usage */
		pthread_cond_broadcast(&g->turned);
	if (config && config->blocking == 0 && g->joined < g->ranks && !g->aborted) {
		pthread_mutex_unlock(&g->lock);
		return ncclInProgress;
	}
	while (g->joined < g->ranks && !g->aborted)
		pthread_cond_wait(&g->turned, &g->lock);
	pthread_cond_broadcast(&g->turned);
	rank = g->aborted;
	pthread_mutex_unlock(&g->lock);
	return rank ? ncclInvalidUsage : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *r)
{
	struct group *g = c->group;

	REFUSED(ncclCommGetAsyncError);
	pthread_mutex_lock(&g->lock);
	*r = g->aborted ? ncclRemoteError : g->joined < g->ranks ? ncclInProgress : ncclSuccess;
	pthread_mutex_unlock(&g->lock);
	return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
	(void)c;
	REFUSED(ncclCommFinalize);
	return ncclSuccess;
}

static void comm_free(ncclComm_t c)
{
	if (c->profiler)
		c->profiler->finalize(c->context);
	while (c->calls) {
		struct fake_call *call = c->calls;

		c->calls = call->next;
		free(call);
	}
	free(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
	comm_free(c);
	REFUSED(ncclCommDestroy);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
	struct group *g = c->group;

	pthread_mutex_lock(&g->lock);
	g->aborted = true;
	DRIVER(fake_stick)(g->device[c->rank], false);
	pthread_cond_broadcast(&g->turned);
	pthread_mutex_unlock(&g->lock);
	comm_free(c);
	return ncclSuccess;
}

#ifndef FAKE_NCCL_OLD
/* The last one makes a group a color; every rank takes its own. */
static void split(struct group *g)
{
	for (unsigned r = 0; r < g->ranks; r++) {
		struct group *made = NULL;
		unsigned below = 0;
		ncclUniqueId id;

		if (g->color[r] < 0)
			continue;
		for (unsigned q = 0; q < g->ranks; q++)
			below += g->color[q] == g->color[r] &&
				 (g->key[q] < g->key[r] || (g->key[q] == g->key[r] && q < r));
		for (unsigned q = 0; q < r && !made; q++)
			made = g->color[q] == g->color[r] ? g->made[q]->group : NULL;
		if (!made && !ncclGetUniqueId(&id))
			made = group_of(&id, 0);
		made->ranks = ++made->joined;
		made->device[below] = g->device[r];
		g->made[r] = comm_make(made, below, NULL);
	}
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
	struct group *g = c->group;
	bool well;

	(void)config;
	REFUSED(ncclCommSplit);
	pthread_mutex_lock(&g->lock);
	g->color[c->rank] = color;
	g->key[c->rank] = key;
	well = meet(g, split);
	*out = well && color >= 0 ? g->made[c->rank] : NULL;
	pthread_mutex_unlock(&g->lock);
	return well ? ncclSuccess : ncclRemoteError;
}

ncclResult_t ncclMemAlloc(void **p, size_t size)
{
	CUdeviceptr at = 0;

	REFUSED(ncclMemAlloc);
	if (DRIVER(cuMemAlloc_v2)(&at, size))
		return ncclUnhandledCudaError;
	*p = (void *)(uintptr_t)at;
	return ncclSuccess;
}

ncclResult_t ncclMemFree(void *p)
{
	DRIVER(cuMemFree_v2)((uintptr_t)p);
	REFUSED(ncclMemFree);
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *p, size_t size, void **handle)
{
	(void)c, (void)size;
	REFUSED(ncclCommRegister);
	*handle = p;
	return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
	(void)c;
	REFUSED(ncclCommDeregister);
	return handle ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *p, size_t size, ncclWindow_t *w, int flags)
{
	REFUSED(ncclCommWindowRegister);
	if (flags != NCCL_WIN_COLL_SYMMETRIC || (uintptr_t)p % 512)
		return ncclInvalidArgument;
	for (int i = 0; i < WINDOWS; i++) {
		if (!c->window[i].at) {
			c->window[i].at = p;
			c->window[i].size = size;
			*w = (ncclWindow_t)&c->window[i];
			return ncclSuccess;
		}
	}
	return ncclInvalidUsage;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t w)
{
	REFUSED(ncclCommWindowDeregister);
	for (int i = 0; i < WINDOWS; i++)
		if ((ncclWindow_t)&c->window[i] == w)
			c->window[i].at = NULL;
	return ncclSuccess;
}
#endif

static bool in_window(const struct ncclComm *c, const void *p)
{
	for (int i = 0; i < WINDOWS; i++)
		if (c->window[i].at && (const char *)p >= (const char *)c->window[i].at &&
		    (const char *)p < (const char *)c->window[i].at + c->window[i].size)
			return true;
	return false;
}

/* Calls. */

static uint64_t word_at(const void *p, size_t bytes, bool last)
{
	uint64_t w = 0;
	size_t size = bytes < sizeof(w) ? bytes : sizeof(w);

	memcpy(&w, (const char *)p + (last ? bytes - size : 0), size);
	return w;
}

static struct trace trace_of(const struct fake_call *c)
{
	struct trace t = {c->send, c->receive, c->count, (int)c->kind, (int)c->type, (int)c->op, {0}};
	size_t bytes = (size_t)(fake_call_bytes(c, 1));

	if (c->kind == FAKE_POINT || !bytes)
		return t;
	for (int i = 0; i < 4; i++)
		t.ends[i] = word_at(i < 2 ? c->send : c->receive, bytes, i % 2);
	return t;
}

/* True: every rank's call is the one before again, and what it left is still there. */
static bool repeated(const struct group *g)
{
	for (unsigned r = 0; r < g->ranks; r++) {
		struct trace t = trace_of(g->call[r]);

		if (g->call[r]->kind == FAKE_POINT || t.send == t.receive ||
		    memcmp(&t, &g->trace[r], sizeof(t)))
			return false;
	}
	return true;
}

static void move(struct group *g)
{
	if (repeated(g))
		return;
	fake_nccl_move(g->call, g->ranks);
	for (unsigned r = 0; r < g->ranks; r++)
		g->trace[r] = trace_of(g->call[r]);
}

/* The turn's work: data first, then all devices stand where the slowest one began, and so much later. */
static void work(struct group *g)
{
	__typeof__(&fake_now) now = DRIVER(fake_now);
	__typeof__(&fake_wait_until) wait_until = DRIVER(fake_wait_until);
	double begin = 0, ns = 0, share = 1;

	move(g);
	for (unsigned r = 0; r < g->ranks; r++) {
		uint64_t times = 1;

		begin = now(g->device[r]) > begin ? now(g->device[r]) : begin;
		ns = g->call[r]->ns > ns ? g->call[r]->ns : ns;
		if (fake_nccl_rank("slow", (unsigned)g->device[r], &times, NULL))
			share = (double)times;
	}
	for (unsigned r = 0; r < g->ranks; r++)
		wait_until(g->device[r], begin + ns * share);
}

struct launch {
	ncclComm_t comm;
	const struct fake_call *call;
};

/* On the stream's turn: in the thread that enqueued or replays it. */
static void run(int device, const void *args)
{
	const struct launch *l = args;
	struct group *g = l->comm->group;
	uint64_t from = 1;

	if (fake_nccl_rank("hang", l->comm->rank, &(uint64_t){0}, &from) && l->comm->count++ + 1 >= from)
		for (;;)
			pause();
	if (DRIVER(fake_stuck)(device)) /* behind a call that never ends */
		return;
	pthread_mutex_lock(&g->lock);
	g->call[l->comm->rank] = l->call;
	if (!meet(g, work))
		DRIVER(fake_stick)(device, true);
	pthread_mutex_unlock(&g->lock);
}

static void tell(const struct ncclComm *c, const struct fake_call *call, const struct fake_choice *choice)
{
	struct nccl_profile_v5 d = {.type = NCCL_PROFILE_COLL, .rank = (int)c->rank};
	void *event = NULL;

	if (!c->profiler || !(profiler_mask & NCCL_PROFILE_COLL) || !choice->algorithm ||
	    call->kind == FAKE_POINT)
		return;
	d.coll.function = "AllReduce";
	d.coll.count = call->count;
	d.coll.algorithm = choice->algorithm;
	d.coll.protocol = choice->protocol;
	d.coll.channels = (uint8_t)choice->channels;
	d.coll.warps = (uint8_t)choice->warps;
	c->profiler->start(c->context, &event, &d);
	if (event)
		c->profiler->stop(event);
}

static ncclResult_t submit(ncclComm_t c, struct fake_call *call, cudaStream_t stream)
{
	struct fake_ask ask = {
		.kind = call->kind,
		.ranks = c->group->ranks,
		.channels_max = c->config.magic && c->config.maxCTAs != NCCL_CONFIG_UNDEF_INT
					? (unsigned)c->config.maxCTAs
					: 0,
		.bytes = fake_call_bytes(call, c->group->ranks),
		.windows = in_window(c, call->send) && in_window(c, call->receive),
		.captured = DRIVER(fake_capture_of)((CUstream)stream),
		.algorithm = *c->algorithm ? c->algorithm : NULL,
		.protocol = *c->protocol ? c->protocol : NULL,
	};
	struct fake_choice choice;
	struct operation o = {.call = run};

	if (!fake_nccl_choose(&ask, &choice)) {
		free(call);
		return ncclInvalidUsage;
	}
	call->ns = choice.ns;
	call->rank = c->rank;
	call->next = c->calls;
	c->calls = call;
	tell(c, call, &choice);
	memcpy(o.args, &(struct launch){c, call}, sizeof(struct launch));
	return DRIVER(fake_enqueue)((CUstream)stream, &o) ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t collective(enum fake_kind kind, const void *s, void *r, size_t n, ncclDataType_t t,
			       ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t stream)
{
	struct fake_call *call = calloc(1, sizeof(*call));

	if (!call)
		return ncclSystemError;
	if ((t == ncclFloat8e4m3 || t == ncclFloat8e5m2) && fake_nccl_number("fp8", 1) == 0) {
		free(call);
		return ncclInvalidArgument;
	}
	call->kind = kind;
	call->send = s;
	call->receive = r;
	call->count = n;
	call->type = t;
	call->op = op;
	call->root = root;
	return submit(c, call, stream);
}

ncclResult_t ncclAllReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
			   cudaStream_t st)
{
	REFUSED(ncclAllReduce);
	return collective(FAKE_ALL_REDUCE, s, r, n, t, op, 0, c, st);
}

ncclResult_t ncclReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
			ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclReduce);
	return collective(FAKE_REDUCE, s, r, n, t, op, root, c, st);
}

ncclResult_t ncclBroadcast(const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c,
			   cudaStream_t st)
{
	REFUSED(ncclBroadcast);
	return collective(FAKE_BROADCAST, s, r, n, t, ncclSum, root, c, st);
}

ncclResult_t ncclReduceScatter(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op,
			       ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclReduceScatter);
	return collective(FAKE_REDUCE_SCATTER, s, r, n, t, op, 0, c, st);
}

ncclResult_t ncclAllGather(const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclAllGather);
	return collective(FAKE_ALL_GATHER, s, r, n, t, ncclSum, 0, c, st);
}

#ifndef FAKE_NCCL_OLD
ncclResult_t ncclAlltoAll(const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclAlltoAll);
	return collective(FAKE_ALL_TO_ALL, s, r, n, t, ncclSum, 0, c, st);
}
#endif

ncclResult_t ncclGroupStart(void)
{
	REFUSED(ncclGroupStart);
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t r = ncclSuccess;

	if (depth && --depth)
		return ncclSuccess;
	if (grouped.call)
		r = submit(grouped.comm, grouped.call, grouped.stream);
	grouped.call = NULL;
	REFUSED(ncclGroupEnd);
	return r;
}

/* Sends and receives of a group become one call. */
static ncclResult_t point(const void *s, void *r, size_t n, ncclDataType_t t, int peer, ncclComm_t c,
			  cudaStream_t st)
{
	struct fake_point *p;

	if (!depth || peer < 0 || peer >= (int)c->group->ranks)
		return ncclInvalidArgument;
	if (!grouped.call) {
		grouped.call = calloc(1, sizeof(*grouped.call));
		grouped.comm = c;
		grouped.stream = st;
	}
	if (!grouped.call)
		return ncclSystemError;
	grouped.call->kind = FAKE_POINT;
	grouped.call->type = t;
	grouped.call->count = n;
	p = s ? &grouped.call->to[peer] : &grouped.call->from[peer];
	*p = (struct fake_point){s, r, n};
	return ncclSuccess;
}

ncclResult_t ncclSend(const void *s, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclSend);
	return point(s, NULL, n, t, peer, c, st);
}

ncclResult_t ncclRecv(void *r, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st)
{
	REFUSED(ncclRecv);
	return point(NULL, r, n, t, peer, c, st);
}
