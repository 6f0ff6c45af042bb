/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/matmul/skinny_adapters.h"
#include "gpu/device/tensor_map.h"
#include "gpu/matmul/skinny_internal.h"
#include "kernel/matmul/skinny_adapters.h"

enum { STATE_BYTES = 256 };

enum status skinny_adapters_open(struct skinny *s, struct gpu_stream *stream, struct error *err)
{
	enum status st = s->state ? STATUS_OK : gpu_alloc(s->device, &s->state, STATE_BYTES, err);

	return st ? st : gpu_stream_fill32(stream, s->state, 0, STATE_BYTES / 4, err);
}

/* Whether both halves of every tile belong to the same part. */
static bool are_alike(const struct skinny_problem *p, const struct skinny_adapters *ad)
{
	for (unsigned i = 0; i < ad->parts && !p->swiglu; i++)
		if (ad->begin[i] % SKINNY_TILE ||
		    (ad->count[i] % SKINNY_TILE && ad->begin[i] + ad->count[i] < p->outputs))
			return false;
	return !p->swiglu;
}

static enum status check_parts(const struct skinny_problem *p, const struct skinny_adapters *ad,
			       struct error *err)
{
	const uint32_t rows = p->swiglu ? 2 * p->outputs : p->outputs;
	uint32_t end = 0;

	for (unsigned i = 0; i < ad->parts; i++) {
		const uint32_t begin = ad->begin[i], count = ad->count[i];

		if (begin < end || begin > rows || !count || count > rows - begin)
			return error_set(err, STATUS_BUG,
					 "part %u of adapters has rows %u to %u of a GEMM of %u", i, begin,
					 begin + count, rows);
		end = begin + count;
		/* with SwiGLU, parts begin where tiles do */
		if (p->swiglu ? begin != 0 && begin != p->outputs
			      : begin % SKINNY_GROUP || (count % SKINNY_GROUP && end < rows))
			return error_set(err, STATUS_UNSUPPORTED,
					 "parts of adapters begin at multiples of %d outputs, not at %u",
					 SKINNY_GROUP, p->swiglu || begin % SKINNY_GROUP ? begin : end);
	}
	return STATUS_OK;
}

enum status skinny_adapters_check(const struct skinny_problem *p, const struct skinny_adapters *ad,
				  struct error *err)
{
	enum status st = skinny_check(p, err);

	if (st)
		return st;
	if (skinny_kind_of(p) == SKINNY_KIND_MIXED)
		return error_set(err, STATUS_UNSUPPORTED,
				 "a GEMM with adapters has activations of the weights' type");
	if (!ad->parts || ad->parts > SKINNY_PARTS_MOST || !ad->rank || ad->rank % SKINNY_RANK_UNIT ||
	    ad->width % ad->rank)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"a GEMM has 1 to %d parts with adapters, whose ranks are equal and multiples "
			"of %d, not %u parts of rank %u",
			SKINNY_PARTS_MOST, SKINNY_RANK_UNIT, ad->parts, ad->rank);
	if ((ad->a | ad->b | ad->u | ad->x) % 16 || ad->adapter % 4 || ad->row_a % 8 || ad->row_b % 8 ||
	    ad->row_u % 8 || ad->row_x % 8)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"a matrix of adapters, or one of its rows, does not begin at a multiple of 16 bytes");
	return check_parts(p, ad, err);
}

static struct gpu_tensor matrix(gpu_ptr data, uint64_t columns, uint64_t rows, uint64_t row_step)
{
	return (struct gpu_tensor){
		.data = data,
		.element_bytes = 2,
		.columns = columns,
		.rows = rows,
		.heads = 1,
		.batches = 1,
		.row_step = row_step,
		.head_step = row_step * rows,
		.batch_step = row_step * rows,
	};
}

static enum status make_maps(struct skinny *s, const struct skinny_problem *p,
			     const struct skinny_adapters *ad, unsigned size, struct skinny_adapters_args *a,
			     struct error *err)
{
	const struct gpu_tensor down = matrix(ad->a, p->k, a->a_rows, ad->row_a);
	const struct gpu_tensor x = matrix(ad->x, p->k, p->rows, ad->row_x);
	const struct gpu_tensor u = matrix(ad->u, a->a_rows, p->rows, ad->row_u);
	struct gpu_tensor up = matrix(ad->b, ad->width, 0, ad->row_b);
	enum status st;

	for (unsigned i = 0; i < ad->parts; i++)
		up.rows += ad->count[i];
	up.head_step = up.batch_step = up.rows * up.row_step;
	st = gpu_tensor_map(s->device, &a->a_map, &down, SKINNY_GROUP, err);
	if (!st)
		st = gpu_tensor_map(s->device, &a->b_map, &up, SKINNY_GROUP, err);
	if (!st)
		st = gpu_tensor_map(s->device, &a->u_map, &u, size, err);
	return st ? st : gpu_tensor_map(s->device, &a->x_map, &x, size, err);
}

static uint32_t up_to(uint64_t count, uint32_t unit)
{
	return (uint32_t)((count + unit - 1) / unit);
}

enum status skinny_adapters_enqueue(struct skinny *s, const struct skinny_problem *p,
				    const struct skinny_adapters *ad, const struct skinny_choice *c,
				    bool overlap, struct gpu_stream *stream, struct error *err)
{
	struct skinny_adapters_args a = {
		.u = ad->u,
		.adapter = ad->adapter,
		.w_scale = p->w_scale,
		.x_scale = p->x_scale,
		.state = s->state,
		.row_u = (int64_t)ad->row_u,
		.a_rows = ad->parts * ad->width,
		.width = ad->width,
		.rank = ad->rank,
		.parts = ad->parts,
	};
	enum status st = skinny_adapters_check(p, ad, err);
	struct skinny_launch l;

	if (!st && !s->state)
		st = error_set(err, STATUS_BUG, "GEMMs with adapters have no counts");
	if (!st)
		st = skinny_prepare(s, p, c, true, &a.base, &l, err);
	if (!st)
		st = make_maps(s, p, ad, l.size, &a, err);
	if (st)
		return st;
	a.base.w_scale = a.base.x_scale = 0; /* sums are scaled before those of adapters are added */
	for (unsigned i = 0; i < ad->parts; i++) {
		a.begin[i] = ad->begin[i];
		a.count[i] = ad->count[i];
	}
	a.apart = !are_alike(p, ad);
	a.tail_steps = up_to(ad->width, SKINNY_TAIL) * (a.apart ? 2 : 1);
	a.shrink_units = up_to(a.a_rows, SKINNY_TILE);
	a.shrink_steps = up_to(p->k, SKINNY_TAIL * c->cluster);
	return skinny_launch(&l, a.shrink_units + a.base.units, overlap, &a, stream, err);
}
