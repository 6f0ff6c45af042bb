/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM plans, one per shape, and cuBLASLt's candidate that each uses. */
#ifndef MODEL_GPU_GEMM_H
#define MODEL_GPU_GEMM_H
#include "gpu/matmul/skinny.h"
#include "model/gpu/internal.h"

struct gemm_plan {
	struct matmul_shape shape;
	struct matmul_plan *plan;
	bool tuned, recalled; /* recalled: the algorithm was not chosen for this plan by timing */
	bool alike;	      /* recalled from a GEMM with a similar number of rows */
	bool cached;	      /* recalled from another run */
	unsigned times;	      /* number of runs, counted while alike */
	unsigned chosen;
	double seconds, first_seconds; /* time with the chosen and with the first candidate; 0: not timed */
};

struct gemm_plans {
	struct matmul *library;
	struct gemm_plan *planned;
	size_t count, room;
	struct gpu_choice *known; /* choices of earlier runs */
	size_t known_count;
	char name[64];
};

/* How a GEMM of generation runs. */
enum gemm_engine { GEMM_LIBRARY, GEMM_OWN };
struct gemm_way {
	enum gemm_engine engine;
	uint64_t words[MATMUL_ALGORITHM_WORDS]; /* of the library; all 0 for its first candidate */
	struct skinny_choice own;
};
/* Everything that the choice of a way depends on, except the number of rows. Compared as bytes. */
struct gemm_form {
	int64_t n, k, row_a, row_b, row_d;
	uint32_t a, b, d, align; /* types of elements; common alignment of the addresses */
	uint32_t trans_a, trans_b, has_bias, is_added, is_whole;
};
enum { GEMM_NEAR_MOST = 8 };
struct gemm_choice {
	struct gemm_form form;
	int64_t rows;
	struct gemm_way way;
	/* The ways that took little more time by themselves, the fastest first. A step decides among them
	 * (refine.c). */
	struct gemm_way near[GEMM_NEAR_MOST];
	unsigned nears;
};
/* Operands of a GEMM that ran while the back end watched. h.rows 0: without SwiGLU. */
struct gemm_use {
	struct gemm g;
	struct mat h;
};
/* The choice of one kernel for a GEMM with adapters, or of `apart` operations (adapted.c). */
struct adapted_choice {
	struct gemm_form form; /* of the GEMM without adapters */
	int64_t rows, a_rows;
	bool swiglu, is_apart;
	struct skinny_choice own;
};
struct gemm_choices {
	bool watching;
	struct gemm_use *use;
	size_t uses, use_room;
	struct gemm_choice *choice;
	size_t count, room;
	struct adapted_gemm *adapted; /* that ran while the back end watched */
	size_t adapted_uses, adapted_use_room;
	struct adapted_choice *adapted_choice;
	size_t adapted_count, adapted_room;
};

/* Everything that a choice depends on: "NT 8192x4608x3584 bf16 bf16 to bf16, rows 3584 3584 4608, by 256,
 * added, bias". */
void gemm_plans_key(char out[160], const struct matmul_shape *s);

/* Times the library's candidates with these operands and selects the fastest. The contents of D are
 * preserved. If the arena has no room to save them, the first candidate is used, and the next GEMM of this
 * shape tries again. */
enum status gemm_plans_tune(struct backend *back, struct gemm_plan *p, const struct gemm *g,
			    const struct matmul_operands *o, struct error *err);
/* Runs a GEMM the way that was chosen for it. h: matrix of rows 0, or the result of SwiGLU, which then
 * follows. */
enum status gemm_run(struct backend *back, const struct gemm *g, const struct mat *h, struct error *err);
/* Runs a GEMM by cuBLASLt. before: back->cost.flop without its cost. With weights in E4M3, a is E4M3 too. */
enum status gemm_plans_run(struct backend *back, const struct gemm *g, double before, struct error *err);
/* The plan of a GEMM, made if it is new, and its operands. */
enum status gemm_plans_find(struct backend *back, const struct gemm *g, struct gemm_plan **p,
			    struct matmul_operands *o, struct error *err);

/* Choices made before requests run (choose.c). gemm_watch notes the GEMM, which is about to run, with
 * SwiGLU if h has rows. gemm_chosen finds the way of the nearest larger number of rows, or NULL if none is
 * near. */
enum status gemm_watch(struct gpu_state *g, const struct gemm *m, const struct mat *h, struct error *err);
const struct gemm_way *gemm_chosen(const struct gpu_state *g, const struct gemm *m);
void gemm_choices_release(struct gemm_choices **c);
void gemm_form_of(struct gemm_form *f, const struct gemm *m);
bool gemm_is_form(const struct gemm_form *f, const struct gemm *m);
/* Whether a choice for `chosen` rows is used for `rows`. */
bool gemm_stands_for(int64_t chosen, int64_t rows);
/* Number of calls that a way is timed with. */
int gemm_times_of(const struct gemm *m);
/* Makes room for one more element of a list. */
enum status gemm_grow(void **list, size_t *room, size_t count, size_t size, struct error *err);
/* Notes what timing a way of a GEMM returned: the shortest time of all so far in *best, 0 for none.
 * `may_lack`: there is another way, so UNSUPPORTED makes *best infinite and is not an error. Other errors:
 * that of `why`. */
enum status gemm_note_time(enum status st, double seconds, bool may_lack, double *best,
			   const struct error *why, struct error *err);
/* gpu_backend_choose for GEMMs with adapters, until the clock of core/clock.h has reached end_ns. */
enum status adapted_choose(struct backend *back, uint64_t end_ns, struct error *err);
/* The largest power of two up to 256 that divides the addresses of all operands. */
unsigned gemm_alignment(const struct gemm *g);

/* GEMMs by assay's own kernels (few_rows.c). h: matrix of rows 0, or the result of SwiGLU. few_rows_can:
 * whether they can compute a GEMM of any form of weights in BF16 or E4M3. few_rows_take: whether it runs by
 * few_rows_run in any case. Others in BF16 do if timing chose so. */
bool few_rows_can(const struct gpu_state *g, const struct gemm *m);
bool few_rows_take(const struct gpu_state *g, const struct gemm *m);
/* Without a way (NULL) it is a function of the shape. */
enum status few_rows_run(struct backend *back, const struct gemm *m, const struct mat *h,
			 const struct gemm_way *way, struct error *err);
/* A GEMM's rows row .. row + rows - 1 as own kernels take them. */
struct skinny_problem few_rows_problem(const struct gemm *m, const struct mat *h, int64_t row, int64_t rows);
/* Calls `run` with the GEMM whose x is quantized, if W is E4M3. */
typedef enum status few_rows_quantized_run(struct backend *back, const struct gemm *m, void *arg,
					   struct error *err);
enum status few_rows_quantized(struct backend *back, const struct gemm *m, few_rows_quantized_run *run,
			       void *arg, struct error *err);
/* The ways that are worth timing for a GEMM: of those that few_rows_take the library's too, of others in BF16
 * only those of own kernels. Returns their number; 0: it has one, or own kernels do not support it. */
enum { FEW_ROWS_OWN_MOST = 15, FEW_ROWS_WAYS_MOST = FEW_ROWS_OWN_MOST + 1 };
unsigned few_rows_ways(const struct gpu_state *g, const struct gemm *m, const struct mat *h,
		       struct gemm_way out[FEW_ROWS_WAYS_MOST]);
/* Removes the plans from number `count` on. None of them may be enqueued. */
void gemm_plans_forget(struct gemm_plans *p, size_t count);
#endif
