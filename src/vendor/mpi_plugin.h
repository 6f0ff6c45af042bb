/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of the MPI plug-in (team/libraries/mpi_plugin.c, module assay-mpi). Only the plug-in is linked to
 * MPI. The interface is plain C, so one program works with a plug-in for Open MPI or for MPICH. The rows
 * below declare its functions. All functions except `version` and `border` must be called by the thread that
 * called `open`.
 */
#ifndef VENDOR_MPI_PLUGIN_H
#define VENDOR_MPI_PLUGIN_H
#include <stdint.h>
#include "vendor/lib.h"

/* Version of the interface. It changes with any row, number or struct below. A plug-in of another version is
 * refused. */
enum { MPI_PLUGIN_BORDER = 1, MPI_PLUGIN_TEXT = 512 };

enum mpi_plugin_what {
	MPI_PLUGIN_ALL_REDUCE,
	MPI_PLUGIN_ALL_GATHER,
	MPI_PLUGIN_REDUCE_SCATTER,
	MPI_PLUGIN_ALL_TO_ALL,
	MPI_PLUGIN_BROADCAST,
	MPI_PLUGIN_REDUCE,
	MPI_PLUGIN_SEND_RECEIVE, /* sends to the next rank and receives from the one before; the last rank
				  * sends to the first */
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
 * `count` is the number of elements of one block. The block is a rank's input for ALL_GATHER, its output for
 * REDUCE_SCATTER, and its data for each other rank for ALL_TO_ALL. For the other collectives it is all of the
 * data. With in_place (not for SEND_RECEIVE) `send` is ignored, and `receive` holds the input:
 *
 *   ALL_REDUCE, REDUCE, BROADCAST   all of `receive`, on every rank
 *   ALL_GATHER                      the rank's own block, at its place in `receive`
 *   REDUCE_SCATTER                  all blocks; the result is written to the first
 *   ALL_TO_ALL                      blocks in the order of ranks
 *
 * Out of place, BROADCAST does not write the root's `receive`, and REDUCE writes only the root's `receive`.
 */
struct mpi_plugin_call {
	uint32_t what, type, op, root, in_place, reserved;
	uint64_t count;
	const void *send;
	void *receive;
};

/*
 * Columns: need, ret, field, symbol, params. Functions that return int return 0, or -1 with a one-sentence
 * error in text[room]. `comm` NULL means all launched ranks. `subset` makes a communicator of the given
 * ranks, numbered among all ranks, in the given order; only these ranks call it. A call may never return
 * after MPI has lost a rank.
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

/* Loads the plug-in without starting MPI. UNAVAILABLE with LIBRARY_MISSING: the plug-in or its MPI is
 * missing. VERSION_MISMATCH: it was built for another version of assay. */
enum status mpi_plugin_open(struct mpi_plugin *out, struct lib_fact *fact, struct error *err);

extern const struct lib_spec mpi_plugin_lib; /* "mpi_plugin" */
#endif
