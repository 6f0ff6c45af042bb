/* SPDX-License-Identifier: Apache-2.0 */
#include "team/libraries/nccl_hooks.h"
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "vendor/nccl_profiler.h"

static const char own[] = "STATIC_PLUGIN";

/* File scope, because NCCL passes no argument of the program to the hooks and has one event mask for the
 * process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *mask; /* NCCL's event mask; NULL: no communicator yet, or no plug-in */
static bool listening;
static struct nccl_choice last;

bool nccl_hooks_offer(void)
{
	const char *named = getenv("NCCL_PROFILER_PLUGIN");

	if (named)
		return !strcasecmp(named, own);
	return !setenv("NCCL_PROFILER_PLUGIN", own, 1);
}

void nccl_hooks_listen(bool on)
{
	pthread_mutex_lock(&lock);
	listening = on;
	if (on)
		last = (struct nccl_choice){0};
	if (mask)
		*mask = on ? NCCL_PROFILE_COLL : 0;
	pthread_mutex_unlock(&lock);
}

struct nccl_choice nccl_hooks_choice(void)
{
	struct nccl_choice told;

	pthread_mutex_lock(&lock);
	told = last;
	pthread_mutex_unlock(&lock);
	return told;
}

static void small(char *out, size_t size, const char *word)
{
	size_t i;

	for (i = 0; word && word[i] && i + 1 < size; i++)
		out[i] = (char)tolower((unsigned char)word[i]);
	out[i] = 0;
}

static ncclResult_t begin(int *eventmask)
{
	pthread_mutex_lock(&lock);
	mask = eventmask;
	*mask = listening ? NCCL_PROFILE_COLL : 0;
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

static void tell(const struct nccl_profile_coll *c)
{
	pthread_mutex_lock(&lock);
	if (listening) {
		last = (struct nccl_choice){.told = true, .channels = c->channels, .warps = c->warps};
		small(last.algorithm, sizeof(last.algorithm), c->algorithm);
		small(last.protocol, sizeof(last.protocol), c->protocol);
	}
	pthread_mutex_unlock(&lock);
}

static ncclResult_t init_v4(void **context, int *eventmask, const char *comm_name, uint64_t comm_hash,
			    int nodes, int ranks, int rank, void *log)
{
	(void)comm_name, (void)comm_hash, (void)nodes, (void)ranks, (void)rank, (void)log;
	*context = NULL;
	return begin(eventmask);
}

static ncclResult_t init_v5(void **context, uint64_t comm_id, int *eventmask, const char *comm_name,
			    int nodes, int ranks, int rank, void *log)
{
	(void)comm_id, (void)comm_name, (void)nodes, (void)ranks, (void)rank, (void)log;
	*context = NULL;
	return begin(eventmask);
}

/* No handle: only the start of an event is used. */
static ncclResult_t start_v4(void *context, void **event, struct nccl_profile_v4 *d)
{
	(void)context;
	*event = NULL;
	if (d->type == NCCL_PROFILE_COLL)
		tell(&d->coll);
	return ncclSuccess;
}

static ncclResult_t start_v5(void *context, void **event, struct nccl_profile_v5 *d)
{
	(void)context;
	*event = NULL;
	if (d->type == NCCL_PROFILE_COLL)
		tell(&d->coll);
	return ncclSuccess;
}

static ncclResult_t stop(void *event)
{
	(void)event;
	return ncclSuccess;
}

static ncclResult_t state(void *event, int to, void *args)
{
	(void)event, (void)to, (void)args;
	return ncclSuccess;
}

static ncclResult_t finalize(void *context)
{
	(void)context;
	return ncclSuccess;
}

/* NCCL finds the plug-in by these names. */
extern const struct nccl_profiler_v4 ncclProfiler_v4;
extern const struct nccl_profiler_v5 ncclProfiler_v5;
__attribute__((visibility("default"), used)) const struct nccl_profiler_v4 ncclProfiler_v4 = {
	"assay", init_v4, start_v4, stop, state, finalize,
};
__attribute__((visibility("default"), used)) const struct nccl_profiler_v5 ncclProfiler_v5 = {
	"assay", init_v5, start_v5, stop, state, finalize,
};
