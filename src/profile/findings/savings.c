/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/savings.h"
#include "core/text/units.h"
#include "profile/page/kernel_label.h"

/* Findings below this share of the devices' time are not worth reading. */
#define LEAST_SHARE 0.02
/* Every data-parallel step ends with some communication that cannot be hidden. Less exposed communication
 * than this share is not a finding. */
#define LEAST_EXPOSED 0.05
#define WELL_HIDDEN 0.8
/* If CUDA graphs launched at least this share of the kernels, the advice does not suggest graphs. */
#define GRAPHS_SHARE 0.5

struct saving {
	const struct findings *f;
	const struct findings_part *part; /* the steady state */
	struct savings *out;
	double whole_ns, steps; /* steps: summed over the devices; 0: none were found */
	/* Time per state: gaps that recur, and single gaps. Advice cannot save a gap that occurs once in
	 * every step. */
	double state_ns[BREAKDOWN_STATE_COUNT], single_ns[BREAKDOWN_STATE_COUNT];
};

static const char *seconds(char out[32], double ns)
{
	units_format(out, 32, ns * 1e-9, "s");
	return out;
}

static void add(struct saving *a, const char *key, double ns, const char *knob, const char *evidence)
{
	struct savings_line *line = &a->out->line[a->out->lines];

	if (a->whole_ns <= 0 || ns / a->whole_ns < LEAST_SHARE || a->out->lines == SAVINGS_LINES)
		return;
	*line = (struct savings_line){
		.key = key, .share = ns / a->whole_ns, .per_step_ns = a->steps > 0 ? ns / a->steps : 0};
	text_copy(line->knob, sizeof(line->knob), knob);
	text_copy(line->evidence, sizeof(line->evidence), evidence);
	a->out->lines++;
}

/* Adds idle time with this reason. The finding covers recurring gaps; the time in single gaps is printed with
 * it. */
static void add_idle(struct saving *a, enum breakdown_state reason, const char *knob, const char *evidence)
{
	double single = a->single_ns[reason];
	char line[500], once[32];

	snprintf(line, sizeof(line), "%s; single gaps took another %s", evidence, seconds(once, single));
	add(a, breakdown_key(reason), a->state_ns[reason], knob,
	    single < LEAST_SHARE * a->whole_ns ? evidence : line);
}

static void advise_launch(struct saving *a)
{
	const struct summary *s = &a->part->summary;
	double ns = a->state_ns[BREAKDOWN_LAUNCH], count = (double)s->count[TIMELINE_KERNEL];
	bool graphs = count > 0 && (double)s->in_graphs >= GRAPHS_SHARE * count;
	char line[400], idle[32], mean[32];

	snprintf(
		line, sizeof(line),
		"devices were idle for %s because the host launched the next work too late; "
		"%.0f kernels ran for %s on average%s; the idle time includes 1 to 5 us that recording adds to "
		"each launch",
		seconds(idle, ns), count, seconds(mean, count > 0 ? s->total_ns[TIMELINE_KERNEL] / count : 0),
		graphs ? ", most of them launched by CUDA graphs" : "");
	add_idle(
		a, BREAKDOWN_LAUNCH,
		graphs ? "the program is launch-bound: prepare the next CUDA graph while the device works, do less "
			 "host work between launches, put more of the step into one graph, or use larger batches"
		       : "the program is launch-bound: launch fewer kernels with CUDA graphs (torch.compile "
			 "mode=\"reduce-overhead\", torch.cuda.graph), fused kernels or larger batches",
		line);
}

static void advise_sync(struct saving *a)
{
	const struct breakdown *b = &a->part->breakdown;
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
	snprintf(
		line, sizeof(line),
		"devices ran out of work %llu times while the host waited for them%s%.80s, and were then idle for %s",
		(unsigned long long)waits, *call ? ", mostly in " : "", call, seconds(idle, ns));
	add_idle(
		a, BREAKDOWN_SYNC,
		"synchronize less often: move .item(), .cpu(), printing of tensors and synchronization calls out of "
		"the step, or do them once in many steps",
		line);
}

/* Pageable copies have a finding of their own. */
static double pageable_ns(const struct saving *a)
{
	double ns = 0;

	for (size_t i = 0; i < a->part->breakdown.devices; i++)
		ns += (double)a->part->breakdown.device[i].pageable_ns;
	return ns;
}

static bool has_line(const struct saving *a, const char *key)
{
	for (size_t i = 0; i < a->out->lines; i++)
		if (!strcmp(a->out->line[i].key, key))
			return true;
	return false;
}

static void advise_data(struct saving *a)
{
	double copies = 0, pageable = pageable_ns(a);
	char line[400], idle[32], copied[32];

	for (size_t i = 0; i < a->part->breakdown.devices; i++)
		copies += (double)a->part->breakdown.device[i].data_copy_ns;
	if (has_line(a, "pageable")) {
		pageable = pageable < a->state_ns[BREAKDOWN_DATA] ? pageable : a->state_ns[BREAKDOWN_DATA];
		a->state_ns[BREAKDOWN_DATA] -= pageable;
		copies = copies > pageable ? copies - pageable : 0;
	}
	snprintf(
		line, sizeof(line),
		"devices waited %s for data: %s during copies from the host, the rest before these copies began",
		seconds(idle, a->state_ns[BREAKDOWN_DATA]), seconds(copied, copies));
	add_idle(a, BREAKDOWN_DATA,
		 "data loading is too slow: use more loader workers (num_workers), pin_memory=True with "
		 "non_blocking=True, and copy the next batch on a separate stream",
		 line);
}

static void advise_allocation(struct saving *a)
{
	char line[400], idle[32];

	snprintf(
		line, sizeof(line),
		"devices were idle for %s while the host allocated or freed memory; cudaFree also waits for the device",
		seconds(idle, a->state_ns[BREAKDOWN_ALLOCATION]));
	add_idle(
		a, BREAKDOWN_ALLOCATION,
		"memory allocation stops the devices: allocate before the loop and reuse the buffers, or use a memory "
		"pool (cudaMallocAsync, PyTorch's caching allocator without empty_cache in the step)",
		line);
}

static void advise_rest(struct saving *a)
{
	double ns = a->state_ns[BREAKDOWN_REST];
	char line[400], idle[32];

	snprintf(line, sizeof(line),
		 "devices were idle for %s while the host made no CUDA call for at least 1 ms, or "
		 "its calls were not recorded",
		 seconds(idle, ns));
	add_idle(a, BREAKDOWN_REST,
		 "the host is busy outside CUDA: check what it does between launches (data loading, "
		 "scheduling, logging, checkpoints); NVTX ranges around that code show it in the trace",
		 line);
}

/* "rank 3 (pid 12)"; only the pid if no launcher set a rank. */
static void name_rank(char out[48], const struct timeline_process *p)
{
	if (p->rank >= 0)
		snprintf(out, 48, "rank %d (pid %u)", p->rank, p->pid);
	else
		snprintf(out, 48, "pid %u", p->pid);
}

/* ", most of it in gemm (1.2 ms longer; 4 launches, mean of the other ranks 2)" */
static void add_kernel(struct text *out, const struct findings *f, const struct straggler_name *k)
{
	char more[32];

	if (!k->name)
		return;
	text_add(out, ", most of it in ");
	kernel_label(out, timeline_name(f->t, k->name), KERNEL_LABEL_WIDTH);
	text_addf(out, " (%s longer; ", seconds(more, k->ns));
	if (k->own > 1.05 * k->mean)
		text_addf(out, "%.3g launches, mean of the other ranks %.3g)", k->own, k->mean);
	else
		text_add(
			out,
			"same number of launches, each takes longer: the GPU is slower, or each launch has more work)");
}

/* What the straggler did while the others waited. */
static void add_doing(struct text *out, const struct findings *f)
{
	static const char *const doing[BREAKDOWN_STATE_COUNT] = {
		[BREAKDOWN_COMPUTE] = "its GPU computed %s longer than the others",
		[BREAKDOWN_COPY] = "its GPU copied %s longer than the others",
		[BREAKDOWN_DATA] =
			"its GPU waited %s longer for data than the others (check its data loading)",
		[BREAKDOWN_ALLOCATION] =
			"its host allocated memory, and its GPU was idle %s longer than the others (reuse its buffers)",
		[BREAKDOWN_SYNC] =
			"its host waited for the GPU, which was then idle %s longer than the others (synchronize less often)",
		[BREAKDOWN_LAUNCH] =
			"its host launched late, and its GPU was idle %s longer than the others (check the CPU load and binding)",
		[BREAKDOWN_BETWEEN] = "its GPU was idle between queued launches %s longer than the others",
		[BREAKDOWN_REST] =
			"its host made no CUDA call, and its GPU was idle %s longer than the others (check its host code)"};
	const struct straggler *l = &f->late;
	char more[32];

	if (!doing[l->state] || l->state_ns <= 0)
		return;
	text_add(out, "; meanwhile ");
	text_addf(out, doing[l->state], seconds(more, l->state_ns));
	if (l->state == BREAKDOWN_COMPUTE)
		add_kernel(out, f, &l->kernel);
	else if (l->range.name)
		text_addf(out, ", in its NVTX range \"%s\"", timeline_name(f->t, l->range.name));
}

static void advise_late(struct saving *a)
{
	const struct straggler *l = &a->f->late;
	struct text knob = {0}, evidence = {0};
	char who[48], each[32];

	name_rank(who, &a->f->t->process[l->process]);
	text_addf(&knob, "%s is the straggler: the other rank%s %s for it in ", who,
		  l->ranks > 2 ? "s wait" : " waits", seconds(each, l->median_ns));
	if (l->late_steps == l->steps)
		text_addf(&knob, "each of %zu steps", l->steps);
	else
		text_addf(&knob, "%zu of %zu steps", l->late_steps, l->steps);
	text_addf(&evidence, "this costs %s per step, averaged over all steps",
		  seconds(each, l->per_step_ns));
	if (l->also)
		text_addf(&evidence, "; %u other rank%s nearly as late", l->also,
			  l->also > 1 ? "s are" : " is");
	add_doing(&evidence, a->f);
	a->out->line[0] =
		(struct savings_line){.key = "late_rank", .share = l->share, .per_step_ns = l->per_step_ns};
	text_copy(a->out->line[0].knob, sizeof(a->out->line[0].knob), text_str(&knob));
	text_copy(a->out->line[0].evidence, sizeof(a->out->line[0].evidence), text_str(&evidence));
	a->out->lines = 1;
	text_release(&knob);
	text_release(&evidence);
}

/* Ranks wait for each other, but none of them is the straggler. */
static void advise_peer(struct saving *a)
{
	char line[400], idle[32];

	snprintf(line, sizeof(line),
		 "devices waited %s in NCCL for ranks that started later; no single rank is the straggler",
		 seconds(idle, a->state_ns[BREAKDOWN_PEER]));
	add(a, "peer", a->state_ns[BREAKDOWN_PEER],
	    "the ranks wait for each other: give each rank the same work, and remove what delays single ranks now "
	    "and then",
	    line);
}

static void advise_exposed(struct saving *a)
{
	double all = 0, hidden = 0, exposed = a->state_ns[BREAKDOWN_COMMUNICATION];
	char line[400], text[32], whole[32];
	double left;

	for (size_t i = 0; i < a->part->breakdown.devices; i++) {
		all += (double)a->part->breakdown.device[i].communication_ns;
		hidden += (double)a->part->breakdown.device[i].hidden_ns;
	}
	left = all > 0 ? 1 - hidden / all : 0;
	if (exposed < LEAST_EXPOSED * a->whole_ns || left < 1 - WELL_HIDDEN)
		return;
	snprintf(
		line, sizeof(line),
		"exposed communication took %s, all communication %s; %.0f %% of it was hidden behind computation",
		seconds(text, exposed), seconds(whole, all), all > 0 ? 100 * hidden / all : 0);
	add(a, "communication", exposed,
	    "communication is exposed: overlap it with computation by DDP's bucket_cap_mb, FSDP's "
	    "forward_prefetch and backward_prefetch, or NCCL on a high-priority stream",
	    line);
}

/* The driver copies pageable memory through its own buffer, and the host waits meanwhile. */
static void advise_pageable(struct saving *a)
{
	const struct copies *c = &a->part->copies;
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
	snprintf(line, sizeof(line), "%s were copied to devices from pageable memory at %s%s%s", bytes, rate,
		 pinned ? "; pinned memory reached " : "", pinned ? better : "");
	add(a, "pageable", pageable_ns(a),
	    "pageable copies are slow: use pinned host memory (pin_memory=True, cudaHostAlloc, cudaHostRegister)",
	    line);
}

static int by_share(const void *a_, const void *b_)
{
	const struct savings_line *a = a_, *b = b_;

	return (a->share < b->share) - (a->share > b->share);
}

static double steps_of_devices(const struct findings *f)
{
	double steps = 0;

	for (size_t i = 0; i < f->steady.breakdown.devices; i++)
		steps += (double)f->steps.process[f->steady.breakdown.device[i].process].steps;
	return steps;
}

struct savings savings_of(const struct findings *f)
{
	const struct findings_part *part = findings_main(f);
	struct savings out = {.lines = 0};
	struct saving a = {.f = f,
			   .part = part,
			   .out = &out,
			   .whole_ns = findings_device_s(part) * 1e9,
			   .steps = steps_of_devices(f)};

	for (size_t i = 0; i < part->breakdown.devices; i++)
		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++) {
			uint64_t single_ns = breakdown_single_ns(&part->breakdown.device[i], k);

			a.single_ns[k] += (double)single_ns;
			a.state_ns[k] += (double)(part->breakdown.device[i].state_ns[k] - single_ns);
		}
	if (f->late.found)
		advise_late(&a);
	else
		advise_peer(&a);
	advise_launch(&a);
	advise_sync(&a);
	advise_pageable(&a);
	advise_data(&a);
	advise_allocation(&a);
	advise_rest(&a);
	advise_exposed(&a);
	qsort(out.line + f->late.found, out.lines - f->late.found, sizeof(out.line[0]), by_share);
	return out;
}
