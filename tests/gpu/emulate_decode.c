/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/decode/decode.cu itself in its references' place: tests/fake's driver, built with this file, runs the kernels' own source. */
#include "emulate_f16.h"
#pragma GCC diagnostic ignored "-Wunknown-pragmas" /* of unrolling */
#pragma GCC diagnostic ignored "-Wshadow"	   /* each kernel declares its shared memory */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* a ring's part, which is opened before it is read */
/* emulate.h stands first: it says what nvcc's words mean. */
#include "kernel/decode/decode.cu"
#undef __CUDACC__
#include "ref.h"

static void run_linear(const void *args)
{
	decode_linear(*(const struct decode_linear_args *)args);
}

static void run_attend(const void *args)
{
	decode_attend(*(const struct decode_attend_args *)args);
}

static void run_token(const void *args)
{
	decode_token(*(const struct decode_token_args *)args);
}

static void run_token_e4m3(const void *args)
{
	decode_token_e4m3(*(const struct decode_token_args *)args);
}

static void run(const char *entry, struct ref_grid grid, const void *args)
{
	emulate(strstr(entry, "linear")	  ? run_linear
		: strstr(entry, "attend") ? run_attend
		: strstr(entry, "e4m3")	  ? run_token_e4m3
					  : run_token,
		args, grid.blocks, grid.threads);
}

const struct ref_row ref_decode[] = {
	{"decode_linear", run, sizeof(struct decode_linear_args), offsetof(struct decode_linear_args, out)},
	{"decode_attend", run, sizeof(struct decode_attend_args), offsetof(struct decode_attend_args, o)},
	{"decode_token_e4m3", run, sizeof(struct decode_token_args), offsetof(struct decode_token_args, logits)},
	{"decode_token", run, sizeof(struct decode_token_args), offsetof(struct decode_token_args, logits)},
	{NULL, NULL, 0, 0},
};
