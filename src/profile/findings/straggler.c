/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/straggler.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/stats.h"

/* A rank is late in a step if its lateness reaches both of these limits: a part of the median step, and a
 * time. */
#define STRAGGLER_PART 0.02
#define STRAGGLER_NS 50e3
/* Limits for naming a rank: the share of all steps' time that its lateness costs, or the part of the median
 * step that it costs in each late step. */
#define NAMED_SHARE 0.03
#define NAMED_PART 0.1
enum { NAMED_STEPS = 3 };
#define AS_LATE 0.8
/* A host range explains idle time if it grew by at least this part of the extra idle time. */
#define RANGE_PART 0.5

struct search {
	const struct timeline *t;
	const struct windows *each;		/* the steps; the same for each rank */
	const struct breakdown_device **device; /* one device per rank */
	size_t devices, steps;
	double median_step_ns, whole_ns;
	double *lateness; /* indexed by device, then step */
	double *sum;	  /* by device: sum over its late steps */
	double *room;	  /* scratch space: one number per device or per step */
};

static double *lateness_of(const struct search *s, size_t device)
{
	return s->lateness + device * s->steps;
}

static uint64_t waiting_ns(const struct search *s, size_t device, size_t step)
{
	return s->device[device]->window_ns[step][BREAKDOWN_PEER];
}

/* Whether the device takes part in collectives that were matched with another rank's. */
static bool has_pairs(const struct nccl *n, const struct breakdown_device *d)
{
	for (size_t i = 0; i < n->launches; i++)
		if (n->launch[i].paired && n->launch[i].process == d->process &&
		    n->launch[i].device == d->device)
			return true;
	return false;
}

/* Devices that only have a context, or only copy, are not ranks. Returns false if out of memory. */
static bool pick_ranks(struct search *s, const struct nccl *n, const struct breakdown *steady)
{
	s->device = calloc(steady->devices + 1, sizeof(*s->device));
	if (!s->device)
		return false;
	for (size_t i = 0; i < steady->devices; i++)
		if (has_pairs(n, &steady->device[i]))
			s->device[s->devices++] = &steady->device[i];
	return true;
}

/* All ranks have the same steps, so those of the first one are used. */
static void measure_steps(struct search *s, const struct steps *steps)
{
	size_t process = s->device[0]->process;

	s->steps = s->device[0]->windows;
	s->median_step_ns = steps->process[process].median_ns;
	for (size_t i = s->each->first[process]; i < s->each->first[process + 1]; i++)
		s->whole_ns += (double)(s->each->span[i].to_ns - s->each->span[i].from_ns);
}

/* Lateness of a rank in a step: median of the other ranks' waiting time, less its own. */
static void compare(struct search *s)
{
	double least = STRAGGLER_PART * s->median_step_ns > STRAGGLER_NS ? STRAGGLER_PART * s->median_step_ns
									 : STRAGGLER_NS;

	for (size_t d = 0; d < s->devices; d++)
		for (size_t k = 0; k < s->steps; k++) {
			size_t others = 0;
			double late_ns;

			for (size_t o = 0; o < s->devices; o++)
				if (o != d)
					s->room[others++] = (double)waiting_ns(s, o, k);
			late_ns = stats_median(s->room, others) - (double)waiting_ns(s, d, k);
			lateness_of(s, d)[k] = late_ns >= least ? late_ns : 0;
			s->sum[d] += lateness_of(s, d)[k];
		}
}

/* Lateness of the device less the median lateness of the others. */
static double net_ns(const struct search *s, size_t device)
{
	size_t others = 0;

	for (size_t o = 0; o < s->devices; o++)
		if (o != device)
			s->room[others++] = s->sum[o];
	return s->sum[device] - stats_median(s->room, others);
}

/* Writes the lateness of the late steps to s->room, ascending. Returns their number. */
static size_t late_steps(const struct search *s, size_t device)
{
	size_t count = 0;

	for (size_t k = 0; k < s->steps; k++)
		if (lateness_of(s, device)[k] > 0)
			s->room[count++] = lateness_of(s, device)[k];
	stats_sort(s->room, count);
	return count;
}

/* A straggler is late in enough steps, no single step dominates, and the cost is large overall or in each
 * late step. */
static bool is_named(struct straggler *l, const struct search *s, size_t device)
{
	double net = net_ns(s, device);

	l->late_steps = late_steps(s, device);
	if (l->late_steps < NAMED_STEPS || s->room[l->late_steps - 1] > s->sum[device] / 2)
		return false;
	l->median_ns = stats_percentile(s->room, l->late_steps, 0.5);
	return net >= NAMED_SHARE * s->whole_ns ||
	       (l->median_ns >= NAMED_PART * s->median_step_ns && net >= s->sum[device] / 2);
}

/* Extra time of the device in a state compared with the other ranks: mean over its late steps. */
static double excess_ns(const struct search *s, size_t device, enum breakdown_state state, size_t late)
{
	double sum = 0;

	for (size_t k = 0; k < s->steps; k++) {
		double others = 0;

		if (lateness_of(s, device)[k] <= 0)
			continue;
		for (size_t o = 0; o < s->devices; o++)
			others += o == device ? 0 : (double)s->device[o]->window_ns[k][state];
		sum += (double)s->device[device]->window_ns[k][state] - others / (double)(s->devices - 1);
	}
	return sum / (double)late;
}

static void find_state(struct straggler *l, const struct search *s, size_t device)
{
	l->state = BREAKDOWN_REST;
	l->state_ns = 0;
	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++) {
		double ns = k == BREAKDOWN_PEER || k == BREAKDOWN_COMMUNICATION
				    ? 0
				    : excess_ns(s, device, k, l->late_steps);

		if (ns > l->state_ns) {
			l->state = k;
			l->state_ns = ns;
		}
	}
}

/* Time and count of one kernel or range in the late steps: of the straggler, and the mean of the other ranks.
 */
struct tally {
	double own_ns, others_ns, own, others;
};

static bool counts(const struct search *s, const struct timeline_event *e, enum timeline_kind kind)
{
	if (e->kind != kind)
		return false;
	return kind == TIMELINE_KERNEL
		       ? !nccl_is_kernel(timeline_name(s->t, e->name))
		       : strcmp(timeline_name(s->t, s->t->range[e->detail].domain), "NCCL") != 0;
}

/* Number of the ranks' devices that belong to this process. */
static double devices_of(const struct search *s, uint16_t process)
{
	double count = 0;

	for (size_t i = 0; i < s->devices; i++)
		count += s->device[i]->process == process;
	return count;
}

/* Makes windows of the late steps for every rank. */
static bool late_windows(struct windows *w, const struct search *s, size_t device)
{
	if (!windows_make(w, s->t, s->each->first[s->t->processes]))
		return false;
	for (size_t p = 0; p < s->t->processes; p++) {
		const struct windows_span *span = s->each->span + s->each->first[p];

		if (devices_of(s, (uint16_t)p) <= 0)
			continue;
		for (size_t k = 0; k < s->steps; k++)
			if (lateness_of(s, device)[k] > 0)
				windows_add(w, s->t, (uint16_t)p, span[k].from_ns, span[k].to_ns);
	}
	return true;
}

/* Whether the event belongs to the straggler: a kernel on its device, or a range of its process. */
static bool is_own(const struct search *s, const struct breakdown_device *d, const struct timeline_event *e)
{
	return e->process == d->process && (e->kind != TIMELINE_KERNEL || e->track == TIMELINE_NONE ||
					    s->t->track[e->track].device_id == d->device);
}

/* A kernel counts once. A range counts once for each device of its process. For the other ranks the tally
 * holds the mean per device. */
static bool tally_all(struct tally *by_name, const struct search *s, size_t device, enum timeline_kind kind)
{
	const struct breakdown_device *d = s->device[device];
	double others = (double)(s->devices - 1);
	struct windows w;

	if (!late_windows(&w, s, device))
		return false;
	for (size_t i = 0; i < s->t->events; i++) {
		const struct timeline_event *e = &s->t->event[i];
		double ns = (double)(e->end_ns - e->start_ns), times = 1;
		struct tally *of = &by_name[e->name];

		if (!counts(s, e, kind) || !windows_contain(&w, e->process, e->start_ns))
			continue;
		if (is_own(s, d, e)) {
			of->own_ns += ns;
			of->own++;
			continue;
		}
		if (kind == TIMELINE_RANGE)
			times = devices_of(s, e->process);
		of->others_ns += ns * times / others;
		of->others += times / others;
	}
	windows_release(&w);
	return true;
}

static struct straggler_name name_of(const struct straggler *l, const struct tally *of, uint32_t name)
{
	double steps = (double)l->late_steps;

	return (struct straggler_name){name, (of->own_ns - of->others_ns) / steps, of->own / steps,
				       of->others / steps};
}

/* Names the kernel whose time grew most, or the shortest range that explains enough of the extra idle time.
 */
static bool find_names(struct straggler *l, const struct search *s, size_t device)
{
	enum timeline_kind kind = l->state == BREAKDOWN_COMPUTE ? TIMELINE_KERNEL : TIMELINE_RANGE;
	struct tally *by_name = calloc(s->t->names + 1, sizeof(*by_name));
	bool made = by_name && tally_all(by_name, s, device, kind);
	double shortest_ns = INFINITY;

	for (uint32_t i = 0; made && i < s->t->names; i++) {
		struct straggler_name found = name_of(l, &by_name[i], i);

		if (kind == TIMELINE_KERNEL && found.ns > l->kernel.ns)
			l->kernel = found;
		if (kind == TIMELINE_RANGE && found.ns >= RANGE_PART * l->state_ns && found.ns > 0 &&
		    by_name[i].own_ns < shortest_ns) {
			l->range = found;
			shortest_ns = by_name[i].own_ns;
		}
	}
	free(by_name);
	return made;
}

static bool name_latest(struct straggler *l, struct search *s)
{
	size_t latest = 0;

	compare(s);
	for (size_t d = 1; d < s->devices; d++)
		if (s->sum[d] > s->sum[latest])
			latest = d;
	if (!is_named(l, s, latest))
		return true;
	l->found = true;
	l->process = s->device[latest]->process;
	l->device = s->device[latest]->device;
	l->ranks = (uint32_t)s->devices;
	l->steps = s->steps;
	l->per_step_ns = s->sum[latest] / (double)s->steps;
	l->share = s->sum[latest] / s->whole_ns;
	for (size_t d = 0; d < s->devices; d++)
		l->also += d != latest && s->sum[d] >= AS_LATE * s->sum[latest];
	find_state(l, s, latest);
	return find_names(l, s, latest);
}

static bool find(struct straggler *l, struct search *s, const struct nccl *n, const struct steps *steps,
		 const struct breakdown *steady)
{
	size_t room;

	if (!pick_ranks(s, n, steady))
		return false;
	if (s->devices < 2)
		return true;
	measure_steps(s, steps);
	room = s->steps > s->devices ? s->steps : s->devices;
	s->lateness = calloc(s->devices * s->steps + 1, sizeof(*s->lateness));
	s->sum = calloc(s->devices + 1, sizeof(*s->sum));
	s->room = calloc(room + 1, sizeof(*s->room));
	return s->lateness && s->sum && s->room && name_latest(l, s);
}

enum status straggler_of(struct straggler *l, const struct timeline *t, const struct nccl *n,
			 const struct steps *s, const struct breakdown *steady, struct error *err)
{
	struct search search = {.t = t, .each = &s->each};
	bool made;

	*l = (struct straggler){.found = false};
	made = !s->each.apart || find(l, &search, n, s, steady);
	free(search.device);
	free(search.lateness);
	free(search.sum);
	free(search.room);
	return made ? STATUS_OK
		    : error_errno(err, ENOMEM, "cannot compare the ranks of %zu processes", t->processes);
}
