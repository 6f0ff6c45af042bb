/* SPDX-License-Identifier: Apache-2.0 */
/* What the real library wants of each descriptor: attributes, their types, and shapes that fit. */
#include "cudnn_fake.h"
#include <string.h>

enum need { MUST, MAY };

struct rule {
	cudnnBackendDescriptorType_t descriptor;
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	enum need need;
	int64_t most; /* values; 1 at least */
};

enum { MANY = 256 };
#define TENSOR(op, name, need)                                                                               \
	{                                                                                                    \
		CUDNN_BACKEND_##op, CUDNN_ATTR_##name, CUDNN_TYPE_BACKEND_DESCRIPTOR, need, 1                \
	}

static const struct rule rules[] = {
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, MUST, 1},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, MUST, 4},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, MUST, 4},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, MUST, 1},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, MUST, 1},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, MAY, 1},
	{CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, MAY, 1},
	TENSOR(TENSOR_DESCRIPTOR, TENSOR_RAGGED_OFFSET_DESC, MAY),
	{CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, MUST, 1},
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_ADESC, MUST),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_BDESC, MUST),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_CDESC, MUST),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_DESC, MUST),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, MAY),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, MAY),
	TENSOR(OPERATION_MATMUL_DESCRIPTOR, OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, MAY),
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, MUST, 1},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, MUST, 1},
	{CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, MAY, 1},
	TENSOR(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_PW_DESCRIPTOR, MUST),
	TENSOR(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_XDESC, MUST),
	TENSOR(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_BDESC, MAY),
	TENSOR(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_TDESC, MAY),
	TENSOR(OPERATION_POINTWISE_DESCRIPTOR, OPERATION_POINTWISE_YDESC, MUST),
	{CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
	 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, MUST, 1},
	{CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, MUST, 1},
	TENSOR(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_DESC, MUST),
	TENSOR(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_XDESC, MUST),
	TENSOR(OPERATION_REDUCTION_DESCRIPTOR, OPERATION_REDUCTION_YDESC, MUST),
	TENSOR(OPERATION_RESHAPE_DESCRIPTOR, OPERATION_RESHAPE_XDESC, MUST),
	TENSOR(OPERATION_RESHAPE_DESCRIPTOR, OPERATION_RESHAPE_YDESC, MUST),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_QDESC, MUST),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_KDESC, MUST),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_VDESC, MUST),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_ODESC, MUST),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_STATSDESC, MAY),
	TENSOR(OPERATION_SDPA_FWD_DESCRIPTOR, OPERATION_SDPA_FWD_SCALEDESC, MAY),
	{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, MUST,
	 1},
	{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
	 CUDNN_TYPE_BACKEND_DESCRIPTOR, MUST, MANY},
	TENSOR(ENGINEHEUR_DESCRIPTOR, ENGINEHEUR_OPERATION_GRAPH, MUST),
	{CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, MUST, 1},
	TENSOR(ENGINE_DESCRIPTOR, ENGINE_OPERATION_GRAPH, MUST),
	{CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, MUST, 1},
	{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, MUST,
	 1},
	{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, MUST, 1},
	TENSOR(ENGINECFG_DESCRIPTOR, ENGINECFG_ENGINE, MUST),
	{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
	 MAY, MANY},
	{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, MUST,
	 1},
	TENSOR(EXECUTION_PLAN_DESCRIPTOR, EXECUTION_PLAN_ENGINE_CONFIG, MUST),
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, MUST,
	 MANY},
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
	 MUST, MANY},
	{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, MUST,
	 1},
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };

cudnnStatus_t fake_may_set(const struct descriptor *d, cudnnBackendAttributeName_t name,
			   cudnnBackendAttributeType_t type, int64_t count)
{
	for (int i = 0; i < RULES; i++)
		if (rules[i].descriptor == d->type && rules[i].name == name)
			return rules[i].type == type && count >= 1 && count <= rules[i].most
				       ? CUDNN_STATUS_SUCCESS
				       : fake_fail(CUDNN_STATUS_BAD_PARAM,
						   "an attribute of another type or length");
	return fake_fail(CUDNN_STATUS_BAD_PARAM, "an attribute of another descriptor");
}

static const int64_t *dims(const struct descriptor *tensor)
{
	return fake_attribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS)->data;
}

static const int64_t *strides(const struct descriptor *tensor)
{
	return fake_attribute(tensor, CUDNN_ATTR_TENSOR_STRIDES)->data;
}

bool fake_is_virtual(const struct descriptor *tensor)
{
	return fake_attribute(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

bool fake_is_by_value(const struct descriptor *tensor)
{
	return fake_attribute(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

static bool tensor_fits(const struct descriptor *d)
{
	const struct attribute *dim = fake_attribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
	const struct attribute *stride = fake_attribute(d, CUDNN_ATTR_TENSOR_STRIDES);
	bool dense = false;

	if (dim->count != 4 || stride->count != 4 || (fake_is_virtual(d) && fake_is_by_value(d)))
		return false;
	for (int i = 0; i < 4; i++) {
		if (dims(d)[i] < 1 || strides(d)[i] < 1)
			return false;
		dense |= strides(d)[i] == 1;
	}
	return dense;
}

/* A in heads of Q, B in heads of Q or fewer; C the product. */
static bool matmul_fits(const struct descriptor *op)
{
	const int64_t *a = dims(fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
	const int64_t *b = dims(fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
	const int64_t *c = dims(fake_part(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC));

	return a[0] == b[0] && a[0] == c[0] && a[1] == c[1] && a[1] % b[1] == 0 && a[2] == c[2] &&
	       a[3] == b[2] && b[3] == c[3];
}

static bool broadcasts(const struct descriptor *from, const struct descriptor *to)
{
	for (int i = 0; from && i < 4; i++)
		if (dims(from)[i] != dims(to)[i] && dims(from)[i] != 1)
			return false;
	return true;
}

static unsigned operands_of_mode(cudnnPointwiseMode_t mode)
{
	switch (mode) {
	case CUDNN_POINTWISE_EXP:
	case CUDNN_POINTWISE_LOG:
	case CUDNN_POINTWISE_IDENTITY:
	case CUDNN_POINTWISE_GEN_INDEX:
		return 1;
	case CUDNN_POINTWISE_BINARY_SELECT:
		return 3;
	default:
		return 2;
	}
}

static bool pointwise_fits(const struct descriptor *op)
{
	const struct descriptor *how = fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	const struct descriptor *y = fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
	const struct descriptor *b = fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
	const struct descriptor *t = fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
	cudnnPointwiseMode_t mode = fake_word(how, CUDNN_ATTR_POINTWISE_MODE);
	bool axis = fake_attribute(how, CUDNN_ATTR_POINTWISE_AXIS);

	return 1u + (b != NULL) + (t != NULL) == operands_of_mode(mode) &&
	       axis == (mode == CUDNN_POINTWISE_GEN_INDEX) &&
	       broadcasts(fake_part(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC), y) && broadcasts(b, y) &&
	       broadcasts(t, y);
}

static bool reduction_fits(const struct descriptor *op)
{
	const int64_t *x = dims(fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
	const int64_t *y = dims(fake_part(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));

	for (int i = 0; i < 4; i++)
		if (x[i] % y[i])
			return false;
	return true;
}

static bool reshape_fits(const struct descriptor *op)
{
	const int64_t *x = dims(fake_part(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
	const int64_t *y = dims(fake_part(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));

	return x[0] * x[1] * x[2] * x[3] == y[0] * y[1] * y[2] * y[3];
}

static bool fused_fits(const struct descriptor *op)
{
	const int64_t *q = dims(fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC));
	const int64_t *k = dims(fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC));
	const int64_t *v = dims(fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC));
	const int64_t *o = dims(fake_part(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC));

	return !memcmp(k, v, 4 * sizeof(*k)) && !memcmp(q, o, 4 * sizeof(*q)) && q[1] % k[1] == 0 &&
	       q[3] == k[3];
}

unsigned fake_operands(const struct descriptor *op, const struct descriptor **operands)
{
	static const cudnnBackendAttributeName_t outputs[] = {
		CUDNN_ATTR_OPERATION_MATMUL_CDESC,    CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
		CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
		CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
	};
	const struct descriptor *output = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < op->attribute_count; i++) {
		const struct attribute *a = &op->attributes[i];
		const struct descriptor *part;
		bool is_output = false;

		if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
			continue;
		part = *(struct descriptor **)a->data;
		for (size_t o = 0; o < sizeof(outputs) / sizeof(outputs[0]); o++)
			is_output |= a->name == outputs[o];
		if (is_output)
			output = part;
		else if (part->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && count < OPERANDS_MAX - 1)
			operands[count++] = part;
	}
	operands[count++] = output;
	return count;
}

/* A virtual tensor is written once, and before it is read. */
static bool graph_fits(const struct descriptor *graph)
{
	const struct attribute *ops = fake_attribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	const struct descriptor *written[MANY];
	unsigned count = 0;

	for (int64_t i = 0; i < ops->count; i++) {
		const struct descriptor *operand[OPERANDS_MAX];
		unsigned n = fake_operands(((struct descriptor **)ops->data)[i], operand);

		for (unsigned t = 0; t < n; t++) {
			bool known = false, last = t == n - 1;

			for (unsigned w = 0; w < count; w++)
				known |= written[w] == operand[t];
			if (fake_is_virtual(operand[t]) && known == last)
				return false;
		}
		written[count++] = operand[n - 1];
	}
	return true;
}

static bool pack_fits(const struct descriptor *d)
{
	const struct attribute *uids = fake_attribute(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	const struct attribute *pointers = fake_attribute(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);

	for (int64_t i = 0; i < pointers->count; i++)
		if (!((void **)pointers->data)[i])
			return false;
	return uids->count == pointers->count;
}

static bool fits(const struct descriptor *d)
{
	switch (d->type) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
		return tensor_fits(d);
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
		return matmul_fits(d);
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
		return pointwise_fits(d);
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
		return reduction_fits(d);
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		return reshape_fits(d);
	case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
		return fused_fits(d);
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return graph_fits(d);
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		return pack_fits(d);
	default:
		return true;
	}
}

cudnnStatus_t fake_may_finalize(const struct descriptor *d)
{
	for (int i = 0; i < RULES; i++)
		if (rules[i].descriptor == d->type && rules[i].need == MUST &&
		    !fake_attribute(d, rules[i].name))
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "an attribute is missing");
	for (unsigned i = 0; i < d->attribute_count; i++) {
		const struct attribute *a = &d->attributes[i];

		for (int64_t n = 0; a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && n < a->count; n++)
			if (!((struct descriptor **)a->data)[n]->final)
				return fake_fail(CUDNN_STATUS_BAD_PARAM, "a part is not finalised");
	}
	return fits(d) ? CUDNN_STATUS_SUCCESS : fake_fail(CUDNN_STATUS_BAD_PARAM, "shapes do not fit");
}
