/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of src/gpu/sdpa. No other file includes this header. */
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
	void *stream; /* the handle's current stream */
};

/* Runs one library call. Converts its status to ours, and fills *err with the call's name and the library's
 * message. */
#define DNN_CALL(s, err, field, ...) sdpa_check((s), (s)->dnn.field(__VA_ARGS__), #field, (err))
enum status sdpa_check(const struct sdpa *s, cudnnStatus_t code, const char *call, struct error *err);

/* Creates a descriptor; sdpa_set_* set and finalise it (graph.c). */
enum status sdpa_desc_create(struct sdpa *s, cudnnBackendDescriptor_t *desc,
			     cudnnBackendDescriptorType_t type, struct error *err);
void sdpa_desc_destroy(struct sdpa *s, cudnnBackendDescriptor_t *desc);
enum status sdpa_set_desc(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendDescriptor_t value, struct error *err);
enum status sdpa_set_int(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			 int64_t value, struct error *err);
/* Sets an attribute whose type is one of the library's enums; each enum has its own attribute type. */
enum status sdpa_set_word(struct sdpa *s, cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
			  cudnnBackendAttributeType_t type, unsigned value, struct error *err);

/* The operand that a real tensor of a graph is bound to at run time. */
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
	SDPA_OWN,  /* at an offset in the plan's constants */
	SDPA_WORK, /* at an offset in the workspace */
	SDPA_F32,  /* in host memory */
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
	const struct sdpa_tensor *ragged; /* start of each sequence; NULL: dense batches */
};

enum { SDPA_TENSORS_MAX = 72, SDPA_OPS_MAX = 48, SDPA_DESCS_MAX = 192, SDPA_SLOTS_MAX = 40 };

/*
 * A graph, finished or under construction. The first failing call stores its error in `st` and *err, and
 * later calls do nothing. So drawing code checks for errors only once, at the end.
 */
struct sdpa_graph {
	struct sdpa *s;
	const char *name;
	cudnnBackendDescriptor_t descs[SDPA_DESCS_MAX], ops[SDPA_OPS_MAX], graph;
	struct sdpa_tensor tensors[SDPA_TENSORS_MAX];
	struct sdpa_slot slots[SDPA_SLOTS_MAX];
	unsigned desc_count, op_count, tensor_count, slot_count;
	uint64_t work_bytes; /* bytes of SDPA_WORK tensors */
	cudnnDataType_t io;  /* type of Q, K and V */
	enum status st;
	struct error *err;
};

/* -- real tensors, bound to addresses at run time -- */
const struct sdpa_tensor *sdpa_real(struct sdpa_graph *g, enum sdpa_role role, cudnnDataType_t type,
				    const int64_t dim[4], const int64_t stride[4],
				    const struct sdpa_tensor *ragged);
const struct sdpa_tensor *sdpa_own(struct sdpa_graph *g, uint64_t offset, cudnnDataType_t type,
				   int64_t count);
const struct sdpa_tensor *sdpa_work(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4]);
const struct sdpa_tensor *sdpa_f32(struct sdpa_graph *g, float value);
const struct sdpa_tensor *sdpa_i32(struct sdpa_graph *g, int32_t value);
/* A tensor that exists only within the kernel. Packed unless strides are given. */
const struct sdpa_tensor *sdpa_virtual(struct sdpa_graph *g, cudnnDataType_t type, const int64_t dim[4],
				       const int64_t *stride);
const struct sdpa_tensor *sdpa_virtual_ragged(struct sdpa_graph *g, cudnnDataType_t type,
					      const int64_t dim[4], const int64_t stride[4],
					      const struct sdpa_tensor *ragged);

/* Lengths that replace a GEMM's sizes in each batch. NULL: none. */
struct sdpa_override {
	const struct sdpa_tensor *m, *n, *k;
};
void sdpa_matmul(struct sdpa_graph *g, const struct sdpa_tensor *a, const struct sdpa_tensor *b,
		 const struct sdpa_tensor *c, struct sdpa_override over);
/* y = mode(x, b, t). b and t are NULL if the mode does not take them. */
void sdpa_pointwise(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute,
		    const struct sdpa_tensor *x, const struct sdpa_tensor *b, const struct sdpa_tensor *t,
		    const struct sdpa_tensor *y);
/* As sdpa_pointwise, into a new virtual tensor of x's size. */
const struct sdpa_tensor *sdpa_apply(struct sdpa_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t type,
				     const struct sdpa_tensor *x, const struct sdpa_tensor *b);
/* The row (axis 2) or column (axis 3) index at each element of x, as INT32. */
const struct sdpa_tensor *sdpa_index(struct sdpa_graph *g, const struct sdpa_tensor *x, int64_t axis,
				     cudnnDataType_t compute);
void sdpa_reduce(struct sdpa_graph *g, cudnnReduceTensorOp_t op, const struct sdpa_tensor *x,
		 const struct sdpa_tensor *y);
void sdpa_reshape(struct sdpa_graph *g, const struct sdpa_tensor *x, const struct sdpa_tensor *y);
/* The whole attention as one operation. lse NULL: not wanted. */
void sdpa_fused(struct sdpa_graph *g, const struct sdpa_tensor *q, const struct sdpa_tensor *k,
		const struct sdpa_tensor *v, const struct sdpa_tensor *o, const struct sdpa_tensor *lse,
		const struct sdpa_tensor *scale);
/* Finalises the operation graph. Returns the first error of the drawing, if there was one. */
enum status sdpa_graph_finish(struct sdpa_graph *g);
void sdpa_graph_release(struct sdpa_graph *g);

/* Offsets of the plan's constants in device memory. */
struct sdpa_numbers {
	uint64_t one, scale_s, descale_s, amax_s, amax_o; /* FP8 only: floats */
	uint64_t q_lens, kv_lens;			  /* int32, one per batch */
	uint64_t q_starts, k_starts, v_starts, o_starts;  /* int32: element offsets, batch + 1 each */
	uint64_t bytes;
};

/* Inputs of the drawing functions. */
struct sdpa_drawing {
	const struct attention_problem *p;
	const struct sdpa_numbers *numbers;
	bool padded; /* batches have different lengths */
	int version;
};

void sdpa_draw_fused(struct sdpa_graph *g, const struct sdpa_drawing *d);
void sdpa_draw_forward(struct sdpa_graph *g, const struct sdpa_drawing *d);
void sdpa_draw_backward(struct sdpa_graph *g, const struct sdpa_drawing *d);

/* Q, K, V and O as tensors of a graph (forward_graph.c). */
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
/* Transposed: [batch][head][head_dim][row], for the right-hand side of a GEMM with Q or dO. */
const struct sdpa_tensor *sdpa_draw_kv(struct sdpa_graph *g, const struct sdpa_drawing *d,
				       enum sdpa_role role, bool transposed);
const struct sdpa_tensor *sdpa_draw_lse(struct sdpa_graph *g, const struct sdpa_drawing *d);

/* Lengths of each batch as tensors; both NULL if all are equal. */
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
	uint64_t workspace_bytes; /* the library's workspace, without the graph's tensors */
};

/* Addresses bound to a variant pack. Rotated operands, which keep caches cold, have one pack each. */
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
	gpu_ptr own, workspace; /* own: constants; workspace: for the selected candidate */
	uint64_t workspace_bytes;
	struct sdpa_pack packs[SDPA_PACKS];
	unsigned packs_made; /* packs of the selected candidate; the oldest is replaced */
};

/* Bytes of workspace of a candidate: the graph's tensors, then the library's own part. */
uint64_t sdpa_candidate_bytes(const struct sdpa_candidate *c);
/*
 * Builds the candidate and adds it to the plan. Takes ownership of *c. A candidate that cannot be built is
 * omitted and its reason stored in *why, because the library lists engines that its own check then refuses.
 */
enum status sdpa_candidate_take(struct sdpa_plan *p, struct sdpa_candidate *c, struct error *why,
				struct error *err);
void sdpa_candidates_clear(struct sdpa_plan *p);
void sdpa_packs_clear(struct sdpa_plan *p);
#endif
