/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels' case table, run on a GPU machine: it links nothing but libc, libm and libdl. Without a GPU, or
 * built without kernels, it skips with the reason (exit 77). `test` runs each case against its C reference,
 * `time` does so too and then times every version and launch shape, also those that failed. `list` prints the
 * table.
 */
#include "cases.h"
#include "kernel/fatbin.h"
#include "vendor/cuda.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kernel_group *const groups[] = {
	&group_attention,
	&group_attention_backward,
	&group_attention_lists,
	&group_attention_sparse,
	&group_bnb4,
	&group_clock,
	&group_collective,
	&group_data,
	&group_decode,
	&group_hbm,
	&group_link,
	&group_memory,
	&group_mma,
	&group_operand,
	&group_paged,
	&group_skinny,
	&group_skinny_adapters,
	&group_sample,
	&group_step,
	&group_train,
};

static const char usage[] =
	"usage: kernel_cases test|time|list [--small] [--gib N] [--only ENTRY] [--first] [--repeat N] [FILTER]\n";

static int list(void)
{
	for (size_t g = 0; g < COUNT(groups); g++)
		for (size_t i = 0; i < groups[g]->count; i++) {
			const struct kernel_case *c = &groups[g]->cases[i];

			printf("%-8s %-14s count %9" PRIu64 " grid %4u x %4u  %s\n", groups[g]->name,
			       c->entry, c->count, c->blocks, c->threads, c->why);
		}
	return 0;
}

/* A filter that is a group's name means the whole group, and no other. */
static bool group_wanted(struct kit *k, const struct kernel_group *g, const char **filter)
{
	*filter = k->filter;
	for (size_t i = 0; i < COUNT(groups) && k->filter; i++) {
		if (!strcmp(groups[i]->name, k->filter)) {
			*filter = NULL;
			return groups[i] == g;
		}
	}
	return true;
}

/* Of a group that the filter does not name nothing is timed: some of its times ask no filter. Its cases may
 * go by names of their own (a version of `stream`), which only those tested tell, or be too large to be
 * tested. */
static bool group_timed(const struct kit *k, const struct kernel_group *g, bool tested)
{
	for (size_t i = 0; i < g->count && !tested; i++)
		tested = !k->filter || strstr(g->cases[i].entry, k->filter);
	return tested && g->time;
}

static int run(struct kit *k, bool time)
{
	bool tested[COUNT(groups)] = {false};
	const char *given = k->filter;
	enum status worst = STATUS_OK;

	for (int round = 0; round < (time ? 2 : 1); round++) {
		for (size_t g = 0; g < COUNT(groups); g++) {
			struct error err = {0};
			const unsigned before = k->tested;

			k->filter = given;
			if (!group_wanted(k, groups[g], &k->filter))
				continue;
			if (round == 0) {
				groups[g]->test(k);
				tested[g] = k->tested > before;
			} else if (group_timed(k, groups[g], tested[g]) && groups[g]->time(k, &err)) {
				printf("time %s: %s\n", groups[g]->name, err.text);
			}
			worst = worst ? worst : err.status;
		}
		if (round == 0)
			printf("%u cases, %u failed, %u skipped\n", k->tested, k->failed, k->skipped);
	}
	return k->failed || worst ? 1 : 0;
}

static int skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

static bool parse(struct kit *k, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--small")) {
			k->count_max = 1 << 17;
		} else if (!strcmp(argv[i], "--gib") && i + 1 < argc) {
			char *end;
			double gib = strtod(argv[++i], &end);

			if (*end || !(gib >= 0.001 && gib <= 64))
				return false;
			k->bytes = (uint64_t)(gib * 1024) << 20;
		} else if (!strcmp(argv[i], "--first")) {
			k->first = true;
		} else if (!strcmp(argv[i], "--only") && i + 1 < argc) {
			k->only = argv[++i];
		} else if (!strcmp(argv[i], "--repeat") && i + 1 < argc) {
			char *end;

			k->repeats = (unsigned)strtoul(argv[++i], &end, 10);
			if (*end || !k->repeats)
				return false;
		} else if (argv[i][0] == '-' || k->filter) {
			return false;
		} else {
			k->filter = argv[i];
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct kit k = {.seed = 0x5eed0123456789abu, .bytes = (uint64_t)4 << 30, .count_max = UINT64_MAX};
	const char *verb = argc > 1 ? argv[1] : "test";
	struct error err = {0};
	int code = 1;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed stays, however this ends */
	if (!parse(&k, argc, argv) ||
	    (strcmp(verb, "test") && strcmp(verb, "time") && strcmp(verb, "list"))) {
		fputs(usage, stderr);
		return 64;
	}
	if (!strcmp(verb, "list"))
		return list();
	if (!kernel_fatbin_at(0))
		return skip("built without kernels: no nvcc at build time");
	cuda_keep_no_cache();
	if (gpu_open(&k.device, NULL, &err) == STATUS_UNAVAILABLE)
		return skip(err.text);
	if (!err.status && !gpu_stream_create(k.device, &k.stream, &err)) {
		printf("%s, sm_%u, %u SMs\n", gpu_name(k.device), gpu_cc(k.device), gpu_sm_count(k.device));
		code = run(&k, !strcmp(verb, "time"));
	}
	if (err.status)
		printf("FAIL %s\n", err.text);
	gpu_stream_destroy(&k.stream);
	gpu_close(&k.peer);
	gpu_close(&k.device);
	return code;
}
