/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the file of `assay deploy --as`. */
#include <limits.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cmd/deploy/deploy.h"
#include "cmd/launch_command.h"
#include "cmd/shared/counts.h"
#include "deploy/generate/generate.h"
#include "journal/metrics/metrics.h"
#include "launch/script.h"

/* Slurm's own options have the same rules as for assay launch. */
static enum status check_slurm(const struct generate_plan *p, struct error *err)
{
	const struct launch_plan l = {.how = LAUNCH_SLURM,
				      .program = p->program,
				      .build = "",
				      .words = p->words,
				      .nodes = p->nodes,
				      .ranks = 1,
				      .gpus = p->gpus,
				      .time = p->time,
				      .partition = p->partition,
				      .account = p->account};

	return launch_check(&l, err);
}

static enum status check_options(const struct deploy_opts *o, struct error *err)
{
	const struct {
		bool given;
		const char *name;
	} of_ssh[] = {{o->hosts.count, "hosts"},
		      {o->hostfile, "--hostfile"},
		      {o->out, "--out"},
		      {o->resume, "--resume"},
		      {o->stop, "--stop"},
		      {o->send, "--send"},
		      {o->env, "--env"},
		      {o->ssh_config, "--ssh-config"},
		      {o->accept_new, "--accept-new"},
		      {o->remote_dir, "--remote-dir"},
		      {o->keep, "--keep"}};

	for (size_t i = 0; i < sizeof(of_ssh) / sizeof(of_ssh[0]); i++)
		if (of_ssh[i].given)
			return error_set(err, STATUS_BAD_INPUT,
					 "deploy: %s cannot be combined with --as, which starts nothing",
					 of_ssh[i].name);
	return STATUS_OK;
}

/* The GPUs of each node: as the option says, else as many as this or the recorded machine has. A machine
 * without a GPU is more likely one to log in than like the nodes. */
static enum status take_gpus(struct generate_plan *p, const struct deploy_opts *o,
			     const struct command_context *c, struct error *err)
{
	enum { MOST = 1024 };
	unsigned cpus;
	enum status st;

	if (o->gpus)
		return counts_number(&p->gpus, "--gpus-per-node", o->gpus, MOST, err);
	if (p->kind != GENERATE_SLURM_ARRAY && p->kind != GENERATE_JOB && p->kind != GENERATE_DAEMONSET)
		return STATUS_OK;
	st = counts_of_machine(&p->gpus, &cpus, o->machine, c, err);
	if (!st && !p->gpus && !o->machine)
		st = error_set(
			err, STATUS_BAD_INPUT,
			"the number of GPUs per node is not known, because this machine has no GPU: give "
			"--gpus-per-node (0 for nodes without GPUs) or --machine");
	return st;
}

enum status print_file(struct text *out, const struct deploy_opts *o, const struct opt_words *words,
		       const struct command_context *c, struct error *err)
{
	char program[PATH_MAX] = "";
	struct utsname machine = {0};
	struct generate_plan p = {.kind = (enum generate_kind)(o->as - 1),
				  .words = *words,
				  .program = program,
				  .nodes = o->nodes,
				  .port = o->port,
				  .image = o->image,
				  .space = o->space,
				  .name = o->name,
				  .time = o->time,
				  .partition = o->partition,
				  .account = o->account,
				  .waiting = metric_row(METRIC_REQUESTS_WAITING)->name,
				  .cache_use = metric_row(METRIC_CACHE_USE)->name,
				  .arch = machine.machine};
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	enum status st = check_options(o, err);

	program[n > 0 ? n : 0] = '\0';
	uname(&machine);
	if (!st)
		st = launch_command_check(words, "deploy", err);
	if (!st)
		st = generate_check(&p, err);
	if (!st)
		st = take_gpus(&p, o, c, err);
	if (!st && p.kind == GENERATE_SLURM_ARRAY)
		st = check_slurm(&p, err);
	if (st)
		return st;
	generate_write(out, &p);
	return out->failed
		       ? error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the file")
		       : STATUS_OK;
}
