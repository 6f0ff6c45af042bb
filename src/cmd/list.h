/* SPDX-License-Identifier: Apache-2.0 */
/* One line per command, sorted. The name is that of the file and of the symbol (command_NAME). */
/* clang-format off */
#define COMMANDS(X) \
	X(archive) \
	X(check) \
	X(compare) \
	X(comprehensive) \
	X(cost) \
	X(demo) \
	X(deploy) \
	X(eval) \
	X(exporter) \
	X(generate) \
	X(health) \
	X(history) \
	X(info) \
	X(ladder) \
	X(launch) \
	X(list_command) \
	X(load) \
	X(make_model) \
	X(merge) \
	X(probe) \
	X(profile) \
	X(quantize) \
	X(report) \
	X(roofline) \
	X(rows) \
	X(serve) \
	X(tokens) \
	X(top) \
	X(train)
/* clang-format on */

/* Internal processes: `assay __NAME`. Help does not show them. */
/* clang-format off */
#define HIDDEN_COMMANDS(X) \
	X(docs) \
	X(engine) \
	X(facts) \
	X(front) \
	X(kernels) \
	X(load_client) \
	X(ranks) \
	X(sample) \
	X(team) \
	X(tracks) \
	X(trainer) \
	X(watch) \
	X(worker)
/* clang-format on */
