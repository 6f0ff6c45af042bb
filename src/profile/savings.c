/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/savings.h"
#include "core/units.h"

/* Below this share of the devices' time a line is not worth its reading. */
#define LEAST_SHARE 0.02

struct saving {
	const struct findings *f;
	struct savings *out;
	double whole_ns;
	/* Without single gaps, and they alone: what comes once is not saved in every step. */
	double state_ns[BREAKDOWN_STATE_COUNT], single_ns[BREAKDOWN_STATE_COUNT];
};

static const char *seconds(char out[32], double ns)
{
	units_format(out, 32, ns * 1e-9, "s");
	return out;
}

static void add(struct saving *a, double ns, const char *knob, const char *evidence)
{
	struct savings_line *line = &a->out->line[a->out->lines];

	if (a->whole_ns <= 0 || ns / a->whole_ns < LEAST_SHARE || a->out->lines == SAVINGS_LINES)
		return;
	line->knob = knob;
	line->share = ns / a->whole_ns;
	text_copy(line->evidence, sizeof(line->evidence), evidence);
	a->out->lines++;
}

/* Idle time for a reason: what comes again and again; what comes once is told with it. */
static void add_idle(struct saving *a, enum breakdown_state reason, const char *knob, const char *evidence)
{
	double single = a->single_ns[reason];
	char line[500], once[32];

	snprintf(line, sizeof(line), "%s; %s more in single gaps, as at the start", evidence,
		 seconds(once, single));
	add(a, a->state_ns[reason], knob, single < LEAST_SHARE * a->whole_ns ? evidence : line);
}

static void advise_launch(struct saving *a)
{
	const struct summary *s = &a->f->summary;
	double ns = a->state_ns[BREAKDOWN_LAUNCH], count = (double)s->count[TIMELINE_KERNEL];
	char line[400], idle[32], mean[32];

	snprintf(line, sizeof(line),
		 "devices were idle for %s until the next work was launched; %.0f kernels of %s on average",
		 seconds(idle, ns), count,
		 seconds(mean, count > 0 ? s->total_ns[TIMELINE_KERNEL] / count : 0));
	add_idle(a, BREAKDOWN_LAUNCH,
		 "launch less: CUDA graphs (torch.compile mode=\"reduce-overhead\", torch.cuda.graph), fused "
		 "kernels, larger "
		 "batches",
		 line);
}

static void advise_sync(struct saving *a)
{
	const struct breakdown *b = &a->f->breakdown;
	double ns = a->state_ns[BREAKDOWN_SYNC];
	char line[400], idle[32];
	const char *call = "";
	uint64_t waits = 0, most = 0;

	for (size_t i = 0; i < b->devices; i++) {
		waits += b->device[i].waits;
		if (b->device[i].waited_in_ns > most) {
			most = b->device[i].waited_in_ns;
			call = timeline_name(a->f->t, b->device[i].waited_in);
		}
	}
	snprintf(line, sizeof(line),
		 "devices ran dry %llu times while the host waited for them%s%.80s, and were idle for %s",
		 (unsigned long long)waits, *call ? ", mostly in " : "", call, seconds(idle, ns));
	add_idle(a, BREAKDOWN_SYNC,
		 "wait less: .item(), .cpu(), printed tensors and synchronisations out of the step, or once "
		 "in "
		 "many steps",
		 line);
}

static void advise_data(struct saving *a)
{
	double ns = a->state_ns[BREAKDOWN_DATA], copies = 0;
	char line[400], idle[32], copied[32];

	for (size_t i = 0; i < a->f->breakdown.devices; i++)
		copies += (double)a->f->breakdown.device[i].data_copy_ns;
	snprintf(line, sizeof(line),
		 "devices waited %s for data: %s while it was copied to them, the rest before such a copy",
		 seconds(idle, ns), seconds(copied, copies));
	add_idle(a, BREAKDOWN_DATA,
		 "bring data earlier: more loader workers (num_workers), pin_memory=True with "
		 "non_blocking=True, "
		 "the next "
		 "batch copied on a stream of its own",
		 line);
}

static void advise_rest(struct saving *a)
{
	double ns = a->state_ns[BREAKDOWN_REST];
	char line[400], idle[32];

	snprintf(line, sizeof(line),
		 "devices were idle for %s while the host made no CUDA call for a millisecond and more, or "
		 "its calls were not recorded",
		 seconds(idle, ns));
	add_idle(a, BREAKDOWN_REST,
		 "look at what the host does between steps (loading, logging, checkpoints): NVTX ranges "
		 "around it "
		 "show in "
		 "trace.json.gz",
		 line);
}

/* Of a process: operations that were held against the other ranks', and those for which it was the last. */
struct lateness {
	uint64_t paired, last;
};

/* The process that the others waited for most often. */
static size_t find_latest(const struct findings *f, struct lateness *of)
{
	size_t latest = 0;

	for (size_t i = 0; i < f->nccl.launches; i++) {
		const struct nccl_launch *l = &f->nccl.launch[i];

		of[l->process].paired += l->paired;
		of[l->process].last += l->paired && l->ready_ns == l->start_ns;
	}
	for (size_t p = 1; p < f->t->processes; p++)
		if (of[p].last > of[latest].last)
			latest = p;
	return latest;
}

/* "rank 3 (pid 12)"; its pid alone where no launcher told its rank. */
static void name_rank(char out[48], const struct timeline_process *p)
{
	if (p->rank >= 0)
		snprintf(out, 48, "rank %d (pid %u)", p->rank, p->pid);
	else
		snprintf(out, 48, "pid %u", p->pid);
}

static void advise_peer(struct saving *a)
{
	const struct timeline *t = a->f->t;
	struct lateness *of = calloc(t->processes + 1, sizeof(*of));
	size_t latest = of ? find_latest(a->f, of) : 0;
	double ns = a->state_ns[BREAKDOWN_PEER];
	char line[400], idle[32], who[48];

	if (of && of[latest].paired) {
		name_rank(who, &t->process[latest]);
		snprintf(line, sizeof(line),
			 "devices waited %s in NCCL for a rank that came later; %s was last, or made nobody "
			 "wait, in %llu of its %llu operations",
			 seconds(idle, ns), who, (unsigned long long)of[latest].last,
			 (unsigned long long)of[latest].paired);
		add(a, ns,
		    "even the ranks out: the same work for each, then that rank's clocks, data and host",
		    line);
	}
	free(of);
}

static void advise_exposed(struct saving *a)
{
	double all = 0, hidden = 0, exposed = a->state_ns[BREAKDOWN_COMMUNICATION];
	char line[400], text[32], whole[32];

	for (size_t i = 0; i < a->f->breakdown.devices; i++) {
		all += (double)a->f->breakdown.device[i].communication_ns;
		hidden += (double)a->f->breakdown.device[i].hidden_ns;
	}
	snprintf(line, sizeof(line),
		 "%s of communication ran while nothing was computed, of %s in all; %.0f %% were hidden",
		 seconds(text, exposed), seconds(whole, all), all > 0 ? 100 * hidden / all : 0);
	add(a, exposed,
	    "hide communication: DDP's bucket_cap_mb, FSDP's forward_prefetch and backward_prefetch, NCCL on "
	    "a stream of "
	    "high priority",
	    line);
}

/* Pageable copies go through a buffer of the driver's, and make the host wait. */
static void advise_pageable(struct saving *a)
{
	const struct copies *c = &a->f->copies;
	const struct copies_row *pageable = NULL, *pinned = NULL;
	char line[400], rate[32], better[32], bytes[32];

	for (size_t i = 0; i < c->rows; i++) {
		char name[64];

		copies_name(name, sizeof(name), &c->row[i]);
		if (!strcmp(name, "host to device, pageable"))
			pageable = &c->row[i];
		else if (!strcmp(name, "host to device, pinned"))
			pinned = &c->row[i];
	}
	if (!pageable || pageable->rate <= 0)
		return;
	units_format(rate, sizeof(rate), pageable->rate, "B/s");
	units_format(bytes, sizeof(bytes), (double)pageable->bytes, "B");
	if (pinned)
		units_format(better, sizeof(better), pinned->rate, "B/s");
	snprintf(line, sizeof(line), "%s went to devices from pageable memory at %s%s%s", bytes, rate,
		 pinned ? "; from pinned at " : "", pinned ? better : "");
	add(a, pageable->total, "pin the host's memory: pin_memory=True, cudaHostAlloc, cudaHostRegister",
	    line);
}

static int by_share(const void *a_, const void *b_)
{
	const struct savings_line *a = a_, *b = b_;

	return (a->share < b->share) - (a->share > b->share);
}

struct savings savings_of(const struct findings *f)
{
	struct savings out = {.lines = 0};
	struct saving a = {.f = f, .out = &out, .whole_ns = findings_device_s(f) * 1e9};

	for (size_t i = 0; i < f->breakdown.devices; i++)
		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++) {
			uint64_t single_ns = breakdown_single_ns(&f->breakdown.device[i], k);

			a.single_ns[k] += (double)single_ns;
			a.state_ns[k] += (double)(f->breakdown.device[i].state_ns[k] - single_ns);
		}
	advise_launch(&a);
	advise_sync(&a);
	advise_data(&a);
	advise_rest(&a);
	advise_peer(&a);
	advise_exposed(&a);
	advise_pageable(&a);
	qsort(out.line, out.lines, sizeof(out.line[0]), by_share);
	return out;
}
