/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the file of `assay deploy --as`. */
#include <limits.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cmd/deploy/deploy.h"
#include "cmd/launch_command.h"
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

enum status print_file(struct text *out, const struct deploy_opts *o, const struct opt_words *words,
		       struct error *err)
{
	char program[PATH_MAX] = "";
	struct utsname machine = {0};
	struct generate_plan p = {.kind = (enum generate_kind)(o->as - 1),
				  .words = *words,
				  .program = program,
				  .nodes = o->nodes,
				  .gpus = o->gpus,
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
	if (!st && p.kind == GENERATE_SLURM_ARRAY)
		st = check_slurm(&p, err);
	if (st)
		return st;
	generate_write(out, &p);
	return out->failed
		       ? error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the file")
		       : STATUS_OK;
}
