/* SPDX-License-Identifier: Apache-2.0 */
/* The fake cuDNN's graphs, run one operation after the other on host memory. */
#include "cudnn_fake.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ref_number.h"
#include "vector.h"

enum { TENSORS_MAX = 96 };

/* A tensor's numbers while a graph runs: dense, [4] nested. */
struct value {
	const struct descriptor *tensor, *ragged;
	cudnnDataType_t type;
	int64_t dim[4], stride[4];
	float *x;
};

struct run {
	const struct attribute *uids, *pointers;
	struct value values[TENSORS_MAX];
	unsigned count;
	cudnnStatus_t code;
};

static const int64_t *ints(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	return fake_attribute(d, name)->data;
}

static int64_t size_of(const int64_t dim[4])
{
	return dim[0] * dim[1] * dim[2] * dim[3];
}

static void *pointer_of(struct run *r, const struct descriptor *tensor)
{
	int64_t uid = fake_int(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);

	for (int64_t i = 0; i < r->uids->count; i++)
		if (((const int64_t *)r->uids->data)[i] == uid)
			return ((void **)r->pointers->data)[i];
	r->code = fake_fail(CUDNN_STATUS_BAD_PARAM, "a tensor has no address");
	return NULL;
}

static double load(cudnnDataType_t type, const void *from, uint64_t at)
{
	switch (type) {
	case CUDNN_DATA_HALF:
		return ref_number_load(ATTENTION_F16, from, at);
	case CUDNN_DATA_BFLOAT16:
		return ref_number_load(ATTENTION_BF16, from, at);
	case CUDNN_DATA_FP8_E4M3:
		return ref_number_load(ATTENTION_E4M3, from, at);
	case CUDNN_DATA_INT32:
		return ((const int32_t *)from)[at];
	default:
		return (double)((const float *)from)[at];
	}
}

static void store(cudnnDataType_t type, void *to, uint64_t at, float value)
{
	switch (type) {
	case CUDNN_DATA_HALF:
		ref_number_store(ATTENTION_F16, to, at, (double)value);
		break;
	case CUDNN_DATA_BFLOAT16:
		ref_number_store(ATTENTION_BF16, to, at, (double)value);
		break;
	case CUDNN_DATA_FP8_E4M3:
		ref_number_store(ATTENTION_E4M3, to, at, (double)value);
		break;
	default:
		((float *)to)[at] = value;
		break;
	}
}

static bool is_narrow(cudnnDataType_t type)
{
	return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_FP8_E4M3;
}

/* Virtual tensors of few bits are rounded as stored ones are. */
static float rounded(cudnnDataType_t type, float value)
{
	union {
		uint16_t bits;
		float wide; /* load and store take any type, so there is room for the widest */
	} room = {0};

	if (!is_narrow(type) || !isfinite(value))
		return value;
	store(type, &room, 0, value);
	return (float)load(type, &room, 0);
}

/* Where element (b, h, i, j) lies, < 0: beyond its sequence. Of a transposed tensor rows are what has not
 * stride 1. */
static int64_t place(struct run *r, const struct descriptor *ragged, const int64_t stride[4], int64_t b,
		     int64_t h, int64_t i, int64_t j)
{
	bool transposed = stride[2] == 1 && stride[3] != 1;
	int64_t row = transposed ? j : i, row_stride = transposed ? stride[3] : stride[2];
	const int32_t *starts;

	if (!ragged)
		return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
	starts = pointer_of(r, ragged);
	if (!starts || row >= (starts[b + 1] - starts[b]) / row_stride)
		return -1;
	return starts[b] + h * stride[1] + i * stride[2] + j * stride[3];
}

typedef void visit(struct run *r, struct value *v, int64_t at, int64_t b, int64_t h, int64_t i, int64_t j,
		   void *arg);

static void each(struct run *r, struct value *v, visit *what, void *arg)
{
	int64_t at = 0;

	for (int64_t b = 0; b < v->dim[0]; b++)
		for (int64_t h = 0; h < v->dim[1]; h++)
			for (int64_t i = 0; i < v->dim[2]; i++)
				for (int64_t j = 0; j < v->dim[3]; j++)
					what(r, v, at++, b, h, i, j, arg);
}

static void load_one(struct run *r, struct value *v, int64_t at, int64_t b, int64_t h, int64_t i, int64_t j,
		     void *from)
{
	int64_t where = place(r, v->ragged, v->stride, b, h, i, j);

	v->x[at] = where < 0 ? 0.0F : (float)load(v->type, from, (uint64_t)where);
}

static void store_one(struct run *r, struct value *v, int64_t at, int64_t b, int64_t h, int64_t i, int64_t j,
		      void *to)
{
	int64_t where = place(r, v->ragged, v->stride, b, h, i, j);

	if (where >= 0)
		store(v->type, to, (uint64_t)where, v->x[at]);
}

static struct value *add(struct run *r, const struct descriptor *tensor)
{
	struct value *v = &r->values[r->count];

	*v = (struct value){.tensor = tensor,
			    .ragged = fake_part(tensor, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC),
			    .type = fake_word(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE)};
	memcpy(v->dim, ints(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS), sizeof(v->dim));
	memcpy(v->stride, ints(tensor, CUDNN_ATTR_TENSOR_STRIDES), sizeof(v->stride));
	v->x = calloc((size_t)size_of(v->dim), sizeof(*v->x));
	if (!v->x || r->count + 1 == TENSORS_MAX)
		abort();
	r->count++;
	return v;
}

/* Of a tensor that was written in this run, or lies in memory. NULL: there is none. */
static struct value *value_of(struct run *r, const struct descriptor *tensor)
{
	struct value *v;
	void *from;

	if (!tensor)
		return NULL;
	for (unsigned i = 0; i < r->count; i++)
		if (r->values[i].tensor == tensor)
			return &r->values[i];
	from = pointer_of(r, tensor);
	v = add(r, tensor);
	if (from)
		each(r, v, load_one, from);
	return v;
}

static void written(struct run *r, struct value *v)
{
	const int64_t size = size_of(v->dim);
	void *to;

	for (int64_t i = 0; i < size && is_narrow(v->type); i++)
		v->x[i] = rounded(v->type, v->x[i]);
	if (fake_is_virtual(v->tensor))
		return;
	to = pointer_of(r, v->tensor);
	if (to)
		each(r, v, store_one, to);
}

static const float *spot(const struct value *v, int64_t b, int64_t h, int64_t i, int64_t j)
{
	const int64_t *d = v->dim;

	b = d[0] == 1 ? 0 : b;
	h = d[1] == 1 ? 0 : h;
	i = d[2] == 1 ? 0 : i;
	j = d[3] == 1 ? 0 : j;
	return &v->x[((b * d[1] + h) * d[2] + i) * d[3] + j];
}

static float at(const struct value *v, int64_t b, int64_t h, int64_t i, int64_t j)
{
	return *spot(v, b, h, i, j);
}

/* The batch's own size in place of `size`. */
static int64_t overridden(const struct value *lengths, int64_t b, int64_t size)
{
	return lengths ? (int64_t)lengths->x[b] : size;
}

struct product {
	const struct value *a, *b, *m, *n, *k;
};

VECTOR static void add_scaled(float *restrict sum, const float *restrict row, float by, int64_t columns)
{
	for (int64_t j = 0; j < columns; j++)
		sum[j] += by * row[j];
}

/* One row of the product: all its columns' sums at once, so that the compiler makes vectors, each added up by
 * ascending depth. */
static void multiply_row(struct value *c, const struct product *p, int64_t b, int64_t h, int64_t i)
{
	const int64_t head = h / (p->a->dim[1] / p->b->dim[1]), depth = overridden(p->k, b, p->a->dim[3]);
	const int64_t wanted = i < overridden(p->m, b, c->dim[2]) ? overridden(p->n, b, c->dim[3]) : 0;
	const int64_t columns = wanted < c->dim[3] ? wanted : c->dim[3];
	const float *x = spot(p->a, b, h, i, 0), *y = spot(p->b, b, head, 0, 0);
	const int64_t x_step = p->a->dim[3] == 1 ? 0 : 1, y_step = p->b->dim[2] == 1 ? 0 : p->b->dim[3];
	float *sum = c->x + ((b * c->dim[1] + h) * c->dim[2] + i) * c->dim[3];

	memset(sum, 0, (size_t)c->dim[3] * sizeof(*sum));
	for (int64_t d = 0; d < depth && p->b->dim[3] > 1; d++)
		add_scaled(sum, y + d * y_step, x[d * x_step], columns);
	for (int64_t j = 0; j < columns && p->b->dim[3] == 1; j++)
		for (int64_t d = 0; d < depth; d++)
			sum[j] += x[d * x_step] * y[d * y_step];
}

static void run_matmul(struct run *r, const struct descriptor *op)
{
	struct product p = {
		.a = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC)),
		.b = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC)),
		.m = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC)),
		.n = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC)),
		.k = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC)),
	};
	struct value *c = add(r, fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC));

	for (int64_t b = 0; b < c->dim[0]; b++)
		for (int64_t h = 0; h < c->dim[1]; h++)
			for (int64_t i = 0; i < c->dim[2]; i++)
				multiply_row(c, &p, b, h, i);
	written(r, c);
}

struct pointwise {
	cudnnPointwiseMode_t mode;
	int64_t axis;
	const struct value *x, *b, *t;
};

static float apply(const struct pointwise *p, float x, float b, float t)
{
	switch (p->mode) {
	case CUDNN_POINTWISE_ADD:
		return x + b;
	case CUDNN_POINTWISE_SUB:
		return x - b;
	case CUDNN_POINTWISE_MUL:
		return x * b;
	case CUDNN_POINTWISE_DIV:
		return x / b;
	case CUDNN_POINTWISE_EXP:
		return expf(x);
	case CUDNN_POINTWISE_LOG:
		return logf(x);
	case CUDNN_POINTWISE_IDENTITY:
		return x;
	case CUDNN_POINTWISE_CMP_GT:
		return x > b;
	case CUDNN_POINTWISE_CMP_GE:
		return x >= b;
	case CUDNN_POINTWISE_CMP_LT:
		return x < b;
	case CUDNN_POINTWISE_LOGICAL_AND:
		return x != 0.0F && b != 0.0F;
	case CUDNN_POINTWISE_BINARY_SELECT:
		return t != 0.0F ? x : b;
	default:
		return NAN;
	}
}

/* A row of an operand, which one element may stand for; none is zeros. */
struct row {
	const float *x;
	int64_t step;
};

static struct row row_of(const struct value *v, int64_t b, int64_t h, int64_t i)
{
	static const float zero;

	return v ? (struct row){spot(v, b, h, i, 0), v->dim[3] == 1 ? 0 : 1} : (struct row){&zero, 0};
}

static void apply_to_row(const struct pointwise *p, struct value *y, int64_t b, int64_t h, int64_t i)
{
	const struct row rx = row_of(p->x, b, h, i), rb = row_of(p->b, b, h, i), rt = row_of(p->t, b, h, i);
	float *out = &y->x[((b * y->dim[1] + h) * y->dim[2] + i) * y->dim[3]];

	for (int64_t j = 0; j < y->dim[3]; j++) {
		if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
			out[j] = (float)(p->axis == 2 ? i : j);
		else
			out[j] = apply(p, rx.x[j * rx.step], rb.x[j * rb.step], rt.x[j * rt.step]);
	}
}

static void run_pointwise(struct run *r, const struct descriptor *op)
{
	const struct descriptor *how = fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	struct pointwise p = {
		.mode = fake_word(how, CUDNN_ATTR_POINTWISE_MODE),
		.axis = fake_int(how, CUDNN_ATTR_POINTWISE_AXIS, 0),
		.x = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)),
		.b = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)),
		.t = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC)),
	};
	struct value *y = add(r, fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));

	for (int64_t b = 0; b < y->dim[0]; b++)
		for (int64_t h = 0; h < y->dim[1]; h++)
			for (int64_t i = 0; i < y->dim[2]; i++)
				apply_to_row(&p, y, b, h, i);
	written(r, y);
}

struct reduction {
	cudnnReduceTensorOp_t op;
	struct value *y;
};

static void reduce_one(struct run *r, struct value *x, int64_t where, int64_t b, int64_t h, int64_t i,
		       int64_t j, void *arg)
{
	const struct reduction *p = arg;
	const int64_t *dx = x->dim, *dy = p->y->dim;
	int64_t to = ((b * dy[0] / dx[0] * dy[1] + h * dy[1] / dx[1]) * dy[2] + i * dy[2] / dx[2]) * dy[3] +
		     j * dy[3] / dx[3];
	float *y = &p->y->x[to], v = x->x[where];

	(void)r;
	if (p->op == CUDNN_REDUCE_TENSOR_ADD)
		*y += v;
	else
		*y = fmaxf(*y, p->op == CUDNN_REDUCE_TENSOR_AMAX ? fabsf(v) : v);
}

static void run_reduction(struct run *r, const struct descriptor *op)
{
	struct value *x = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
	struct reduction p = {
		.op = fake_word(fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC),
				CUDNN_ATTR_REDUCTION_OPERATOR),
		.y = add(r, fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)),
	};

	for (int64_t i = 0; p.op == CUDNN_REDUCE_TENSOR_MAX && i < size_of(p.y->dim); i++)
		p.y->x[i] = -INFINITY;
	each(r, x, reduce_one, &p);
	written(r, p.y);
}

/* The same memory with other strides: of a virtual tensor, its packed numbers. */
static void reshape_one(struct run *r, struct value *y, int64_t where, int64_t b, int64_t h, int64_t i,
			int64_t j, void *arg)
{
	const int64_t *stride = y->stride;
	const struct value *x = arg;
	int64_t from;

	if (fake_is_virtual(x->tensor)) {
		y->x[where] = x->x[b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3]];
		return;
	}
	from = place(r, x->ragged, stride, b, h, i, j);
	y->x[where] = from < 0 ? 0.0F : (float)load(x->type, pointer_of(r, x->tensor), (uint64_t)from);
}

static void run_reshape(struct run *r, const struct descriptor *op)
{
	struct value *x = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
	struct value *y = add(r, fake_part(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));

	each(r, y, reshape_one, x);
	written(r, y);
}

struct fused {
	const struct value *q, *k, *v;
	struct value *o, *lse;
	float scale;
};

static void fused_row(const struct fused *f, int64_t b, int64_t h, int64_t i)
{
	int64_t head = h / (f->q->dim[1] / f->k->dim[1]), keys = f->k->dim[2], depth = f->q->dim[3];
	float *share = calloc((size_t)keys, sizeof(*share)), most = -INFINITY, sum = 0.0F;

	for (int64_t j = 0; share && j < keys; j++) {
		for (int64_t d = 0; d < depth; d++)
			share[j] += f->scale * at(f->q, b, h, i, d) * at(f->k, b, head, j, d);
		most = fmaxf(most, share[j]);
	}
	for (int64_t j = 0; share && j < keys; j++)
		sum += share[j] = expf(share[j] - most);
	for (int64_t d = 0; share && d < depth; d++) {
		float *o = &f->o->x[((b * f->o->dim[1] + h) * f->o->dim[2] + i) * depth + d];

		for (int64_t j = 0; j < keys; j++)
			*o += share[j] / sum * at(f->v, b, head, j, d);
	}
	if (f->lse)
		f->lse->x[(b * f->o->dim[1] + h) * f->o->dim[2] + i] = most + logf(sum);
	free(share);
}

static void run_fused(struct run *r, const struct descriptor *op)
{
	const struct descriptor *scale = fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
	const struct descriptor *lse = fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC);
	struct fused f = {
		.q = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC)),
		.k = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC)),
		.v = value_of(r, fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC)),
		.o = add(r, fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC)),
		.lse = lse ? add(r, lse) : NULL,
		.scale = scale ? value_of(r, scale)->x[0] : 1.0F,
	};

	for (int64_t b = 0; b < f.o->dim[0]; b++)
		for (int64_t h = 0; h < f.o->dim[1]; h++)
			for (int64_t i = 0; i < f.o->dim[2]; i++)
				fused_row(&f, b, h, i);
	written(r, f.o);
	if (f.lse)
		written(r, f.lse);
}

static void run_op(struct run *r, const struct descriptor *op)
{
	switch (op->type) {
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		run_matmul(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
		run_pointwise(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
		run_reduction(r, op);
		break;
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		run_reshape(r, op);
		break;
	default:
		run_fused(r, op);
		break;
	}
}

/* In the last tensor that was written: O, or dQ. */
static void spoil(struct run *r, int execution)
{
	int flip = fake_staged("flip"), nan = fake_staged("nan");
	struct value *last = NULL;

	for (unsigned i = 0; i < r->count; i++)
		if (!fake_is_virtual(r->values[i].tensor) && !fake_is_by_value(r->values[i].tensor) &&
		    r->values[i].dim[3] > 1)
			last = &r->values[i];
	if (!last || ((!flip || execution < flip) && (!nan || execution < nan)))
		return;
	last->x[0] = nan ? NAN : last->x[0] + 0.1F;
	if (nan)
		memset(pointer_of(r, last->tensor), 0xff, 2);
	else
		written(r, last);
}

cudnnStatus_t fake_run(const struct descriptor *graph, const struct descriptor *pack, int execution)
{
	const struct attribute *ops = fake_attribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	struct run r = {.uids = fake_attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
			.pointers = fake_attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)};

	for (int64_t i = 0; i < ops->count && !r.code; i++)
		run_op(&r, ((struct descriptor **)ops->data)[i]);
	if (!r.code)
		spoil(&r, execution);
	for (unsigned i = 0; i < r.count; i++)
		free(r.values[i].x);
	return r.code;
}
