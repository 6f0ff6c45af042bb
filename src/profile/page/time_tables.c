/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of device time, steps, communication and copies. */
#include <inttypes.h>
#include "core/text/units.h"
#include "profile/page/internal.h"
#include "report/text/format.h"

enum { NCCL_ROWS = 30 };

static void cell_device(struct grid *g, const struct page *p, const struct breakdown_device *d)
{
	struct text name = {0};

	page_device_name(&name, p->f->t, d->process, d->device);
	grid_cell(g, text_str(&name));
	text_release(&name);
}

static void cell_rate(struct grid *g, double rate)
{
	char cell[32] = "";

	if (rate > 0)
		units_format(cell, sizeof(cell), rate, "B/s");
	grid_cell(g, cell);
}

static void cell_bytes(struct grid *g, uint64_t bytes)
{
	char cell[32] = "";

	if (bytes)
		format_bytes(cell, sizeof(cell), (double)bytes);
	grid_cell(g, cell);
}

static void devices_grid(struct grid *g, const struct page *p, const struct breakdown *b, const char *title)
{
	text_add(&g->title, title);
	grid_column(g, "device", false);
	grid_column(g, "time", true);
	for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
		grid_column(g, breakdown_name(k), true);
	grid_column(g, "idle in total", true);
	grid_column(g, "longest gap", true);
	for (size_t i = 0; i < b->devices; i++) {
		const struct breakdown_device *d = &b->device[i];
		double whole = (double)d->span_ns;

		cell_device(g, p, d);
		page_cell_time(g, whole);
		for (unsigned k = 0; k < BREAKDOWN_STATE_COUNT; k++)
			page_cell_share(g, (double)d->state_ns[k], whole);
		page_cell_share(g, (double)breakdown_idle_ns(d), whole);
		page_cell_time(g, (double)d->longest_gap_ns);
	}
}

void page_devices(struct grid *g, const struct page *p)
{
	devices_grid(g, p, &findings_main(p->f)->breakdown,
		     p->f->steps.steps ? "Devices in the steady state"
				       : "Devices, from their first to their last event");
	text_add(
		&g->note,
		"Each moment counts once, for the first state that fits. "
		"All states from \"waiting for a peer\" on are idle time. Waiting for a peer: NCCL waits for a rank that starts later. "
		"Data loading: data is copied from the host, or such a copy is next. Memory allocation: the host allocates or frees memory. "
		"Synchronization: the host had waited for the device. Launch-bound: the host launched the next work late. Between launches: queued work had not begun yet. "
		"Other idle time: the host made no CUDA call, or its calls were not recorded");
}

void page_start_up(struct grid *g, const struct page *p)
{
	devices_grid(g, p, &p->f->start_up, "Devices before the first step");
	text_add(&g->note, "Shares and advice on this page do not include this time");
}

/* "range "step"", "call cudaDeviceSynchronize" */
static void cell_mark(struct grid *g, const struct timeline *t, const struct steps_process *s)
{
	struct text mark = {0};

	if (s->mark == STEPS_RANGE)
		text_addf(&mark, "range \"%.80s\"%s", timeline_name(t, s->name),
			  s->numbered ? " and names that differ in digits only" : "");
	else if (!s->name)
		text_add(&mark, "launch of a CUDA graph");
	else {
		text_addf(&mark, "%s ", timeline_kind_name(s->kind));
		kernel_label(&mark, timeline_name(t, s->name), KERNEL_LABEL_WIDTH);
	}
	page_cell_name(g, text_str(&mark));
	text_release(&mark);
}

static void cell_process(struct grid *g, const struct timeline_process *p)
{
	char who[48];

	if (p->rank >= 0)
		snprintf(who, sizeof(who), "rank %d, pid %u", p->rank, p->pid);
	else
		snprintf(who, sizeof(who), "pid %u", p->pid);
	grid_cell(g, who);
}

void page_steps(struct grid *g, const struct page *p)
{
	static const char *const heads[] = {"steps", "median", "mean", "p10", "p90", "before the first step"};
	const struct steps *s = &p->f->steps;

	text_add(&g->title, "Steps");
	grid_column(g, "process", false);
	grid_column(g, "a step begins at each", false);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = 0; i < p->f->t->processes; i++) {
		const struct steps_process *one = &s->process[i];

		if (!one->steps)
			continue;
		cell_process(g, &p->f->t->process[i]);
		cell_mark(g, p->f->t, one);
		page_cell_count(g, one->steps);
		page_cell_time(g, one->median_ns);
		page_cell_time(g, one->mean_ns);
		page_cell_time(g, one->p10_ns);
		page_cell_time(g, one->p90_ns);
		page_cell_time(g, (double)(s->each.span[s->each.first[i]].from_ns - one->first_ns));
	}
	text_add(&g->note,
		 "Shares and advice describe these steps only. They leave out processes without steps");
}

void page_overlap(struct grid *g, const struct page *p)
{
	const struct breakdown *b = &findings_main(p->f)->breakdown;

	text_add(&g->title, "Overlap of communication and compute");
	grid_column(g, "device", false);
	grid_column(g, "communication", true);
	grid_column(g, "hidden", true);
	grid_column(g, "exposed", true);
	grid_column(g, "hidden share", true);
	grid_column(g, "exposed share of time", true);
	for (size_t i = 0; i < b->devices; i++) {
		const struct breakdown_device *d = &b->device[i];
		double exposed = (double)(d->communication_ns - d->hidden_ns);

		if (!d->communication_ns)
			continue;
		cell_device(g, p, d);
		page_cell_time(g, (double)d->communication_ns);
		page_cell_time(g, (double)d->hidden_ns);
		page_cell_time(g, exposed);
		page_cell_share(g, (double)d->hidden_ns, (double)d->communication_ns);
		page_cell_share(g, exposed, (double)d->span_ns);
	}
	text_add(
		&g->note,
		"Communication: time in NCCL's kernels, including their waiting for a peer. Hidden: a kernel that is not NCCL's ran "
		"at the same time");
}

/* "allreduce", "allreduce, 4 calls", "unknown operation, in a graph" */
static void cell_operation(struct grid *g, const struct nccl_row *r)
{
	struct text name = {0};

	text_add(&name,
		 r->operation == NCCL_UNKNOWN ? "unknown operation" : nccl_operation_name(r->operation));
	if (r->calls > 1)
		text_addf(&name, ", %u calls", r->calls);
	if (r->graph)
		text_add(&name, ", in a graph");
	grid_cell(g, text_str(&name));
	text_release(&name);
}

static void nccl_note(struct grid *g, const struct nccl *n)
{
	text_add(&g->note,
		 "Count: launches of all ranks. Rates use the median time of the fastest rank, "
		 "which does not wait for another rank. Size and bus bandwidth are defined as in nccl-tests");
	if (n->lonely)
		text_addf(&g->note,
			  ". %" PRIu64 " of %" PRIu64 " calls have no recorded kernel: they were captured "
			  "into a CUDA graph, launched by another thread, or had "
			  "nothing to do",
			  n->lonely, n->calls);
	if (n->rows > NCCL_ROWS)
		text_addf(&g->note, ". %zu more rows are in nccl.csv", n->rows - NCCL_ROWS);
}

void page_nccl(struct grid *g, const struct page *p)
{
	static const char *const heads[] = {"ranks",	    "size",	     "count",
					    "total",	    "median",	     "p99",
					    "fastest rank", "waiting share", "algorithm bandwidth",
					    "bus bandwidth"};
	const struct nccl *n = &p->f->nccl;

	text_add(&g->title, "NCCL operations");
	grid_column(g, "operation", false);
	grid_column(g, "communicator", false);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = 0; i < n->rows && i < NCCL_ROWS; i++) {
		const struct nccl_row *r = &n->row[i];
		char comm[32] = "";

		if (r->comm)
			snprintf(comm, sizeof(comm), "%" PRIx64, r->comm);
		cell_operation(g, r);
		grid_cell(g, comm);
		if (r->ranks)
			page_cell_count(g, r->ranks);
		else
			grid_cell(g, "");
		cell_bytes(g, r->size);
		page_cell_count(g, r->count);
		page_cell_time(g, r->total);
		page_cell_time(g, r->p50);
		page_cell_time(g, r->p99);
		page_cell_time(g, r->fastest_p50);
		page_cell_share(g, r->paired ? r->waiting : 0, r->paired ? r->total : 0);
		cell_rate(g, r->algorithm_rate);
		cell_rate(g, r->bus_rate);
	}
	nccl_note(g, n);
}

void page_copies(struct grid *g, const struct page *p)
{
	static const char *const heads[] = {"count", "bytes",	"total", "share of time",
					    "rate",  "fastest", "bound", "share of bound"};
	const struct copies *c = &findings_main(p->f)->copies;
	double whole = findings_device_s(findings_main(p->f)) * 1e9;

	text_add(&g->title, "Copies and sets");
	grid_column(g, "copy or set", false);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		grid_column(g, heads[i], true);
	for (size_t i = 0; i < c->rows; i++) {
		const struct copies_row *r = &c->row[i];
		char name[64];

		copies_name(name, sizeof(name), r);
		grid_cell(g, name);
		page_cell_count(g, r->count);
		cell_bytes(g, r->bytes);
		page_cell_time(g, r->total);
		page_cell_share(g, r->total, whole);
		cell_rate(g, r->rate);
		cell_rate(g, r->fastest);
		cell_rate(g, r->bound);
		page_cell_share(g, r->fastest, r->fastest > 0 ? r->bound : 0);
	}
	text_add(
		&g->note,
		"Fastest: rate of the fastest copy of at least 1 MiB. Bound, if known: rate of the link in one direction, or half the device's memory "
		"bandwidth for copies on the device");
}
