/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token at a time: kernel/decode/decode.cu against double precision. What a kernel reads and writes lies in one piece of memory, once
 * on the host for the reference and once on the device; afterwards all of it is compared, so a write to a wrong place shows.
 */
#include "cases.h"
#include "core/math/random.h"
#include "decode_bed.h"
#include "ref.h"
#include <inttypes.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { LINEAR_NORM = 8, LINEAR_BIAS = 16, LINEAR_LD = 32, LINEAR_E4M3 = 64, LINEAR_KIND = 7 };

/* linear: count = in, p0 = out, p1 = kind and switches, adapters of rank p1 >> 8.
 * attend: count = keys, p0 = heads << 16 | kv_heads, p1 = head_dim, 1 where heads are normed, and a page's bits << 8.
 * token: count = launches, p0 = the model of decode_bed.h, p1 = tokens in the cache before. */
static const struct kernel_case cases[] = {
	{"decode_linear", "one chunk", 256, 1, DECODE_THREADS, 1, DECODE_PLAIN},
	{"decode_linear", "eight elements", 8, 1, DECODE_THREADS, 3, DECODE_PLAIN},
	{"decode_linear", "a row longer than a warp's part", 5128, 2, DECODE_THREADS, 3, DECODE_ADD},
	{"decode_linear", "norm and bias", 576, 5, DECODE_THREADS, 333, DECODE_PLAIN | LINEAR_NORM | LINEAR_BIAS},
	{"decode_linear", "rows apart", 576, 5, DECODE_THREADS, 333, DECODE_ADD | LINEAR_LD},
	{"decode_linear", "fewer rows than blocks", 264, 7, DECODE_THREADS, 4, DECODE_SWIGLU | LINEAR_NORM},
	{"decode_linear", "gate and up", 576, 5, DECODE_THREADS, 2 * 155, DECODE_SWIGLU | LINEAR_NORM},
	{"decode_linear", "a head", 576, 5, DECODE_THREADS, 1003, DECODE_PLAIN | LINEAR_NORM},
	{"decode_linear", "adapters of rank 8", 576, 3, DECODE_THREADS, 960, DECODE_PLAIN | LINEAR_NORM | 8 << 8},
	{"decode_linear", "of rank 5", 96, 3, DECODE_THREADS, 192, DECODE_ADD | 5 << 8},
	{"decode_linear", "of rank 64, gate and up", 96, 2, DECODE_THREADS, 320, DECODE_SWIGLU | LINEAR_NORM | 64 << 8},
	{"decode_linear", "Qwen2-7B q k v", 3584, 132, DECODE_THREADS, 4608, DECODE_PLAIN | LINEAR_NORM | LINEAR_BIAS},
	{"decode_linear", "Qwen2-7B o", 3584, 132, DECODE_THREADS, 3584, DECODE_ADD},
	{"decode_linear", "Qwen2-7B gate, up", 3584, 132, DECODE_THREADS, 37888, DECODE_SWIGLU | LINEAR_NORM},
	{"decode_linear", "Qwen2-7B down", 18944, 132, DECODE_THREADS, 3584, DECODE_ADD},
	{"decode_linear", "E4M3, one chunk", 512, 1, DECODE_THREADS, 1, DECODE_PLAIN | LINEAR_E4M3},
	{"decode_linear", "E4M3, sixteen elements", 16, 1, DECODE_THREADS, 3, DECODE_PLAIN | LINEAR_E4M3},
	{"decode_linear", "E4M3, rows across units", 2560, 2, DECODE_THREADS, 21, DECODE_ADD | LINEAR_E4M3},
	{"decode_linear", "E4M3, rows of less than a unit", 1536, 3, DECODE_THREADS, 101,
	 DECODE_PLAIN | LINEAR_NORM | LINEAR_BIAS | LINEAR_E4M3},
	{"decode_linear", "E4M3, rows apart", 592, 5, DECODE_THREADS, 333, DECODE_ADD | LINEAR_LD | LINEAR_E4M3},
	{"decode_linear", "E4M3, gate and up", 576, 5, DECODE_THREADS, 2 * 155, DECODE_SWIGLU | LINEAR_NORM | LINEAR_E4M3},
	{"decode_linear", "E4M3, Qwen2-7B q k v", 3584, 132, DECODE_THREADS, 4608,
	 DECODE_PLAIN | LINEAR_NORM | LINEAR_BIAS | LINEAR_E4M3},
	{"decode_linear", "E4M3, Qwen2-7B gate, up", 3584, 132, DECODE_THREADS, 37888, DECODE_SWIGLU | LINEAR_NORM | LINEAR_E4M3},
	{"decode_linear", "E4M3, Qwen2-7B down", 18944, 132, DECODE_THREADS, 3584, DECODE_ADD | LINEAR_E4M3},
	{"decode_attend", "the first token", 1, 6, DECODE_THREADS, 6 << 16 | 2, 64 | 4 << 8},
	{"decode_attend", "one split", 63, 6, DECODE_THREADS, 6 << 16 | 2, 64 | 5 << 8},
	{"decode_attend", "two splits", 65, 6, DECODE_THREADS, 6 << 16 | 2, 64 | 6 << 8},
	{"decode_attend", "a new page", 97, 6, DECODE_THREADS, 6 << 16 | 2, 64 | 5 << 8},
	{"decode_attend", "normed heads", 65, 6, DECODE_THREADS, 6 << 16 | 2, 64 | 1 | 4 << 8},
	{"decode_attend", "more keys than are in flight", 1500, 6, DECODE_THREADS, 9 << 16 | 3, 64 | 4 << 8},
	{"decode_attend", "fewer blocks than KV heads", 300, 3, DECODE_THREADS, 8 << 16 | 4, 128 | 5 << 8},
	{"decode_attend", "more query heads than are kept", 200, 2, DECODE_THREADS, 20 << 16 | 1, 128 | 4 << 8},
	{"decode_attend", "pages of 64", 391, 2, DECODE_THREADS, 4 << 16 | 2, 128 | 6 << 8},
	{"decode_attend", "Qwen2-7B, 2112 keys", 2112, 132, DECODE_THREADS, 28 << 16 | 4, 128 | 5 << 8},
	{"decode_attend", "Qwen2-7B, 30001 keys", 30001, 132, DECODE_THREADS, 28 << 16 | 4, 128 | 4 << 8},
	{"decode_token", "tiny", 3, 3, DECODE_THREADS, DECODE_BED_TINY, 14},
	{"decode_token", "tiny, normed heads, tied", 2, 2, DECODE_THREADS, DECODE_BED_TINY_QWEN3, 70},
	{"decode_token", "tiny, adapters", 3, 3, DECODE_THREADS, DECODE_BED_TINY_LORA, 63},
	{"decode_token", "one block", 1, 1, DECODE_THREADS, DECODE_BED_TINY, 0},
	{"decode_token", "warps without rows", 2, 40, DECODE_THREADS, DECODE_BED_TINY_QWEN3, 3},
	{"decode_token_e4m3", "tiny", 3, 3, DECODE_THREADS, DECODE_BED_TINY_E4M3, 14},
	{"decode_token_e4m3", "one block", 1, 1, DECODE_THREADS, DECODE_BED_TINY_E4M3, 0},
	{"decode_token_e4m3", "warps without rows", 2, 40, DECODE_THREADS, DECODE_BED_TINY_E4M3, 3},
	{"decode_token_e4m3", "a whole device", 3, 132, DECODE_THREADS, DECODE_BED_SMALL_E4M3, 300},
	{"decode_token", "a whole device", 3, 132, DECODE_THREADS, DECODE_BED_SMALL, 300},
};

static bool is_big(const struct kernel_case *c)
{
	return c->count * (c->entry[7] == 'l' ? c->p0 : 1) > 1 << 20 || c->count > 20000 || c->blocks > 100;
}

static uint64_t put_bf16(struct decode_bed *b, uint64_t count, float scale, float centre)
{
	return decode_bed_random(b, count, scale, centre, true);
}

static uint64_t put_f32(struct decode_bed *b, uint64_t count, float scale)
{
	return decode_bed_random(b, count, scale, 0, false);
}

/* Together, where the grid waits for itself. */
static enum status run(struct kit *k, const struct kernel_case *c, const void *args, uint32_t shared, struct error *err)
{
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, "decode", c->entry, err);

	if (!st && c->entry[7] == 't')
		st = gpu_launch_together(kernel, k->stream, c->blocks, c->threads, shared, args, err);
	else if (!st)
		st = gpu_launch_1d(kernel, k->stream, c->blocks, c->threads, shared, args, err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

struct linear_places {
	uint64_t w, w_scale, bias, a, b[DECODE_ADAPTERS], x, norm, residual, out, u;
};

static void linear_args(struct decode_linear_args *a, const struct kernel_case *c, const struct linear_places *p, uint64_t base)
{
	const uint32_t rank = c->p1 >> 8 & 0xff, out = c->p0, kind = c->p1 & LINEAR_KIND;
	const uint32_t adapters = !rank ? 0 : kind == DECODE_PLAIN ? 3 : kind == DECODE_SWIGLU ? 2 : 1;

	*a = (struct decode_linear_args){
		.map = {.w = base + p->w,
			.w_scale = c->p1 & LINEAR_E4M3 ? base + p->w_scale : 0,
			.bias = c->p1 & LINEAR_BIAS ? base + p->bias : 0,
			.a = base + p->a,
			.out = out,
			.in = (uint32_t)c->count,
			.ld = (uint32_t)c->count + (c->p1 & LINEAR_LD ? 16 : 0),
			.adapters = adapters,
			.rank = rank,
			.scale = 0.5f},
		.x = base + p->x,
		.norm = c->p1 & LINEAR_NORM ? base + p->norm : 0,
		.residual = base + p->residual,
		.out = base + p->out,
		.u = base + p->u,
		.eps = 1e-6f,
		.kind = kind,
	};
	/* Equal parts of the rows, the first a row short of its own: rows without an adapter are there too. */
	for (uint32_t i = 0; i < adapters; i++) {
		a->map.begin[i] = out * i / adapters + (i == 0);
		a->map.end[i] = out * (i + 1) / adapters;
		a->map.b[i] = base + p->b[i];
	}
}

/* Of the map and of its A. */
static uint32_t linear_work(const struct decode_map *m, uint32_t blocks)
{
	const uint32_t map = decode_work(m->out, m->w_scale ? m->in / 2 : m->in, blocks), a = decode_work(m->adapters * m->rank, m->in, blocks);

	return map > a ? map : a;
}

static enum status linear(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct decode_bed b = {.seed = k->seed};
	const uint32_t rank = c->p1 >> 8 & 0xff;
	const bool e4m3 = c->p1 & LINEAR_E4M3;
	const float scale = 1 / sqrtf((float)c->count);
	struct linear_places p = {.w = e4m3 ? decode_bed_e4m3(&b, c->p0 * (c->count + 16))
					    : put_bf16(&b, c->p0 * (c->count + 16), scale, 0),
				  .w_scale = decode_bed_random(&b, c->p0, scale / 800, scale / 400, false),
				  .bias = put_bf16(&b, c->p0, 1, 0),
				  .a = put_bf16(&b, (uint64_t)3 * rank * c->count, scale, 0),
				  .x = put_f32(&b, c->count, 2),
				  .norm = put_bf16(&b, c->count, 0.5f, 1),
				  .residual = put_f32(&b, c->p0, 1)};
	struct decode_linear_args host, device;
	enum status st;

	for (int i = 0; i < DECODE_ADAPTERS; i++)
		p.b[i] = put_bf16(&b, (uint64_t)c->p0 * rank, 1, 0);
	/* E4M3 weights multiply a vector in FP16 */
	p.out = decode_bed_out(&b, c->p0, e4m3 ? 1e-3 : 1e-5, sizeof(float));
	p.u = decode_bed_out(&b, (uint64_t)3 * rank, 1e-5, sizeof(float));
	st = decode_bed_open(&b, k, err);
	linear_args(&host, c, &p, (uintptr_t)b.host);
	linear_args(&device, c, &p, b.device.data);
	device.ring = decode_front(NULL, linear_work(&host.map, c->blocks), (3 * rank + 3) / 4 * 4);
	device.depth = decode_bed_depth(device.ring, 1 + c->p0 % 4);
	for (int down = host.map.adapters > 0; !st && down >= 0; down--) {
		const uint32_t kind = c->p1 & LINEAR_KIND;

		host.kind = device.kind = down ? DECODE_DOWN : kind;
		ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, &host);
		st = run(k, c, &device, decode_shared(device.ring, device.depth), err);
	}
	if (!st)
		st = decode_bed_compare(&b, k, c->entry, err);
	decode_bed_close(&b, k);
	return st;
}

static enum status attend(struct kit *k, const struct kernel_case *c, struct error *err)
{
	const uint32_t heads = c->p0 >> 16, kv_heads = c->p0 & 0xffff, dim = c->p1 & 0xfe;
	const struct decode_pages pages = {.bits = c->p1 >> 8, .keys = (uint32_t)c->count, .count = 1};
	struct decode_bed b = {.seed = k->seed};
	const uint64_t qkv = put_f32(&b, (uint64_t)(heads + 2 * kv_heads) * dim, 2);
	const uint64_t angles = put_f32(&b, c->count * dim, 1);
	const uint64_t q_norm = put_bf16(&b, dim, 0.5f, 1), k_norm = put_bf16(&b, dim, 0.5f, 1);
	const uint64_t row = (uint64_t)2 * kv_heads * dim;
	/* One row is new; a number at a rounding's edge may go either way. */
	const uint64_t kv = decode_bed_cache(&b, &pages, row), page = decode_bed_table(&b, &pages);
	const uint64_t o = decode_bed_out(&b, (uint64_t)heads * dim, 2e-4, sizeof(float));
	const uint64_t part = decode_bed_scratch(&b, (uint64_t)DECODE_SPLITS * heads * (dim + 2) * sizeof(float));
	const uint64_t arrived = decode_bed_zeros(&b, kv_heads * sizeof(uint32_t));
	enum status st = decode_bed_open(&b, k, err);

	if (!st) {
		decode_bed_set_pages(&b, &pages, page, &kv, 1, row);
		st = decode_bed_copy(&b, k, err);
	}
	for (int on_device = 0; !st && on_device < 2; on_device++) {
		const uint64_t base = on_device ? b.device.data : (uintptr_t)b.host;
		const struct decode_attend_args a = {
			.qkv = base + qkv,
			.cos_sin = base + angles,
			.q_norm = c->p1 & 1 ? base + q_norm : 0,
			.k_norm = c->p1 & 1 ? base + k_norm : 0,
			.kv = base + kv,
			.page = base + page,
			.o = base + o,
			.part = base + part,
			.arrived = base + arrived,
			.heads = {heads, kv_heads, dim, 1e-6f, 1 / sqrtf((float)dim), 0},
			.position = (uint32_t)c->count - 1,
			.page_bits = pages.bits};

		if (on_device)
			st = run(k, c, &a, decode_front(&a.heads, 0, 0), err);
		else
			ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, &a);
	}
	if (!st)
		st = decode_bed_compare(&b, k, c->entry, err);
	decode_bed_close(&b, k);
	return st;
}

static enum status token(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct decode_bed b = {.seed = k->seed};
	struct decode_bed_model m;
	struct decode_token_args host, device;
	enum status st;

	decode_bed_model(&b, &m, c->p0, c->p1, (uint32_t)c->count);
	st = decode_bed_open(&b, k, err);
	if (!st)
		st = decode_bed_point(&b, &m, k, &host, &device, err);
	for (uint32_t i = 0; !st && i < m.count; i++) {
		st = decode_bed_lists(&b, &m, k, i, err);
		if (st)
			break;
		ref_run(c->entry, (struct ref_grid){c->blocks, c->threads}, &host);
		st = run(k, c, &device, decode_bed_shared(&m, c->blocks, &device), err);
	}
	if (!st)
		st = decode_bed_compare(&b, k, c->entry, err);
	decode_bed_close(&b, k);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	if (is_big(c) && k->count_max < UINT64_MAX)
		return error_set(err, STATUS_UNSUPPORTED, "too large for --small");
	switch (c->entry[7]) {
	case 'l':
		return linear(k, c, err);
	case 'a':
		return attend(k, c, err);
	default:
		return token(k, c, err);
	}
}

static void test(struct kit *k)
{
	kit_cases(k, &group_decode, one);
}

const struct kernel_group group_decode = {
	.name = "decode", .cases = cases, .count = COUNT(cases), .test = test, .time = decode_time};
