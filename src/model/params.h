/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trained parameters as one flat vector with a table of names, for optimizer, checkpoints, sharding and
 * all-reduce. Tensors are in the table's order without gaps, so that adjacent ones of equal width (q, k, v;
 * gate, up; the A of one input) also form one matrix. docs/explanation/design/optimizer_states.md explains
 * the formats of weights and moments.
 */
#ifndef MODEL_PARAMS_H
#define MODEL_PARAMS_H
#include "model/tensor/arena.h"

enum { PARAM_NAME = 112 };

/* name, word in checkpoints. 8BIT: codes with a scale per block (model/backend/ops.h). */
#define MOMENTS_LIST(X) X(F32, "F32") X(BF16, "BF16") X(8BIT, "8bit")
/* What the optimizer adds to. SPLIT: a BF16 weight and the 16 bits that F32 has in addition. NONE: a BF16
 * weight alone, rounded stochastically. The last two have a BF16 gradient, and GEMMs read the weight. */
#define MASTER_LIST(X) X(F32, "fp32") X(SPLIT, "split") X(NONE, "none")
#define X(name, ...) MOMENTS_##name,
enum moments { MOMENTS_LIST(X) MOMENTS_COUNT };
#undef X
#define X(name, ...) MASTER_##name,
enum master { MASTER_LIST(X) MASTER_COUNT };
#undef X
struct params_format {
	enum moments moments;
	enum master master;
};
const char *moments_name(enum moments moments);
const char *master_name(enum master master);

/* With 8-bit moments, a tensor with fewer elements keeps F32 moments, as in bitsandbytes. */
enum { PARAMS_8BIT_LEAST = 4096 };

struct param {
	char name[PARAM_NAME]; /* "model.layers.0.self_attn.q_proj.lora_A.weight", "lm_head.weight" */
	int64_t rows, cols;    /* a vector has one row */
	size_t offset;	       /* element in the flat vector */
	float decay;	       /* factor of weight decay: 1, or 0 for biases and norms */
	/* 8-bit moments: the tensor's first scale in m_scale and v_scale, or, if is_small, its first element
	 * in m_small and v_small. */
	size_t state;
	bool is_small;
	bool elsewhere; /* tensor parallel: another rank holds it too, and counts it in the norm */
};

/* What several ranks divide (ZeRO, docs/explanation/design/mesh.md): the moments and the lower halves, and
 * also the master weights, the gradient and the live copy. A rank has its range of each. ranks 0: nothing is
 * divided. */
struct params_shards {
	unsigned rank, ranks;
	bool master, gradient, live;
};

struct params {
	struct param *table; /* freed by params_release */
	int count, room;
	size_t length;
	struct params_format format;
	/* Set before params_place. Range r is [border[r], border[r + 1]); border NULL: one range, [0,
	 * length). */
	struct params_shards shards;
	size_t *border; /* owned */
	/* Set before params_place: bytes, a multiple of ARENA_ALIGN, that the arena has directly before the
	 * gradient for passes (model/storage/lent.h). */
	size_t lead;
	/* [1, length], or the own range of what is divided. master and grad: F32 (F64 when a test compares
	 * gradients with differences), or BF16. m and v: F32, F64, BF16, or U8. */
	struct mat master, grad, m, v;
	struct mat live; /* master in the type that GEMMs read, if that is another type; else absent */
	struct mat rest; /* MASTER_SPLIT: I16 [1, length], the lower half of F32 (params_join); else absent */
	/* The states are in host memory (back->host): all but the master weights if GEMMs read those. */
	bool offloaded;
	struct mat m_scale, v_scale; /* MOMENTS_8BIT: F32 [1, blocks of all tensors that are not small] */
	struct mat m_small, v_small; /* MOMENTS_8BIT: F32 [1, elements of all small tensors] */
};

/* Appends a parameter. BAD_INPUT: its name is too long. */
enum status params_add(struct params *p, const char *name, int64_t rows, int64_t cols, float decay,
		       struct error *err);
/* To be called after the last params_add. Allocates the master weights in p->format, their live copy if
 * `live` is another type than theirs, and with `trained` gradient and moments. `dtype`: F32, or F64 in tests.
 * host: where the states are that GEMMs do not read; NULL: on the device. Nothing is initialized. BUG: a
 * format with another type than F32 in F64. */
enum status params_place(struct params *p, struct arena *a, struct arena *host, enum dtype dtype,
			 enum dtype live, bool trained, struct error *err);

/* The vectors that a checkpoint holds, in its order. Absent ones have rows = 0. name, word in checkpoints */
#define PARAMS_STATES(X)                                                                                     \
	X(master, "master")                                                                                  \
	X(m, "m")                                                                                            \
	X(v, "v")                                                                                            \
	X(rest, "rest")                                                                                      \
	X(m_scale, "m_scale")                                                                                \
	X(v_scale, "v_scale")                                                                                \
	X(m_small, "m_small")                                                                                \
	X(v_small, "v_small")
#define X(name, ...) PARAMS_STATE_##name,
enum params_state { PARAMS_STATES(X) PARAMS_STATE_COUNT };
#undef X
const char *params_state_name(enum params_state which);
struct mat *params_state(struct params *p, enum params_state which);
uint64_t params_state_bytes(const struct params *p, enum params_state which); /* 0: absent */
/* Whether the state is there and in host memory. */
bool params_state_offloaded(const struct params *p, enum params_state which);
/* Whether the master weights are in host memory or divided. They are then loaded to the gradient's memory. */
bool params_load_apart(const struct params *p);
/* Part of a state that belongs to a parameter: its first element, and their number. Elements 0: none. */
struct params_range {
	size_t first, count;
};
struct params_range params_range(const struct params *p, const struct param *param, enum params_state which);
/* The elements of a state that belong to elements [begin, end) of the flat vector. A scale belongs to the
 * first element of its block. Adjacent ranges have adjacent parts. */
struct params_range params_part(const struct params *p, size_t begin, size_t end, enum params_state which);

/* Ends of the own range of the flat vector. */
size_t params_begin(const struct params *p);
size_t params_end(const struct params *p);
/* The element of a complete state with which the rank's part of it begins; 0 if nothing of it is divided. */
size_t params_first(const struct params *p, enum params_state which);
/* The ranges of all ranks in elements [first, last), counted from `first`: out [ranks + 1]. */
void params_borders(const struct params *p, size_t first, size_t last, size_t *out);
/* Elements [first, first + count) of a vector or of its own range; absent if the vector is. */
struct mat params_cut(const struct params *p, const struct mat *flat, size_t first, size_t count);
/* The same parameters with states of full length, which have no memory; border is not its own. */
struct params params_whole(const struct params *p);

/* The halves of an F32 number: `high` is it rounded to BF16, ties away from zero; together they are exact. */
static inline float params_join(uint16_t high, int16_t low)
{
	const uint32_t bits = ((uint32_t)high << 16) + (uint32_t)(int32_t)low;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}
static inline uint16_t params_split(float f, int16_t *low)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	*low = (int16_t)(uint16_t)bits;
	return (uint16_t)((bits + 0x8000u) >> 16);
}
/* Master weights of elements [first, first + count) in F32. They must be in host memory. */
void params_master(const struct params *p, size_t first, size_t count, float *out);
/* The first element of a layer's parameters; the vector's length if none of them is trained. */
size_t params_layer_begin(const struct params *p, int64_t layer);
/* NULL: there is no such parameter. */
const struct param *params_find(const struct params *p, const char *name);
/* One parameter's part of master, grad, m or v. Lent. */
struct mat params_view(const struct mat *flat, const struct param *param);
/* Index of the first element of `part`, which is part of the master; 0 while planning. */
size_t params_at(const struct params *p, const struct mat *part);
void params_release(struct params *p);
#endif
