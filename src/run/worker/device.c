/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker/device.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "gpu/device/gpu.h"

bool device_wanted(const struct bench_case *c)
{
	return c->target.kind != TARGET_CPU && c->engine && c->engine->streams;
}

static void seat_leave(struct seat *s)
{
	if (s->device)
		(void)gpu_current(s->device, NULL); /* if the device is lost, this fails and is ignored */
	for (unsigned i = 0; i < 2; i++)
		if (s->stream[i])
			gpu_stream_destroy(&s->stream[i]);
	if (s->device)
		gpu_close(&s->device);
	*s = (struct seat){0};
}

void device_close(struct measure *w)
{
	for (unsigned i = 0; i < TARGET_GPUS; i++)
		seat_leave(&w->seat[i]);
}

/* The seat of this GPU, or a free one. */
static struct seat *seat_of(struct measure *w, const char *pci)
{
	struct seat *found = NULL;

	for (unsigned i = 0; i < TARGET_GPUS; i++)
		if (w->seat[i].device && !strcmp(w->seat[i].pci, pci))
			return &w->seat[i];
		else if (!w->seat[i].device && !found)
			found = &w->seat[i];
	return found;
}

bool device_listed(char *out, size_t size, const char *list, int index)
{
	size_t length;

	for (int i = 0; list && i < index; i++) {
		list = strchr(list, ',');
		list = list ? list + 1 : "";
	}
	if (!list)
		return index >= 0 && snprintf(out, size, "%d", index) < (int)size;
	list += strspn(list, " ");
	length = strcspn(list, ", ");
	if (index < 0 || !length || length >= size)
		return false;
	memcpy(out, list, length);
	out[length] = '\0';
	return true;
}

/*
 * The driver initializes every GPU that it lists: opening one of four listed H200 took 1.0 to 2.3 s, a single
 * listed one 0.35 s. A worker serves one place (case_place), so a worker of one GPU lists only this GPU,
 * before the driver is loaded.
 */
static void list_alone(const struct measure *w, const struct bench_case *c, const struct gpu *g)
{
	char word[80];

	if (c->target.kind != TARGET_GPU || c->target.gpu_count != 1 || machine_gpu_count(w->machine) < 2 ||
	    gpu_get(g, GPU_FACT_mig_mode, 0) > 0 ||
	    !device_listed(word, sizeof(word), getenv("CUDA_VISIBLE_DEVICES"), g->cuda_index))
		return;
	for (unsigned i = 0; i < TARGET_GPUS; i++)
		if (w->seat[i].device)
			return;
	setenv("CUDA_VISIBLE_DEVICES", word, 1);
}

/* Opens the GPU at this place of the target, makes it current on this thread, and creates its streams. */
static enum status open_gpu(struct measure *w, const struct bench_case *c, unsigned place, struct seat **out,
			    struct error *err)
{
	const struct gpu *g = machine_gpu(w->machine, c->target.gpu[place]);
	struct seat *s;
	enum status st;

	if (!g)
		return error_set(err, STATUS_BUG, "%s: the machine has no such GPU", c->target_text);
	s = seat_of(w, g->pci);
	if (!s)
		return error_set(err, STATUS_BUG, "%s: this worker has already opened %u GPUs",
				 c->target_text, (unsigned)TARGET_GPUS);
	if (!s->device)
		list_alone(w, c, g);
	st = s->device ? gpu_current(s->device, err) : gpu_open(&s->device, g->pci, err);
	if (!st)
		text_copy(s->pci, sizeof(s->pci), g->pci);
	for (unsigned i = 0; !st && i < c->engine->streams && i < 2; i++)
		if (!s->stream[i])
			st = gpu_stream_create(s->device, &s->stream[i], err);
	*out = s;
	return st;
}

/* Opens both GPUs of a pair; the engine's own one is current afterwards. */
static enum status open_peer(struct measure *w, const struct bench_case *c, struct bench *b,
			     struct error *err)
{
	struct seat *peer;
	enum status st = open_gpu(w, c, !c->engine->seat, &peer, err);

	if (!st)
		st = gpu_current(b->device, err);
	if (st)
		return st;
	b->peer = peer->device;
	b->peer_stream = peer->stream[0];
	return STATUS_OK;
}

/* The CPUs that this process may use. The supervisor has bound it to its NUMA node. */
static enum status own_cpus(struct bench *b, unsigned *cpus, struct error *err)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return error_errno(err, errno, "the CPUs that this process may use cannot be read");
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && b->threads < DEVICE_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[b->threads++] = cpu;
	b->cpus = cpus;
	return STATUS_OK;
}

/* Index in gpu[] of the target's GPU that this rank uses. */
static unsigned place_of(const struct bench_case *c, const struct team *team)
{
	if (c->target.kind == TARGET_PAIR)
		return c->engine->seat;
	return c->target.kind == TARGET_NODE && team && team->in_process ? team->rank : 0;
}

enum status device_open(struct measure *w, const struct bench_case *c, struct team *team, struct bench *b,
			unsigned *cpus, struct error *err)
{
	unsigned place = place_of(c, team);
	struct seat *own;
	enum status st;

	*b = (struct bench){
		.machine = w->machine,
		.target = &c->target,
		.team = team,
		.gpu = place < c->target.gpu_count ? c->target.gpu[place] : 0,
		.seed = w->seed,
		.clock = w->clock,
		.log = w->log,
	};
	st = own_cpus(b, cpus, err);
	if (st || !device_wanted(c))
		return st;
	if (team)
		team_at(team->board, TEAM_OP_OPEN);
	st = open_gpu(w, c, place, &own, err);
	if (team)
		team_at(team->board, TEAM_OP_PREPARE);
	if (st)
		return st;
	b->device = own->device;
	b->stream[0] = own->stream[0];
	b->stream[1] = own->stream[1];
	return c->target.kind == TARGET_PAIR ? open_peer(w, c, b, err) : STATUS_OK;
}

enum status device_meter(struct meter **m, const struct bench_case *c, const struct meter_spec *spec,
			 struct error *err)
{
	return device_wanted(c) ? meter_gpu_create(m, spec, err) : meter_cpu_create(m, spec, err);
}
