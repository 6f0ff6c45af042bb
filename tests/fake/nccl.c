/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NCCL's library and communicators; nccl_fake.h beside this says what it does and how failures are
 * staged. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "nccl_comm.h"

enum { NEWEST = 22809 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static uint64_t ids;
int fake_profiler_mask;

/* The driver that the program opened. */
static void *find_in_driver(const char *symbol)
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

/* Every call of ours asks for several, each always by the same literal. */
void *fake_driver(const char *symbol)
{
	static _Thread_local struct {
		const char *symbol;
		void *found;
	} known[32];
	unsigned i = 0;
	void *found;

	for (; i < sizeof(known) / sizeof(known[0]) && known[i].symbol; i++)
		if (known[i].symbol == symbol)
			return known[i].found;
	found = find_in_driver(symbol);
	if (found && i < sizeof(known) / sizeof(known[0])) {
		known[i].symbol = symbol;
		known[i].found = found;
	}
	return found;
}

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

/* Of no other process either. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	struct timespec now;
	uint64_t word[3];

	REFUSED(ncclGetUniqueId);
	clock_gettime(CLOCK_REALTIME, &now);
	pthread_mutex_lock(&lock);
	word[0] = ++ids;
	pthread_mutex_unlock(&lock);
	word[1] = (uint64_t)getpid() << 32 | (uint64_t)now.tv_nsec;
	word[2] = 0; /* of a split */
	memset(id, 0, sizeof(*id));
	memcpy(id->internal, word, sizeof(word));
	return ncclSuccess;
}

/* Communicators. */

static const struct nccl_profiler_v5 *profiler(void)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");
	void *program = name && !strcasecmp(name, "STATIC_PLUGIN") ? dlopen(NULL, RTLD_NOW) : NULL;

	return program ? dlsym(program, "ncclProfiler_v5") : NULL;
}

static unsigned comms; /* of this process */

/* Takes the memory of a communicator, or gives it back. */
static void hold_memory(struct ncclComm *c)
{
	pthread_mutex_lock(&lock);
	c->held = (int64_t)(1e6 * (fake_nccl_number("each", 0) + (comms++ ? 0 : fake_nccl_number("base", 0))));
	pthread_mutex_unlock(&lock);
	c->device = DRIVER(fake_current)();
	DRIVER(fake_occupy)(c->device, c->held);
}

static void give_memory(const struct ncclComm *c)
{
	pthread_mutex_lock(&lock);
	comms--;
	pthread_mutex_unlock(&lock);
	DRIVER(fake_occupy)(c->device, -c->held);
}

static struct ncclComm *comm_make(struct fake_group *g, unsigned rank, const ncclConfig_t *config)
{
	struct ncclComm *c = calloc(1, sizeof(*c));
	const char *algorithm = getenv("NCCL_ALGO"), *protocol = getenv("NCCL_PROTO");

	if (!c)
		return NULL;
	c->group = g;
	c->rank = rank;
	hold_memory(c);
	if (config)
		c->config = *config;
	if (algorithm)
		snprintf(c->algorithm, sizeof(c->algorithm), "%s", algorithm);
	if (protocol)
		snprintf(c->protocol, sizeof(c->protocol), "%s", protocol);
	c->profiler = profiler();
	if (c->profiler)
		c->profiler->init(&c->context, 1, &fake_profiler_mask, NULL, 1, (int)g->meeting->ranks,
				  (int)rank, NULL);
	return c;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	struct fake_group *g;
	struct fake_meeting *m;
	ncclComm_t c;
	bool well;

	REFUSED(ncclCommInitRankConfig);
	if (ranks < 1 || ranks > FAKE_RANKS || rank < 0 || rank >= ranks ||
	    (config &&
	     (config->magic != VENDOR_NCCL_MAGIC || config->version > fake_nccl_number("version", NEWEST))))
		return ncclInvalidArgument;
	g = fake_group_of(&id, (unsigned)ranks);
	c = g ? comm_make(g, (unsigned)rank, config) : NULL;
	*out = c;
	if (!c)
		return ncclSystemError;
	m = g->meeting;
	fake_meeting_lock(m);
	well = fake_meeting_join(g, (unsigned)rank, DRIVER(fake_current)());
	if (config && config->blocking == 0 && m->joined < m->ranks && well) {
		fake_meeting_unlock(m);
		return ncclInProgress;
	}
	well = well && fake_meeting_await_all(m);
	ranks = m->aborted; /* two ranks on one device: NCCL calls that an invalid usage */
	fake_meeting_unlock(m);
	return well ? ncclSuccess : ranks ? ncclInvalidUsage : ncclRemoteError;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *r)
{
	struct fake_meeting *m = c->group->meeting;

	REFUSED(ncclCommGetAsyncError);
	fake_meeting_lock(m);
	*r = m->aborted ? ncclRemoteError : m->joined < m->ranks ? ncclInProgress : ncclSuccess;
	fake_meeting_unlock(m);
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
	give_memory(c);
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
	struct fake_meeting *m = c->group->meeting;

	fake_meeting_lock(m);
	m->slot[c->rank].pid = 0;
	fake_meeting_unlock(m);
	comm_free(c);
	REFUSED(ncclCommDestroy);
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
	struct fake_meeting *m = c->group->meeting;

	fake_meeting_lock(m);
	m->aborted = true;
	DRIVER(fake_stick)(m->slot[c->rank].device, false);
	fake_meeting_tell(m);
	fake_meeting_unlock(m);
	comm_free(c);
	return ncclSuccess;
}

#ifndef FAKE_NCCL_OLD
/* This rank's place among those of its color. */
static unsigned split_rank(const struct fake_meeting *m, unsigned rank, unsigned *ranks)
{
	const struct fake_slot *own = &m->slot[rank];
	unsigned below = 0;

	*ranks = 0;
	for (unsigned q = 0; q < m->ranks; q++) {
		const struct fake_slot *s = &m->slot[q];

		if (s->color != own->color)
			continue;
		++*ranks;
		below += s->key < own->key || (s->key == own->key && q < rank);
	}
	return below;
}

ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
	struct fake_meeting *m = c->group->meeting;
	ncclUniqueId id = {{0}};
	unsigned ranks = 0, rank = 0;

	(void)config;
	REFUSED(ncclCommSplit);
	*out = NULL;
	m->slot[c->rank].color = color;
	m->slot[c->rank].key = key;
	if (!fake_meeting_turn(c->group, NULL))
		return ncclRemoteError;
	if (color < 0)
		return ncclSuccess;
	id = fake_group_split_id(c->group, color);
	rank = split_rank(m, c->rank, &ranks);
	return ncclCommInitRankConfig(out, (int)ranks, id, (int)rank, NULL);
}
#endif
