/* SPDX-License-Identifier: Apache-2.0 */
/* What sdpa*.c share; nobody else includes it. */
#ifndef GPU_SDPA_INTERNAL_H
#define GPU_SDPA_INTERNAL_H
#include "gpu/sdpa/sdpa.h"
#include "vendor/cudnn.h"

struct sdpa {
	struct cudnn dnn;
	struct lib_fact fact;
	cudnnHandle_t handle;
	struct gpu_device *device;
	uint64_t workspace_max;
	void *stream; /* that the handle has now */
};

/* Runs one library call; turns its status into ours and fills *err with the call's name and the library's
 * words. */
#define DNN_CALL(s, err, field, ...) sdpa_check((s), (s)->dnn.field(__VA_ARGS__), #field, (err))
enum status sdpa_check(const struct sdpa *s, cudnnStatus_t code, const char *call, struct error *err);

/* Descriptors, set and finalised (graph.c). */
enum status sdpa_desc_create(struct sdpa *s, cudnnBackendDescriptor_t *desc,
			     cudnnBackendDescriptorType_t type, struct error *err);
void sdpa_desc_destroy(struct sdpa *s, cudnnBackendDescriptor_t *desc);
enum status sdpa_set_desc(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendDescriptor_t value, struct error *err);
enum status sdpa_set_int(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			 int64_t value, struct error *err);
/* For the library's enums, each with its own attribute type. */
enum status sdpa_set_word(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendAttributeType_t type, unsigned value, struct error *err);

/* What a real tensor of a graph stands for when it runs. */
enum sdpa_role {
	SDPA_Q,
	SDPA_K,
	SDPA_V,
	SDPA_O,
	SDPA_LSE,
	SDPA_D_O,
	SDPA_D_Q,
	SDPA_D_K,
	SDPA_D_V,
	SDPA_DESCALE_Q,
	SDPA_DESCALE_K,
	SDPA_DESCALE_V,
	SDPA_SCALE_O,
	SDPA_OWN,  /* at an offset of the plan's own numbers */
	SDPA_WORK, /* at an offset of the workspace */
	SDPA_F32,  /* on the host */
	SDPA_I32,
};

struct sdpa_slot {
	int64_t uid;
	enum sdpa_role role;
	uint64_t offset;
	union {
		float f32;
		int32_t i32;
	} value;
};

struct sdpa_tensor {
	cudnnBackendDescriptor_t desc;
	int64_t dim[4], stride[4];
	const struct sdpa_tensor *ragged; /* where each sequence starts; NULL: dense batches */
};

enum { SDPA_TENSORS_MAX = 72, SDPA_OPS_MAX = 48, SDPA_DESCS_MAX = 192, SDPA_SLOTS_MAX = 40 };

/*
 * One graph on its way, or finished. The first failing call is kept in `st` and *err, and all later ones do
 * nothing: a graph is written down as it is drawn, and looked at once at its end.
 */
struct sdpa_graph {
	struct sdpa *s;
	const char *name;
	cudnnBackendDescriptor_t descs[SDPA_DESCS_MAX], ops[SDPA_OPS_MAX], graph;
	struct sdpa_tensor tensors[SDPA_TENSORS_MAX];
	struct sdpa_slot slots[SDPA_SLOTS_MAX];
	unsigned desc_count, op_count, tensor_count, slot_count;
	uint64_t work_bytes; /* of SDPA_WORK tensors */
	cudnnDataType_t io;  /* of Q, K and V */
	enum status st;
	struct error *err;
};

/* Real tensors. */
const struct sdpa_tensor *sdpa_real(struct sdpa_graph *g, enum sdpa_role role, cudnnDataType_t type,
				    const int64_t dim[4], const int64_t stride[4],
				    const struct sdpa_tensor *ragged);
const struct sdpa_tensor *sdpa_own(struct sdpa_graph *g, uint64_t offset, cudnnDataType_t type,
				   int64_t count);
const struct sdpa_tensor *sdpa_work(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4]);
const struct sdpa_tensor *sdpa_f32(struct sdpa_graph *g, float value);
const struct sdpa_tensor *sdpa_i32(struct sdpa_graph *g, int32_t value);
/* What lives within the kernel alone; packed, unless strides are given. */
const struct sdpa_tensor *sdpa_virtual(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4],
				       const int64_t *stride);
const struct sdpa_tensor *sdpa_virtual_ragged(struct sdpa_graph *g, cudnnDataType_t type,
					      const int64_t dim[4], const int64_t stride[4],
					      const struct sdpa_tensor *ragged);

/* Lengths that replace a product's sizes in each batch. NULL: none. */
struct sdpa_override {
	const struct sdpa_tensor *m, *n, *k;
};
void sdpa_matmul(struct sdpa_graph *g, const struct sdpa_tensor *a, const struct sdpa_tensor *b,
		 const struct sdpa_tensor *c, struct sdpa_override over);
/* y = mode(x, b, t); b and t NULL where the mode takes none. */
void sdpa_pointwise(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute,
		    const struct sdpa_tensor *x, const struct sdpa_tensor *b, const struct sdpa_tensor *t,
		    const struct sdpa_tensor *y);
/* The same into a new virtual tensor of x's sizes. */
const struct sdpa_tensor *sdpa_apply(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t type,
				     const struct sdpa_tensor *x, const struct sdpa_tensor *b);
/* The row (2) or column (3) number at each element of x, as INT32. */
const struct sdpa_tensor *sdpa_index(struct sdpa_graph *g, const struct sdpa_tensor *x, int64_t axis,
				     cudnnDataType_t compute);
void sdpa_reduce(struct sdpa_graph *g, cudnnReduceTensorOp_t op, const struct sdpa_tensor *x,
		 const struct sdpa_tensor *y);
void sdpa_reshape(struct sdpa_graph *g, const struct sdpa_tensor *x, const struct sdpa_tensor *y);
/* The whole attention in one; lse NULL: not wanted. */
void sdpa_fused(struct sdpa_graph *g, const struct sdpa_tensor *q, const struct sdpa_tensor *k,
		const struct sdpa_tensor *v, const struct sdpa_tensor *o, const struct sdpa_tensor *lse,
		const struct sdpa_tensor *scale);
/* Finalises the operation graph; the sticky error, if there was one. */
enum status sdpa_graph_finish(struct sdpa_graph *g);
void sdpa_graph_release(struct sdpa_graph *g);

/* Where the plan's own numbers lie on the device. */
struct sdpa_numbers {
	uint64_t one, scale_s, descale_s, amax_s, amax_o; /* FP8's: floats */
	uint64_t q_lens, kv_lens;			  /* int32 a batch */
	uint64_t q_starts, k_starts, v_starts, o_starts;  /* int32: elements, batch + 1 of them */
	uint64_t bytes;
};

/* What the graphs are drawn of. */
struct sdpa_drawing {
	const struct attention_problem *p;
	const struct sdpa_numbers *numbers;
	bool padded; /* each batch has lengths of its own */
	int version;
};

void sdpa_draw_fused(struct sdpa_graph *g, const struct sdpa_drawing *d);
void sdpa_draw_forward(struct sdpa_graph *g, const struct sdpa_drawing *d);
void sdpa_draw_backward(struct sdpa_graph *g, const struct sdpa_drawing *d);

/* Q, K, V and O as the graphs take them (forward_graph.c). */
cudnnDataType_t sdpa_type_code(enum attention_type type);
static inline void sdpa_dims(int64_t dim[4], int64_t a, int64_t b, int64_t c, int64_t d)
{
	dim[0] = a;
	dim[1] = b;
	dim[2] = c;
	dim[3] = d;
}
const struct sdpa_tensor *sdpa_draw_q(struct sdpa_graph *g, const struct sdpa_drawing *d,
				      enum sdpa_role role);
const struct sdpa_tensor *sdpa_draw_o(struct sdpa_graph *g, const struct sdpa_drawing *d,
				      enum sdpa_role role);
/* Transposed: [batch][head][head_dim][row], as the right-hand side of a product with Q or dO. */
const struct sdpa_tensor *sdpa_draw_kv(struct sdpa_graph *g, const struct sdpa_drawing *d,
				       enum sdpa_role role, bool transposed);
const struct sdpa_tensor *sdpa_draw_lse(struct sdpa_graph *g, const struct sdpa_drawing *d);

/* Lengths of each batch as tensors; both NULL where all are alike. */
struct sdpa_lengths {
	const struct sdpa_tensor *q, *kv;
};
struct sdpa_lengths sdpa_draw_lengths(struct sdpa_graph *g, const struct sdpa_drawing *d);
const struct sdpa_tensor *sdpa_mask_padding(struct sdpa_graph *g, const struct sdpa_drawing *d,
					    const struct sdpa_tensor *score, struct sdpa_lengths lengths);
const struct sdpa_tensor *sdpa_mask_band(struct sdpa_graph *g, const struct sdpa_drawing *d,
					 const struct sdpa_tensor *score, struct sdpa_lengths lengths);

struct sdpa_candidate {
	struct sdpa_graph *graph;
	cudnnBackendDescriptor_t config, plan;
	int64_t engine;
	struct sdpa_knob knobs[SDPA_KNOBS_MAX];
	unsigned knob_count;
	uint64_t workspace_bytes; /* the library's, without the graph's */
};

/* Addresses, bound: operands in turn, so that caches are cold, are bound once each. */
struct sdpa_pack {
	cudnnBackendDescriptor_t desc;
	struct attention_operands operands;
	struct sdpa_gradients gradients;
};

enum { SDPA_GRAPHS_MAX = 2, SDPA_PACKS = 128 };

struct sdpa_plan {
	struct sdpa *s;
	struct attention_problem problem;
	enum sdpa_direction direction;
	struct sdpa_numbers numbers;
	struct sdpa_graph *graphs[SDPA_GRAPHS_MAX];
	unsigned graph_count;
	struct sdpa_candidate *candidates;
	unsigned count, room, selected;
	gpu_ptr own, workspace; /* numbers; the selected candidate's */
	uint64_t workspace_bytes;
	struct sdpa_pack packs[SDPA_PACKS];
	unsigned packs_made; /* of the selected candidate; the oldest is replaced */
};

/* Bytes of workspace that a candidate needs: the graph's tensors, then the library's. */
uint64_t sdpa_candidate_bytes(const struct sdpa_candidate *c);
/*
 * Builds the candidate and adds it; owns *c from here on. What cannot be built is left out, its reason kept
 * in *why: the library lists engines that its own check then refuses.
 */
enum status sdpa_candidate_take(struct sdpa_plan *p, struct sdpa_candidate *c, struct error *why,
				struct error *err);
void sdpa_candidates_clear(struct sdpa_plan *p);
void sdpa_packs_clear(struct sdpa_plan *p);
#endif
