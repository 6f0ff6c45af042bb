/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of 1 to 256 rows by assay's own kernels, for inference on sm_90 (kernel/matmul/skinny.h). Weights are
 * BF16 or E4M3; activations are BF16, or E4M3 made by skinny_quantize.
 */
#ifndef GPU_MATMUL_SKINNY_H
#define GPU_MATMUL_SKINNY_H
#include "gpu/device/gpu.h"

/*
 * y = x W' + bias + residual. With swiglu, W has 2 outputs rows, the gate's first, and y = silu(gate) * up.
 * bias and residual are optional (0) and not possible with swiglu. Addresses are multiples of 16, or of 8 for
 * y, bias and residual. k, outputs and all row pitches are multiples of 8; of 16 for E4M3 rows.
 */
struct skinny_problem {
	gpu_ptr w, x, y;
	gpu_ptr w_scale; /* F32, one factor per row of W: W is E4M3. 0: W is BF16 */
	gpu_ptr x_scale; /* F32, one factor per row of x: x is E4M3, as W. 0: x is BF16 */
	gpu_ptr bias, residual;
	uint32_t rows, outputs, k; /* rows: 1 .. 256 */
	bool swiglu;
	uint64_t row_w, row_x, row_y, row_residual; /* elements from one row to the next */
};

/* How the kernel divides the work. */
struct skinny_choice {
	uint8_t cluster;  /* blocks per cluster: 1, 2, 4 or 8 */
	uint8_t together; /* tiles that a cluster computes at once when it splits k: divides `cluster` */
	uint8_t per_sm;	  /* blocks per SM that the shared memory is divided for: 1 or 2 */
	uint8_t running;  /* blocks per SM that run at once; fewer than per_sm leave room for the next kernel
			   */
	/* Divide the work as a function of the weights' shape and of this choice alone. Then a row's result
	 * is the same for any number of rows. */
	bool invariant;
	bool short_fetch; /* the L2 fetches weights 128 bytes at once, and not 256 */
	bool keep;	  /* weights stay in the L2 as other data do, and are not the first to go */
};

enum { SKINNY_CHOICES_MOST = 24 };

struct skinny; /* the kernels of a device, found when they first run */

/* Owner: caller, skinny_close. UNSUPPORTED: the device is not sm_90. UNAVAILABLE: the program was built
 * without the kernel, or the driver is too old. */
enum status skinny_open(struct skinny **s, struct gpu_device *d, struct error *err);
void skinny_close(struct skinny **s);

/* UNSUPPORTED, with the reason, if the kernels do not take the problem. Its addresses are compared with their
 * alignment; none is read. */
enum status skinny_check(const struct skinny_problem *p, struct error *err);
/* The choices that are worth timing for the problem, the likely best one first. Returns their number. */
unsigned skinny_choices(const struct skinny *s, const struct skinny_problem *p,
			struct skinny_choice out[SKINNY_CHOICES_MOST]);
/* A choice for all numbers of rows, with `invariant` set. */
struct skinny_choice skinny_invariant(const struct skinny *s, const struct skinny_problem *p);
/* Runs the problem; may be captured. `overlap`: begin before the stream's last kernel has ended, and load
 * weights meanwhile. So no work that may still run may write the weights. UNSUPPORTED: see skinny_check, or
 * the choice does not fit the device. */
enum status skinny_enqueue(struct skinny *s, const struct skinny_problem *p, const struct skinny_choice *c,
			   bool overlap, struct gpu_stream *stream, struct error *err);

/* Rows of BF16 to E4M3 with scale[row] = largest magnitude / 448. */
struct skinny_quantize {
	gpu_ptr from, to, scale;
	uint64_t rows, cols;	   /* cols: a multiple of 8 */
	uint64_t row_from, row_to; /* elements; multiples of 8 */
};
enum status skinny_quantize(struct skinny *s, const struct skinny_quantize *q, bool overlap,
			    struct gpu_stream *stream, struct error *err);
#endif
