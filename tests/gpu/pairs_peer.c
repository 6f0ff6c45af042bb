/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe p2p's copy engine beside a bare loop of cuMemcpyPeerAsync: one process, the same GPUs, the same
 * stream, each round ours, bare, bare, ours. A ratio above 1 says that ours is faster. Beside each direction
 * stands what the sender's NVLinks counted over the bytes that were copied. pairs_peer [--small] [--mib N]
 * [--rounds N] [--calls N] [--json FILE] Exit 1: below 0.995 beyond the interval, a counter more than 3 %
 * off, or wrong data; 77: fewer than two GPUs.
 */
#include <math.h>
#include "core/clock.h"
#include "core/math/stats.h"
#include "gpu/device/internal.h"
#include "kernel/fatbin.h"
#include "probe/p2p/p2p.h"
#include "probe/registry.h"
#include "run/meter/nvlink.h"

enum { GPUS_MAX = 8, ROUNDS_MAX = 199, WARM = 3 };
#define RATIO_LEAST 0.995
#define COUNTER_OFF 0.03

struct asked {
	uint64_t bytes;
	unsigned rounds, calls;
	FILE *json;
	bool any_json, failed;
};

struct bed {
	unsigned count;
	struct gpu_device *device[GPUS_MAX];
	struct gpu_stream *stream[GPUS_MAX];
	char pci[GPUS_MAX][16];
	struct machine *machine;
};

/* One direction: our engine, and buffers of the bare loop. */
struct lane {
	const struct asked *plan;
	const struct bed *bed;
	unsigned from, to;
	struct bench bench;
	struct target target;
	struct p2p_opts opts;
	struct p2p_state state;
	gpu_ptr source, destination;
	struct gpu_event *event[2];
	struct result *out;
};

typedef enum status copy_once(struct lane *l, struct error *err);

static enum status ours(struct lane *l, struct error *err)
{
	return p2p_driver_engine.enqueue(&l->state, 0, err);
}

static enum status bare(struct lane *l, struct error *err)
{
	const struct gpu_device *from = l->bed->device[l->from], *to = l->bed->device[l->to];
	CUresult r = from->cu.copy_peer(l->destination, to->context, l->source, from->context, l->plan->bytes,
					l->bed->stream[l->from]->raw);

	return r ? error_set(err, STATUS_VENDOR, "cuMemcpyPeerAsync: %d", (int)r) : STATUS_OK;
}

static enum status turn(struct lane *l, copy_once *copy, double *ns, struct error *err)
{
	struct gpu_stream *s = l->bed->stream[l->from];
	enum status st = gpu_event_record(l->event[0], s, err);
	double spent = 0;

	for (unsigned i = 0; !st && i < l->plan->calls; i++)
		st = copy(l, err);
	if (!st)
		st = gpu_event_record(l->event[1], s, err);
	if (!st)
		st = gpu_event_wait(l->event[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(l->event[0], l->event[1], &spent, err);
	*ns += spent / l->plan->calls;
	return st;
}

static enum status rounds(struct lane *l, double *ratio, double *own_ns, struct error *err)
{
	copy_once *const order[] = {ours, bare, bare, ours};
	double own[ROUNDS_MAX];
	enum status st = STATUS_OK;

	for (unsigned r = 0; !st && r < l->plan->rounds + WARM; r++) {
		double ns[2] = {0, 0};

		for (unsigned i = 0; !st && i < 4; i++)
			st = turn(l, order[i], &ns[order[i] == bare], err);
		if (r < WARM)
			continue;
		ratio[r - WARM] = ns[1] / ns[0];
		own[r - WARM] = ns[0] / 2;
	}
	*own_ns = st ? 0 : stats_median(own, l->plan->rounds);
	return st;
}

/* Payload and raw bytes that the sender's NVLinks counted over bytes copied; false: not available. */
static bool counted(struct lane *l, double *payload, double *raw, struct error *err)
{
	struct meter_nvml nvml = {0};
	struct meter_nvlink counters = {0};
	struct window w = {.nvlink = true};
	double ns = 0, bytes = 0;
	enum status st = STATUS_OK;

	meter_nvml_name(&nvml, l->bed->pci[l->from], NULL);
	meter_nvlink_begin(&counters, &nvml, &w);
	for (unsigned r = 0; !st && r < l->plan->rounds;
	     r++, bytes += (double)l->plan->bytes * l->plan->calls)
		st = turn(l, ours, &ns, err);
	meter_nvlink_end(&counters, &nvml, &w, l->from);
	meter_nvml_close(&nvml);
	*payload = (double)w.nvlink_bytes.tx / bytes;
	*raw = (double)w.nvlink_bytes.raw_tx / bytes;
	return !st && w.has_nvlink;
}

static void tell(struct asked *p, const struct lane *l, const double *ratio, double own_ns,
		 const double *counter)
{
	double median = stats_median(ratio, p->rounds), low, high;
	bool slow, off = counter && !(fabs(counter[0] - 1) <= COUNTER_OFF);
	char nvlink[96] = "NVLink's counters: not available";

	stats_median_interval(ratio, p->rounds, &low, &high);
	slow = high < RATIO_LEAST;
	if (counter)
		snprintf(nvlink, sizeof(nvlink), "NVLink counted %.4f of the bytes, %.4f raw", counter[0],
			 counter[1]);
	printf("%s gpu%u>gpu%u: %.1f GB/s, ours over bare %.4f [%.4f, %.4f], %s\n",
	       slow || off ? "FAIL" : "ok  ", l->from, l->to, (double)p->bytes / own_ns, median, low, high,
	       nvlink);
	p->failed |= slow || off;
	if (!p->json)
		return;
	fprintf(p->json,
		"%s{\"from\": %u, \"to\": %u, \"bytes\": %.0f, \"rounds\": %u, \"ns\": %.1f, \"ratio\": "
		"%.6f, "
		"\"low\": %.6f, \"high\": %.6f",
		p->any_json ? ",\n" : "[\n", l->from, l->to, (double)p->bytes, p->rounds, own_ns, median, low,
		high);
	if (counter)
		fprintf(p->json, ", \"nvlink_payload\": %.6f, \"nvlink_raw\": %.6f", counter[0], counter[1]);
	fputs("}", p->json);
	p->any_json = true;
}

static enum status lane_open(struct lane *l, struct error *err)
{
	enum status st = gpu_current(l->bed->device[l->to], err);

	if (!st)
		st = gpu_alloc(l->bed->device[l->to], &l->destination, l->plan->bytes, err);
	if (!st)
		st = gpu_current(l->bed->device[l->from], err);
	if (!st)
		st = gpu_alloc(l->bed->device[l->from], &l->source, l->plan->bytes, err);
	for (int i = 0; !st && i < 2; i++)
		st = gpu_event_create(l->bed->device[l->from], &l->event[i], err);
	if (!st)
		st = p2p_driver_engine.prepare(&l->state, &l->bench, &l->opts, err);
	return st;
}

static void lane_close(struct lane *l)
{
	if (l->state.side[0].device)
		p2p_driver_engine.release(&l->state);
	gpu_event_destroy(&l->event[0]);
	gpu_event_destroy(&l->event[1]);
	gpu_free(l->bed->device[l->from], &l->source);
	gpu_free(l->bed->device[l->to], &l->destination);
	result_destroy(l->out);
}

static enum status lane_run(struct asked *p, struct lane *l, struct error *err)
{
	double ratio[ROUNDS_MAX], own_ns = 0, counter[2];
	struct wrong wrong;
	enum status st = lane_open(l, err);
	bool has;

	if (!st)
		st = p2p_verify(&l->state, &wrong, err);
	if (!st)
		st = rounds(l, ratio, &own_ns, err);
	if (st)
		return st;
	has = counted(l, &counter[0], &counter[1], err);
	st = err->status ? err->status : p2p_verify(&l->state, &wrong, err);
	if (!st)
		tell(p, l, ratio, own_ns, has ? counter : NULL);
	return st;
}

static void one_way(struct asked *p, const struct bed *b, unsigned from, unsigned to)
{
	struct error err = {0};
	struct lane l = {
		.plan = p,
		.bed = b,
		.from = from,
		.to = to,
		.opts = {.size = p->bytes, .direction = P2P_TO},
		.out = result_create(),
		.target = {.kind = TARGET_PAIR, .gpu_count = 2, .gpu = {(uint16_t)from, (uint16_t)to}}};

	l.bench = (struct bench){.machine = b->machine,
				 .target = &l.target,
				 .device = b->device[from],
				 .stream = {b->stream[from]},
				 .peer = b->device[to],
				 .peer_stream = b->stream[to],
				 .seed = 42,
				 .clock = clock_monotonic(),
				 .out = l.out};
	if (lane_run(p, &l, &err)) {
		printf("FAIL gpu%u>gpu%u: %s\n", from, to, err.text);
		p->failed = true;
	}
	lane_close(&l);
}

/* Facts of GPUs that have an address and nothing else: what the engine tells of the way is not asked here. */
static enum status bare_machine(struct bed *b, struct error *err)
{
	json_t *gpus = json_array(), *facts = json_pack("{s:i, s:o}", "format", 1, "gpus", gpus);
	enum status st;

	for (unsigned i = 0; i < b->count; i++)
		json_array_append_new(gpus, json_pack("{s:s}", "pci", b->pci[i]));
	st = machine_from_json(&b->machine, facts, err);
	json_decref(facts);
	return st;
}

static enum status bed_open(struct bed *b, struct error *err)
{
	enum status st = gpu_open(&b->device[0], NULL, err);
	int count = 0;

	if (!st && b->device[0]->cu.device_count(&count))
		count = 0;
	b->count = count < GPUS_MAX ? (unsigned)count : GPUS_MAX;
	for (unsigned i = 0; !st && i < b->count; i++) {
		if (b->device[0]->cu.device_pci(b->pci[i], sizeof(b->pci[i]), (CUdevice)i))
			return error_set(err, STATUS_VENDOR, "GPU %u tells no PCI address", i);
		if (i)
			st = gpu_open(&b->device[i], b->pci[i], err);
		if (!st)
			st = gpu_current(b->device[i], err);
		if (!st)
			st = gpu_stream_create(b->device[i], &b->stream[i], err);
	}
	return st ? st : bare_machine(b, err);
}

static void bed_close(struct bed *b)
{
	for (unsigned i = GPUS_MAX; i-- > 0;) {
		if (b->device[i])
			(void)gpu_current(b->device[i], NULL);
		gpu_stream_destroy(&b->stream[i]);
		gpu_close(&b->device[i]);
	}
	machine_free(b->machine);
}

static bool number(const char *text, unsigned long most, unsigned long *out)
{
	char *end;

	*out = strtoul(text, &end, 10);
	return !*end && *out && *out <= most;
}

static bool parse(struct asked *p, int argc, char **argv)
{
	unsigned long n = 0;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--small")) {
			*p = (struct asked){.bytes = 1 << 16, .rounds = 7, .calls = 2, .json = p->json};
			continue;
		}
		i++;
		if (!strcmp(argv[i - 1], "--mib") && number(value, 8192, &n))
			p->bytes = (uint64_t)n << 20;
		else if (!strcmp(argv[i - 1], "--rounds") && number(value, ROUNDS_MAX, &n))
			p->rounds = (unsigned)n;
		else if (!strcmp(argv[i - 1], "--calls") && number(value, 1000, &n))
			p->calls = (unsigned)n;
		else if (strcmp(argv[i - 1], "--json") || !(p->json = fopen(value, "w")))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct asked p = {.bytes = 1 << 30, .rounds = 15, .calls = 8};
	struct bed b = {0};
	struct error err = {0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!parse(&p, argc, argv)) {
		fputs("usage: pairs_peer [--small] [--mib N] [--rounds N] [--calls N] [--json FILE]\n",
		      stderr);
		return 64;
	}
	cuda_keep_no_cache();
	if (!kernel_fatbin_at(0) || bed_open(&b, &err) || b.count < 2) {
		printf("1..0 # SKIP %s\n", err.text[0] ? err.text : "built without kernels, or one GPU");
		bed_close(&b);
		return 77;
	}
	for (unsigned from = 0; from < b.count; from++)
		for (unsigned to = 0; to < b.count; to++)
			if (from != to)
				one_way(&p, &b, from, to);
	if (p.json) {
		fputs(p.any_json ? "\n]\n" : "[]\n", p.json);
		fclose(p.json);
	}
	bed_close(&b);
	return p.failed;
}
