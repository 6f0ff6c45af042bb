/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU engines of every probe through a whole life, without supervisor or journal: prepare, verify, some
 * iterations, verify what they left, finish, release. On the fake driver and cuBLASLt it is a unit test; on a
 * GPU it also prints what each did. Arguments: [--small] [FILTER]; --small: sizes for a CPU or a sanitizer.
 */
#include <inttypes.h>
#include "core/clock.h"
#include "gpu/device/gpu.h"
#include "kernel/fatbin.h"
#include "probe/registry.h"

struct engine_case {
	const char *probe, *engine, *options; /* "name=value name=value" */
	unsigned size; /* gemm: edge of matrices; others: KiB; 0: the options say it all */
	unsigned size_small;
	unsigned iterations;
};

static const struct engine_case cases[] = {
	{"gemm", "cublaslt", "type=fp32", 4096, 96, 20},
	{"gemm", "cublaslt", "type=fp64", 4096, 64, 20},
	{"gemm", "cublaslt", "type=tf32", 8192, 64, 20},
	{"gemm", "cublaslt", "type=fp16", 8192, 64, 40},
	{"gemm", "cublaslt", "type=bf16", 8192, 96, 40},
	{"gemm", "cublaslt", "type=bf16 data=zeros", 8192, 64, 40},
	{"gemm", "cublaslt", "type=bf16 ta=t", 4096, 64, 20},
	{"gemm", "cublaslt", "type=bf16 tb=t bias=true", 4096, 64, 20},
	{"gemm", "cublaslt", "type=bf16 ta=t tb=t", 4096, 64, 20},
	{"gemm", "cublaslt", "type=bf16 batch=4", 2048, 32, 20},
	{"gemm", "cublaslt", "type=bf16 search=top", 4096, 64, 20},
	{"gemm", "cublaslt", "type=e4m3 tb=t", 8192, 64, 40},
	{"gemm", "cublaslt", "type=e4m3 tb=t accumulate=exact", 8192, 64, 40},
	{"gemm", "cublaslt", "type=e4m3 tb=t scale=block", 4096, 128, 20},
	{"gemm", "cublaslt", "type=e5m2 tb=t", 8192, 64, 40},
	{"gemm", "cublaslt", "type=e4m3 tb=t m=1 n=32 k=48", 0, 0, 20},
	{"gemm", "cublaslt", "type=e4m3 tb=t accumulate=exact m=3 n=48 k=16 batch=3", 0, 0, 20},
	{"gemm", "cublaslt", "type=e5m2 tb=t bias=true m=125 n=16 k=64", 0, 0, 20},
	{"gemm", "cublaslt", "type=int8 tb=t", 8192, 64, 40},
	{"peak", "own", "unit=mma type=bf16", 0, 0, 20},
	{"peak", "own", "unit=mma type=e4m3", 0, 0, 20},
	{"peak", "own", "unit=mma type=fp64", 0, 0, 5},
	{"peak", "own", "unit=mma type=fp32", 0, 0, 5},
	{"stress", "cublaslt", "type=bf16", 8192, 128, 20},
	{"stress", "cublaslt", "type=fp16 unit=tensor", 4096, 64, 20},
	{"stress", "cublaslt", "type=tf32 unit=tensor", 4096, 64, 20},
	{"stress", "cublaslt", "type=fp32 unit=tensor", 2048, 64, 20},
	{"stress", "cublaslt", "type=fp64 unit=tensor", 2048, 64, 20},
	{"stress", "cublaslt", "type=e4m3 unit=tensor", 8192, 64, 20},
	{"stress", "cublaslt", "type=int8 unit=tensor", 8192, 64, 20},
	{"stress", "cublaslt", "unit=memory", 0, 0, 20},
	{"sm", "own", "type=bf16", 0, 0, 20},
	{"sm", "own", "type=fp64", 0, 0, 5},
	{"memory", "own", "op=read", 4194304, 1024, 20},
	{"memory", "own", "op=write", 4194304, 1024, 20},
	{"memory", "own", "op=copy", 4194304, 1024, 20},
	{"memory", "own", "op=scale", 4194304, 1024, 20},
	{"memory", "own", "op=add", 4194304, 1024, 20},
	{"memory", "own", "op=triad", 4194304, 1024, 20},
	{"memory", "own", "op=dot", 4194304, 1024, 20},
	{"memory", "own", "op=gather", 1048576, 1024, 5},
	{"memory", "own", "op=chase", 1048576, 256, 3},
	{"memory", "own", "op=chase", 16384, 64, 5},
	{"memory", "own", "op=chase", 128, 4, 5},
	{"memory", "driver", "op=copy", 4194304, 1024, 20},
	{"memory", "driver", "op=set", 4194304, 1024, 20},
	{"link", "driver", "direction=h2d", 262144, 256, 10},
	{"link", "driver", "direction=d2h", 262144, 256, 10},
	{"link", "driver", "direction=both", 262144, 256, 10},
	{"link", "driver", "direction=h2d memory=pageable", 262144, 256, 3},
	{"link", "driver", "direction=h2d numa=0", 262144, 256, 10},
	{"link", "own", "direction=h2d", 262144, 256, 5},
	{"link", "own", "direction=both", 262144, 256, 5},
	{"link", "own", "direction=latency", 0, 0, 5},
	{"dispatch", "own", "what=launch", 0, 0, 1000},
	{"dispatch", "own", "what=graph", 0, 0, 100},
	{"hbm", "own", "", 33554432, 4096, 8},
	{"attention", "sparse", "batch=1 heads=1 seq=150 head_dim=64 pattern=random density=0.7", 0, 0, 4},
	{"attention", "sparse",
	 "batch=1 heads=2 kv_heads=1 seq=40 kv_seq=150 head_dim=128 type=bf16 mask=causal pattern=mask "
	 "block_k=64",
	 0, 0, 4},
	{"attention", "sparse",
	 "batch=3 heads=1 seq=130 head_dim=64 lengths=130+0+20 mask=causal pattern=strided density=0.5 "
	 "block_k=64",
	 0, 0, 4},
};

struct life {
	const struct probe *probe;
	const struct engine *engine;
	void *opts, *state;
	struct bench bench;
	struct result *out;
};

static const struct probe *find_probe(const char *name)
{
	for (const struct probe *const *p = probe_list; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

static const struct engine *find_engine(const struct probe *p, const char *name)
{
	for (const struct engine *const *e = p->engines; *e; e++)
		if (!strcmp((*e)->name, name) && (*e)->targets & TARGET_GPU)
			return *e;
	return NULL;
}

/* Words of "a=b c=d" into the options; `text` is cut up and must live as long as they do. */
static enum status set_options(struct life *l, char *text, unsigned size, struct error *err)
{
	static const char *const all_edges[] = {"m", "n", "k", NULL}, *const one_edge[] = {"n", NULL};
	static const char *const in_kib[] = {"size", NULL};
	bool gemm = !strcmp(l->probe->name, "gemm"), stress = !strcmp(l->probe->name, "stress");
	const char *const *sizes = gemm ? all_edges : stress ? one_edge : in_kib;
	char number[24];
	char *save = NULL;
	enum status st = opt_defaults(&l->probe->opts, l->opts, err);

	for (char *word = strtok_r(text, " ", &save); !st && word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		*value++ = '\0';
		st = opt_set(&l->probe->opts, l->opts, word, value, "engine_cases", err);
	}
	snprintf(number, sizeof(number), gemm || stress ? "%u" : "%uKiB", size);
	for (const char *const *name = sizes; !st && size && *name; name++)
		st = opt_set(&l->probe->opts, l->opts, *name, number, "engine_cases", err);
	return st;
}

static enum status iterate(struct life *l, unsigned from, unsigned count, double *ns, struct error *err)
{
	struct gpu_event *e[2] = {NULL, NULL};
	enum status st = gpu_event_create(l->bench.device, &e[0], err);

	if (!st)
		st = gpu_event_create(l->bench.device, &e[1], err);
	if (!st)
		st = gpu_event_record(e[0], l->bench.stream[0], err);
	for (unsigned i = 0; !st && i < count; i++) {
		st = l->engine->enqueue(l->state, from + i, err);
		if (!st && l->engine->enqueue_check)
			st = l->engine->enqueue_check(l->state, from + i, err);
	}
	if (!st)
		st = gpu_event_record(e[1], l->bench.stream[0], err);
	if (!st)
		st = gpu_event_wait(e[1], err);
	if (!st)
		st = gpu_event_elapsed_ns(e[0], e[1], ns, err);
	*ns /= count;
	gpu_event_destroy(&e[0]);
	gpu_event_destroy(&e[1]);
	return st;
}

/* Every variant that runs is verified; the first stays selected. */
static enum status try_variants(struct life *l, unsigned limit, struct error *err)
{
	unsigned count = l->engine->variants ? l->engine->variants(l->state) : 0, tried = 0;
	enum status st = STATUS_OK;
	const char *name;

	for (unsigned v = 0; !st && v < count && v < limit; v++) {
		struct wrong w;
		double ns;

		if (l->engine->select(l->state, v, &name, NULL))
			continue;
		tried++;
		st = l->probe->verify(l->state, &w, err);
		if (!st && count > 1)
			st = iterate(l, 0, 10, &ns, err);
		if (!st && count > 1)
			printf("       %2u %-44s %10.1f us\n", v, name, ns / 1e3);
	}
	if (!st && count > 1)
		printf("       %u of %u variants ran\n", tried, count);
	return st || !count ? st : l->engine->select(l->state, 0, &name, err);
}

static enum status live(struct life *l, const struct engine_case *c, double *ns, struct error *err)
{
	struct wrong w = {0};
	enum status st = l->engine->prepare(l->state, &l->bench, l->opts, err);

	if (!st)
		st = l->probe->verify(l->state, &w, err);
	if (!st)
		st = try_variants(l, 8, err);
	if (!st)
		st = iterate(l, 0, 3, ns, err);
	if (!st)
		st = iterate(l, 3, c->iterations, ns, err);
	if (!st)
		st = l->probe->verify(l->state, &w, err);
	if (!st && l->probe->finish)
		st = l->probe->finish(l->state, l->out, err);
	return st;
}

static void report(struct life *l, const struct engine_case *c, double ns)
{
	json_t *values = result_json(l->out);
	char *text = json_dumps(values, JSON_COMPACT);
	struct target t = {.kind = TARGET_GPU};
	bool own_size = !strcmp(c->probe, "gemm") || c->size;
	struct work w = own_size ? l->probe->work(NULL, &t, l->opts) : (struct work){0};
	double flop = strcmp(c->probe, "gemm") ? 0 : w.flop,
	       bytes = w.read_bytes + w.write_bytes + w.link_bytes;

	printf("ok   %s %s %s: %.1f us", c->probe, c->engine, c->options, ns / 1e3);
	if (flop > 0)
		printf(", %.1f TFLOPS", flop / ns / 1e3);
	else if (bytes > 0)
		printf(", %.1f GB/s", bytes / ns);
	printf(" %s\n", text ? text : "");
	free(text);
	json_decref(values);
}

/* 0: well or not offered here; 1: wrong or broken. */
static int run(struct gpu_device *d, struct gpu_stream *s, struct gpu_stream *other,
	       const struct engine_case *c, unsigned size, bool small)
{
	static const struct target target = {.kind = TARGET_GPU, .gpu_count = 1};
	struct life l = {.probe = find_probe(c->probe),
			 .bench = {.device = d,
				   .stream = {s, other},
				   .target = &target,
				   .clock = clock_monotonic(),
				   .seed = 42}};
	struct error err = {0};
	char text[128];
	double ns = 0;
	enum status st;

	l.engine = l.probe ? find_engine(l.probe, c->engine) : NULL;
	if (!l.engine) {
		printf("FAIL %s %s: no such engine\n", c->probe, c->engine);
		return 1;
	}
	l.opts = calloc(1, l.probe->opts.size);
	l.state = calloc(1, l.engine->state_size);
	l.bench.out = l.out = result_create();
	snprintf(text, sizeof(text), "%s%s", c->options,
		 small && !strcmp(c->probe, "stress") ? " bytes=1MiB" : "");
	st = l.opts && l.state && l.out ? set_options(&l, text, size, &err)
					: error_set(&err, STATUS_NO_RESOURCE, "no memory");
	if (!st) {
		struct engine_case shorter = *c;

		if (small)
			shorter.iterations = 4;
		st = live(&l, &shorter, &ns, &err);
		if (!st)
			report(&l, c, ns);
		l.engine->release(l.state);
	}
	if (st)
		printf("%s %s %s %s: %s: %s\n", st == STATUS_UNSUPPORTED ? "skip" : "FAIL", c->probe,
		       c->engine, c->options, status_name(st), err.text);
	fflush(stdout);
	free(l.opts);
	free(l.state);
	result_destroy(l.out);
	return st && st != STATUS_UNSUPPORTED && st != STATUS_BAD_INPUT;
}

int main(int argc, char **argv)
{
	struct gpu_device *d = NULL;
	struct gpu_stream *s = NULL, *other = NULL;
	struct error err = {0};
	const char *filter = "";
	bool small = false;
	int failed = 0;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--small"))
			small = true;
		else
			filter = argv[i];
	if (!kernel_fatbin_at(0) || gpu_open(&d, NULL, &err) || gpu_stream_create(d, &s, &err) ||
	    gpu_stream_create(d, &other, &err)) {
		printf("1..0 # SKIP %s\n", err.text[0] ? err.text : "built without kernels");
		gpu_close(&d);
		return 77;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[160];

		snprintf(name, sizeof(name), "%s %s %s", cases[i].probe, cases[i].engine, cases[i].options);
		if (strstr(name, filter))
			failed += run(d, s, other, &cases[i], small ? cases[i].size_small : cases[i].size,
				      small);
	}
	gpu_stream_destroy(&s);
	gpu_stream_destroy(&other);
	gpu_close(&d);
	printf("%d failed\n", failed);
	return failed ? 1 : 0;
}
