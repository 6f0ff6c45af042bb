/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/mpi_plugin.h"

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct mpi_plugin, field), LIB_NEED_##need},
	MPI_PLUGIN_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libassay-mpi.so", NULL};

const struct lib_spec mpi_plugin_lib = {
	.name = "mpi_plugin",
	.sonames = sonames,
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct mpi_plugin),
	.module = true,
};

enum status mpi_plugin_open(struct mpi_plugin *out, struct lib_fact *fact, struct error *err)
{
	enum status st = lib_open(out, &mpi_plugin_lib, NULL, fact, err);

	if (st || out->border() == MPI_PLUGIN_BORDER)
		return st;
	return error_set_cause(
		err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
		"the MPI plug-in %s was built for another version of assay: its interface is %u, this program's is %d",
		fact && fact->path ? fact->path : sonames[0], out->border(), MPI_PLUGIN_BORDER);
}
