/* SPDX-License-Identifier: Apache-2.0 */
/* The command `assay deploy`: its options, the report of the fleet, and files for other systems. */
#ifndef CMD_DEPLOY_DEPLOY_H
#define CMD_DEPLOY_DEPLOY_H
#include "cmd/command.h"
#include "deploy/deploy.h"

struct deploy_opts {
	uint32_t as, nodes, port;
	const char *hostfile, *bundle, *send, *env, *ssh_config, *remote_dir, *resume, *out, *gpus, *machine;
	const char *image, *space, *name, *time, *partition, *account;
	bool accept_new, keep, stop;
	double patience;
	uint64_t fetch_most;
	struct opt_words hosts;
};

/* Writes the report of all runs that came back into the deployment's folder, and prints the table of hosts
 * and the comparison. *code: the exit code of the command. */
enum status fleet_report(const struct deploy *d, const struct command_context *c, int *code,
			 struct error *err);
/* Appends the file of --as. BAD_INPUT names the option; so it is when the file needs a number of GPUs that
 * neither an option nor this machine gives. */
enum status print_file(struct text *out, const struct deploy_opts *o, const struct opt_words *words,
		       const struct command_context *c, struct error *err);
#endif
