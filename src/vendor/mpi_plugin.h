/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The border of the MPI plug-in (team/libraries/mpi_plugin.c, module assay-mpi), which alone is linked to
 * MPI: plain C, so that one program works with a plug-in of Open MPI or of MPICH. Its functions are declared
 * by these very rows. All but `version` and `border` are for one thread of the process, the one that called
 * `open`.
 */
#ifndef VENDOR_MPI_PLUGIN_H
#define VENDOR_MPI_PLUGIN_H
#include <stdint.h>
#include "vendor/lib.h"

/* Changes with any row, number or struct below; a plug-in of another border is refused. */
enum { MPI_PLUGIN_BORDER = 1, MPI_PLUGIN_TEXT = 512 };

enum mpi_plugin_what {
	MPI_PLUGIN_ALL_REDUCE,
	MPI_PLUGIN_ALL_GATHER,
	MPI_PLUGIN_REDUCE_SCATTER,
	MPI_PLUGIN_ALL_TO_ALL,
	MPI_PLUGIN_BROADCAST,
	MPI_PLUGIN_REDUCE,
	MPI_PLUGIN_SEND_RECEIVE, /* to the next rank, from the one before, the last to the first */
	MPI_PLUGIN_WHATS
};
enum mpi_plugin_type {
	MPI_PLUGIN_F32,
	MPI_PLUGIN_F64,
	MPI_PLUGIN_S8,
	MPI_PLUGIN_U8,
	MPI_PLUGIN_S32,
	MPI_PLUGIN_S64,
	MPI_PLUGIN_TYPES
};
enum mpi_plugin_op { MPI_PLUGIN_SUM, MPI_PLUGIN_MIN, MPI_PLUGIN_MAX, MPI_PLUGIN_OPS };

/*
 * `count`: elements of one block: what a rank gives of ALL_GATHER, takes of REDUCE_SCATTER, exchanges with
 * each other of ALL_TO_ALL; of the rest all of them. In place (not SEND_RECEIVE) `send` is not looked at:
 *
 *   ALL_REDUCE, REDUCE, BROADCAST   all of `receive`, on every rank
 *   ALL_GATHER                      the own block stands in its place of `receive`
 *   REDUCE_SCATTER                  all blocks stand in `receive`, the answer in its first
 *   ALL_TO_ALL                      blocks by rank
 *
 * BROADCAST out of place: the root's `receive` is not written; REDUCE: nor is anybody's but the root's.
 */
struct mpi_plugin_call {
	uint32_t what, type, op, root, in_place, reserved;
	uint64_t count;
	const void *send;
	void *receive;
};

/*
 * need, ret, field, symbol, params. Functions returning int: 0, or -1 with one sentence in text[room]. `comm`
 * NULL is all ranks that were launched; of `subset`: those, by their numbers among all, in the order told;
 * they alone call it. An MPI that lost a rank may never return.
 */
/* clang-format off */
#define MPI_PLUGIN_FUNCTIONS(X)                                                                              \
	X(REQUIRED, unsigned, border, assay_mpi_border, (void))                                              \
	X(REQUIRED, int, version, assay_mpi_version, (char *text, uint32_t room))                            \
	X(REQUIRED, int, open, assay_mpi_open, (uint32_t *rank, uint32_t *size, char *text, uint32_t room))  \
	X(REQUIRED, int, subset, assay_mpi_subset,                                                           \
	  (void **comm, const uint32_t *ranks, uint32_t count, char *text, uint32_t room))                   \
	X(REQUIRED, int, collective, assay_mpi_collective,                                                   \
	  (void *comm, const struct mpi_plugin_call *call, char *text, uint32_t room))                       \
	X(REQUIRED, int, barrier, assay_mpi_barrier, (void *comm, char *text, uint32_t room))                \
	X(REQUIRED, void, leave, assay_mpi_leave, (void *comm))                                              \
	X(REQUIRED, void, close, assay_mpi_close, (void))
/* clang-format on */

struct mpi_plugin {
#define X(need, ret, field, symbol, params) ret(*field) params;
	MPI_PLUGIN_FUNCTIONS(X)
#undef X
};

/* Loads it: UNAVAILABLE, LIBRARY_MISSING where it or its MPI is not there; VERSION_MISMATCH where it was
 * built for another program. MPI itself is not begun. */
enum status mpi_plugin_open(struct mpi_plugin *out, struct lib_fact *fact, struct error *err);

extern const struct lib_spec mpi_plugin_lib; /* "mpi_plugin" */
#endif
