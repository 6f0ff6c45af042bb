/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of cases a group of kernels: each case is tested against its C reference, the fast shapes are
 * timed, all are listed. Nothing is timed that was not checked before in the same run. A group is a file
 * cases_NAME.c and its line in kernel_cases.c.
 */
#ifndef TESTS_GPU_CASES_H
#define TESTS_GPU_CASES_H
#include "gpu/attention/problem.h"
#include "gpu/device/gpu.h"

struct kernel_case {
	const char *entry; /* kernel, or family of kernels that share the case ("copy") */
	const char *why;   /* what the case is there for */
	uint64_t count;	   /* elements, or what the group calls its size */
	unsigned blocks, threads;
	unsigned p0, p1; /* the group's own */
};

/* What a group works with. */
struct kit {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_device *peer; /* a second GPU that both reach; NULL until kit_peer */
	uint64_t seed;
	uint64_t bytes;	    /* size of a stream in timings */
	uint64_t count_max; /* larger cases are left out (--small: under a sanitizer) */
	const char *filter; /* part of a name; NULL: all */
	const char *only;   /* a kernel's entry, where several take a case; NULL: all */
	bool first;	    /* no case is tested after the first that fails */
	unsigned repeats;   /* runs more that are to give the same bits (attention) */
	unsigned tested, failed, skipped;
};

struct kernel_group {
	const char *name;
	const struct kernel_case *cases;
	size_t count;
	/* Runs every case that the filter wants, in all its versions; kit_result for each. */
	void (*test)(struct kit *k);
	/* Optional: prints one line a timing. */
	enum status (*time)(struct kit *k, struct error *err);
};

/* MISMATCH: differs from its reference, or wrote outside its output. UNSUPPORTED, UNAVAILABLE: not here. */
typedef enum status kit_one(struct kit *k, const struct kernel_case *c, struct error *err);

extern const struct kernel_group group_attention, group_attention_backward, group_attention_lists,
	group_attention_sparse, group_bnb4, group_clock, group_collective, group_data, group_decode,
	group_hbm, group_link, group_memory, group_mma, group_operand, group_paged, group_sample,
	group_skinny, group_skinny_adapters, group_step, group_train;

enum status skinny_adapters_time(struct kit *k, struct error *err); /* time_skinny_adapters.c */

/* For groups whose cases name one kernel each: runs those that the filter wants. */
void kit_cases(struct kit *k, const struct kernel_group *g, kit_one *one);
/* Prints "ok", "FAIL", "skip" with the case and, where it is not ok, why; counts. */
void kit_result(struct kit *k, const char *group, const char *name, const struct kernel_case *c,
		enum status st, const struct error *err);
/* False: the filter, the limit on sizes, or a case that failed before leaves it out. */
bool kit_wants(const struct kit *k, const char *name, const struct kernel_case *c);

/* Opens a second GPU, once, each with access to the other; the own one is current afterwards. UNSUPPORTED:
 * there is none, or no access. */
enum status kit_peer(struct kit *k, struct error *err);

/* Device memory with guard words on both sides; filled with NaN patterns. Owner: caller, kit_free. */
struct guarded {
	gpu_ptr base, data;
	uint64_t size;
};
enum status kit_alloc(struct kit *k, struct guarded *g, uint64_t size, struct error *err);
/* The same, holding what stands at `from`. */
enum status kit_put(struct kit *k, struct guarded *g, const void *from, uint64_t size, struct error *err);
/* The order of work on a problem's sequences, and how many units it names; nothing where the problem has
 * none. */
enum status kit_order(struct kit *k, struct guarded *g, const struct attention_problem *p, uint32_t *count,
		      struct error *err);
/* MISMATCH where a guard word changed. */
enum status kit_guards(struct kit *k, const struct guarded *g, const char *what, struct error *err);
void kit_free(struct kit *k, struct guarded *g);

/* Nanoseconds of one call: median of 3 spans of `calls` between events, after 2 calls to warm up. */
enum status kit_time(struct kit *k, enum status (*call)(void *arg, struct error *err), void *arg,
		     unsigned calls, double *ns, struct error *err);
/* Compares words; MISMATCH names the first that differs. */
enum status kit_compare(const char *what, const void *found, const void *expected, uint64_t size,
			struct error *err);
#endif
