/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of device memory: kernel/memory/pattern_test.cu. p0: pattern; p1: wrong words planted between write and check. */
#include "cases.h"
#include "kernel/memory/pattern_test.h"
#include "ref.h"
#include <inttypes.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kernel_case cases[] = {
	{"hbm", "one vector", 2, 1, 32, HBM_ADDRESS, 0},
	{"hbm", "address", 100002, 5, 128, HBM_ADDRESS, 0},
	{"hbm", "inverse", 100002, 5, 128, HBM_INVERSE, 0},
	{"hbm", "moving", 100002, 5, 128, HBM_MOVING, 0},
	{"hbm", "random", 100002, 5, 128, HBM_RANDOM, 0},
	{"hbm", "one wrong bit", 100002, 5, 128, HBM_ADDRESS, 1},
	{"hbm", "more wrong words than are kept", 65536, 5, 256, HBM_RANDOM, HBM_KEPT + 5},
};

static enum status launch(struct kit *k, const struct kernel_case *c, const char *entry,
			  const struct hbm_args *args, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "hbm", entry, err);

	return st ? st : gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, 0, args, err);
}

/* What hbm_write left is the pattern of the device's own addresses. Then faults go in: the lowest at a known
 * place. */
static enum status check_and_plant(struct kit *k, const struct kernel_case *c, const struct guarded *words,
				   uint64_t *host, struct error *err)
{
	enum status st = gpu_copy_from(k->device, host, words->data, words->size, err);

	for (uint64_t i = 0; i < c->count && !st; i++) {
		uint64_t expected = ref_hbm_pattern(c->p0, words->data + 8 * i, k->seed);

		if (host[i] != expected)
			st = error_set(err, STATUS_MISMATCH,
				       "word %" PRIu64 " is %016" PRIx64 ", not %016" PRIx64, i, host[i],
				       expected);
	}
	for (unsigned i = 0; i < c->p1; i++)
		host[c->count / 2 + 3 * i] ^= (uint64_t)1 << i % 64;
	return st || !c->p1 ? st : gpu_copy_to(k->device, words->data, host, words->size, err);
}

static enum status check_record(const struct kernel_case *c, const struct guarded *words,
				const struct hbm_record *r, uint64_t seed, struct error *err)
{
	uint64_t first = c->p1 ? words->data + 8 * (c->count / 2) : UINT64_MAX;
	unsigned kept = c->p1 < HBM_KEPT ? c->p1 : HBM_KEPT;

	if (r->count != c->p1 || r->checked != c->count || r->first != first ||
	    r->bits != (c->p1 ? ((uint64_t)1 << c->p1) - 1 : 0))
		return error_set(err, STATUS_MISMATCH,
				 "%" PRIu64 " wrong of %" PRIu64 ", first at %" PRIx64 ", bits %" PRIx64
				 "; planted %u of %" PRIu64 ", first at %" PRIx64,
				 r->count, r->checked, r->first, r->bits, c->p1, c->count, first);
	for (unsigned i = 0; i < kept; i++)
		if (r->kept[i].expected != ref_hbm_pattern(c->p0, r->kept[i].address, seed) ||
		    r->kept[i].found == r->kept[i].expected)
			return error_set(err, STATUS_MISMATCH, "kept word %u is not one of those planted", i);
	return STATUS_OK;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct guarded words = {0}, record = {0};
	struct hbm_record found = {.first = UINT64_MAX};
	uint64_t *host = calloc(c->count, sizeof(*host));
	struct hbm_args args = {.count = c->count, .seed = k->seed, .pattern = c->p0};
	enum status st = kit_alloc(k, &words, c->count * 8, err);

	if (!st)
		st = kit_alloc(k, &record, sizeof(found), err);
	if (!st && !host)
		st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	args.words = words.data;
	args.record = record.data;
	if (!st)
		st = gpu_copy_to(k->device, record.data, &found, sizeof(found), err);
	if (!st)
		st = launch(k, c, "hbm_write", &args, err);
	if (!st)
		st = check_and_plant(k, c, &words, host, err);
	if (!st)
		st = launch(k, c, "hbm_check", &args, err);
	if (!st)
		st = gpu_copy_from(k->device, &found, record.data, sizeof(found), err);
	if (!st)
		st = check_record(c, &words, &found, k->seed, err);
	if (!st)
		st = kit_guards(k, &words, "words", err);
	if (!st)
		st = kit_guards(k, &record, "record", err);
	kit_free(k, &words);
	kit_free(k, &record);
	free(host);
	return st;
}

static void test(struct kit *k)
{
	kit_cases(k, &group_hbm, one);
}

const struct kernel_group group_hbm = {.name = "hbm", .cases = cases, .count = COUNT(cases), .test = test};
