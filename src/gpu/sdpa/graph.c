/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a cuDNN operation graph: tensors, GEMMs, pointwise operations and reductions. */
#include "gpu/sdpa/internal.h"

#define ALIGN_BYTES 16

enum status sdpa_desc_create(struct sdpa *s, cudnnBackendDescriptor_t *desc,
			     cudnnBackendDescriptorType_t type, struct error *err)
{
	*desc = NULL;
	return DNN_CALL(s, err, desc_create, type, desc);
}

void sdpa_desc_destroy(struct sdpa *s, cudnnBackendDescriptor_t *desc)
{
	if (*desc)
		s->dnn.desc_destroy(*desc);
	*desc = NULL;
}

enum status sdpa_set_desc(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendDescriptor_t value, struct error *err)
{
	return DNN_CALL(s, err, desc_set, desc, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

enum status sdpa_set_int(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			 int64_t value, struct error *err)
{
	return DNN_CALL(s, err, desc_set, desc, name, CUDNN_TYPE_INT64, 1, &value);
}

enum status sdpa_set_word(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendAttributeType_t type, unsigned value, struct error *err)
{
	return DNN_CALL(s, err, desc_set, desc, name, type, 1, &value);
}

/* Adds a descriptor that is destroyed with the graph. Returns NULL once the graph has failed. */
static cudnnBackendDescriptor_t add_desc(struct sdpa_graph *g, cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t desc = NULL;

	if (!g->st && g->desc_count == SDPA_DESCS_MAX)
		g->st = error_set(g->err, STATUS_BUG, "an attention graph has too many descriptors");
	if (g->st)
		return NULL;
	g->st = sdpa_desc_create(g->s, &desc, type, g->err);
	if (desc)
		g->descs[g->desc_count++] = desc;
	return desc;
}

static void put_desc(struct sdpa_graph *g, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
		     cudnnBackendDescriptor_t value)
{
	if (!g->st)
		g->st = sdpa_set_desc(g->s, desc, name, value, g->err);
}

static void put_tensor(struct sdpa_graph *g, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
		       const struct sdpa_tensor *t)
{
	if (t)
		put_desc(g, desc, name, t->desc);
}

static void put_ints(struct sdpa_graph *g, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
		     int64_t count, const int64_t *values)
{
	if (!g->st)
		g->st = DNN_CALL(g->s, g->err, desc_set, desc, name, CUDNN_TYPE_INT64, count, values);
}

static void put_word(struct sdpa_graph *g, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
		     cudnnBackendAttributeType_t type, unsigned value)
{
	if (!g->st)
		g->st = sdpa_set_word(g->s, desc, name, type, value, g->err);
}

static void put_flag(struct sdpa_graph *g, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name)
{
	bool yes = true;

	if (!g->st)
		g->st = DNN_CALL(g->s, g->err, desc_set, desc, name, CUDNN_TYPE_BOOLEAN, 1, &yes);
}

static void finalize(struct sdpa_graph *g, cudnnBackendDescriptor_t desc)
{
	if (!g->st)
		g->st = DNN_CALL(g->s, g->err, desc_finalize, desc);
}

static void add_op(struct sdpa_graph *g, cudnnBackendDescriptor_t op)
{
	finalize(g, op);
	if (!g->st && g->op_count == SDPA_OPS_MAX)
		g->st = error_set(g->err, STATUS_BUG, "an attention graph has too many operations");
	if (!g->st)
		g->ops[g->op_count++] = op;
}

enum kind { REAL, VIRTUAL, BY_VALUE };

/* The id of the next tensor. Real tensors are bound to addresses by their ids. */
static int64_t next_uid(const struct sdpa_graph *g)
{
	return g->tensor_count + 1;
}

static const struct sdpa_tensor *add_tensor(struct sdpa_graph *g, enum kind kind, cudnnDataType_t type,
					    const int64_t dim[4], const int64_t stride[4],
					    const struct sdpa_tensor *ragged)
{
	struct sdpa_tensor *t = &g->tensors[g->tensor_count];
	int64_t uid = next_uid(g), alignment = ALIGN_BYTES;

	if (!g->st && g->tensor_count + 1 == SDPA_TENSORS_MAX)
		g->st = error_set(g->err, STATUS_BUG, "an attention graph has too many tensors");
	if (g->st)
		return t;
	t->ragged = ragged;
	for (int i = 0; i < 4; i++) {
		t->dim[i] = dim[i];
		t->stride[i] = stride[i];
	}
	t->desc = add_desc(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	put_word(g, t->desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
	put_ints(g, t->desc, CUDNN_ATTR_TENSOR_DIMENSIONS, 4, dim);
	put_ints(g, t->desc, CUDNN_ATTR_TENSOR_STRIDES, 4, stride);
	put_ints(g, t->desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1, &uid);
	put_ints(g, t->desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1, &alignment);
	if (kind == VIRTUAL)
		put_flag(g, t->desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
	if (kind == BY_VALUE)
		put_flag(g, t->desc, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
	put_tensor(g, t->desc, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, ragged);
	finalize(g, t->desc);
	g->tensor_count++;
	return t;
}

static struct sdpa_slot *add_slot(struct sdpa_graph *g, enum sdpa_role role)
{
	struct sdpa_slot *slot = &g->slots[g->slot_count];

	*slot = (struct sdpa_slot){.uid = next_uid(g), .role = role};
	if (!g->st && g->slot_count + 1 == SDPA_SLOTS_MAX)
		g->st = error_set(g->err, STATUS_BUG, "an attention graph has too many real tensors");
	if (!g->st)
		g->slot_count++;
	return slot;
}

const struct sdpa_tensor *sdpa_real(struct sdpa_graph *g, enum sdpa_role role, cudnnDataType_t type,
				    const int64_t dim[4], const int64_t stride[4],
				    const struct sdpa_tensor *ragged)
{
	add_slot(g, role);
	return add_tensor(g, REAL, type, dim, stride, ragged);
}

const struct sdpa_tensor *sdpa_own(struct sdpa_graph *g, uint64_t offset, cudnnDataType_t type, int64_t count)
{
	const int64_t dim[4] = {count, 1, 1, 1}, stride[4] = {1, 1, 1, 1};

	add_slot(g, SDPA_OWN)->offset = offset;
	return add_tensor(g, REAL, type, dim, stride, NULL);
}

static void pack(const int64_t dim[4], int64_t stride[4])
{
	stride[3] = 1;
	for (int i = 2; i >= 0; i--)
		stride[i] = stride[i + 1] * dim[i + 1];
}

const struct sdpa_tensor *sdpa_work(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4])
{
	uint64_t bytes = sizeof(float) * (uint64_t)(dim[0] * dim[1] * dim[2] * dim[3]);
	int64_t stride[4];

	pack(dim, stride);
	add_slot(g, SDPA_WORK)->offset = g->work_bytes;
	g->work_bytes += (bytes + 255) / 256 * 256;
	return add_tensor(g, REAL, type, dim, stride, NULL);
}

static const int64_t one[4] = {1, 1, 1, 1};

const struct sdpa_tensor *sdpa_f32(struct sdpa_graph *g, float value)
{
	add_slot(g, SDPA_F32)->value.f32 = value;
	return add_tensor(g, BY_VALUE, CUDNN_DATA_FLOAT, one, one, NULL);
}

const struct sdpa_tensor *sdpa_i32(struct sdpa_graph *g, int32_t value)
{
	add_slot(g, SDPA_I32)->value.i32 = value;
	return add_tensor(g, BY_VALUE, CUDNN_DATA_INT32, one, one, NULL);
}

const struct sdpa_tensor *sdpa_virtual(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4],
				       const int64_t *stride)
{
	int64_t packed[4];

	pack(dim, packed);
	return add_tensor(g, VIRTUAL, type, dim, stride ? stride : packed, NULL);
}

const struct sdpa_tensor *sdpa_virtual_ragged(struct sdpa_graph *g, cudnnDataType_t type,
					      const int64_t dim[4], const int64_t stride[4],
					      const struct sdpa_tensor *ragged)
{
	return add_tensor(g, VIRTUAL, type, dim, stride, ragged);
}

void sdpa_matmul(struct sdpa_graph *g, const struct sdpa_tensor *a, const struct sdpa_tensor *b,
		 const struct sdpa_tensor *c, struct sdpa_override over)
{
	cudnnBackendDescriptor_t how = add_desc(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR), op;

	put_word(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
	finalize(g, how);
	op = add_desc(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	put_desc(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, over.m);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, over.n);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, over.k);
	add_op(g, op);
}

/* axis < 0: none */
static void pointwise(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis,
		      const struct sdpa_tensor *x, const struct sdpa_tensor *b, const struct sdpa_tensor *t,
		      const struct sdpa_tensor *y)
{
	cudnnBackendDescriptor_t how = add_desc(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op;

	put_word(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
	put_word(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
	if (axis >= 0)
		put_ints(g, how, CUDNN_ATTR_POINTWISE_AXIS, 1, &axis);
	finalize(g, how);
	op = add_desc(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	put_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
	add_op(g, op);
}

void sdpa_pointwise(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute,
		    const struct sdpa_tensor *x, const struct sdpa_tensor *b, const struct sdpa_tensor *t,
		    const struct sdpa_tensor *y)
{
	pointwise(g, mode, compute, -1, x, b, t, y);
}

const struct sdpa_tensor *sdpa_apply(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t type,
				     const struct sdpa_tensor *x, const struct sdpa_tensor *b)
{
	const struct sdpa_tensor *y = sdpa_virtual(g, type, x->dim, x->stride);

	/* The operation itself is in single precision. A result of 16 or 8 bits is rounded at the end. */
	pointwise(g, mode, type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN ? type : CUDNN_DATA_FLOAT,
		  -1, x, b, NULL, y);
	return y;
}

const struct sdpa_tensor *sdpa_index(struct sdpa_graph *g, const struct sdpa_tensor *x, int64_t axis,
				     cudnnDataType_t compute)
{
	const struct sdpa_tensor *y = sdpa_virtual(g, CUDNN_DATA_INT32, x->dim, x->stride);

	pointwise(g, CUDNN_POINTWISE_GEN_INDEX, compute, axis, x, NULL, NULL, y);
	return y;
}

void sdpa_reduce(struct sdpa_graph *g, cudnnReduceTensorOp_t op_code, const struct sdpa_tensor *x,
		 const struct sdpa_tensor *y)
{
	cudnnBackendDescriptor_t how = add_desc(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR), op;

	put_word(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
	put_word(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op_code);
	finalize(g, how);
	op = add_desc(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	put_desc(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	add_op(g, op);
}

void sdpa_reshape(struct sdpa_graph *g, const struct sdpa_tensor *x, const struct sdpa_tensor *y)
{
	cudnnBackendDescriptor_t op = add_desc(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	put_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	add_op(g, op);
}

void sdpa_fused(struct sdpa_graph *g, const struct sdpa_tensor *q, const struct sdpa_tensor *k,
		const struct sdpa_tensor *v, const struct sdpa_tensor *o, const struct sdpa_tensor *lse,
		const struct sdpa_tensor *scale)
{
	cudnnBackendDescriptor_t op = add_desc(g, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);

	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, lse);
	put_tensor(g, op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale);
	add_op(g, op);
}

enum status sdpa_graph_finish(struct sdpa_graph *g)
{
	struct sdpa *s = g->s;

	g->graph = add_desc(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	if (!g->st)
		g->st = DNN_CALL(s, g->err, desc_set, g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
				 CUDNN_TYPE_HANDLE, 1, &s->handle);
	if (!g->st)
		g->st = DNN_CALL(s, g->err, desc_set, g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
				 CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)g->op_count, g->ops);
	finalize(g, g->graph);
	return g->st;
}

void sdpa_graph_release(struct sdpa_graph *g)
{
	while (g->desc_count)
		sdpa_desc_destroy(g->s, &g->descs[--g->desc_count]);
}
