/* SPDX-License-Identifier: Apache-2.0 */
/* assay launch: starts a team of ranks on this node, over ssh, through Slurm or through mpirun. */
#include <limits.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/launch_command.h"
#include "cmd/launch_restart.h"
#include "cmd/list.h"
#include "cmd/shared/counts.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"
#include "launch/route.h"
#include "launch/start.h"
#include "launch/rank_exit.h"

struct launch_opts {
	uint32_t how, nodes, restarts;
	const char *hosts, *hostfile, *gpus, *ranks, *time, *partition, *account, *sbatch, *script, *env,
		*master, *ssh_config, *machine;
	bool derive, mpi, print, wait, exports;
};

enum { HOW_AUTO = 0, CPU_RANKS = 4, LOCAL_RANKS_MAX = 1024 };

#define X(id, name, text) name,
static const char *const hows[] = {"auto", LAUNCH_HOWS(X) NULL};
#undef X

static const struct opt opts[] = {
	OPT_ROW(struct launch_opts, how, .name = "how", .preset = "auto", .choices = hows,
		.help = "how to start the ranks; auto: ssh if hosts are given, slurm with --nodes if sbatch is "
			"installed, otherwise this node only, by mpirun for training on CPUs"),
	OPT_ROW(struct launch_opts, nodes, .name = "nodes", .also = "nnodes", .max = 65536,
		.help = "number of nodes; 0: one per host, or 1"),
	OPT_ROW(struct launch_opts, hosts, .name = "hosts", .also = "host nodelist", .shown = "LIST",
		.help = "hosts, for example gpu1,user@gpu2 or gpu[01-04]; rank 0 runs on the first one"),
	OPT_ROW(struct launch_opts, hostfile, .name = "hostfile", .also = "machinefile", .shown = "FILE",
		.help = "file with one host per line"),
	OPT_ROW(struct launch_opts, gpus, .name = "gpus-per-node", .also = "gpus ngpus gpus-per-task",
		.shown = "N", .help = "GPUs of each node (default: counted on this machine or in --machine)"),
	OPT_ROW(struct launch_opts, ranks, .name = "ranks-per-node",
		.also = "nproc-per-node ntasks-per-node tasks-per-node npernode ppn np", .shown = "N",
		.help = "ranks per node (default: one per GPU; without GPUs up to four)"),
	OPT_ROW(struct launch_opts, time, .name = "time", .also = "timelimit", .shown = "TIME",
		.help = "Slurm: time limit of the job, for example 30 (minutes), 1:30:00 or 1-12 (days-hours)"),
	OPT_ROW(struct launch_opts, partition, .name = "partition", .shown = "NAME",
		.help = "Slurm: partition"),
	OPT_ROW(struct launch_opts, account, .name = "account", .shown = "NAME", .help = "Slurm: account"),
	OPT_ROW(struct launch_opts, sbatch, .name = "sbatch", .shown = "WORDS",
		.help = "Slurm: options for one more #SBATCH line"),
	OPT_ROW(struct launch_opts, script, .name = "script", .shown = "FILE",
		.help = "Slurm: save the job script to FILE, also with --print"),
	OPT_ROW(struct launch_opts, restarts, .name = "restarts", .also = "max-restarts", .max = 1000,
		.help = "train: if ranks are lost, start again at most this many times. The run continues from its "
			"newest checkpoint, without hosts that do not answer"),
	OPT_ROW(struct launch_opts, env, .name = "env", .also = "export", .shown = "WORDS",
		.help = "environment variables for all ranks: NAME=value words, separated by blanks"),
	OPT_ROW(struct launch_opts, derive, .name = "derive", .preset = "true",
		.help = "each node sets the environment variables for its own machine"),
	OPT_ROW(struct launch_opts, mpi, .name = "mpi",
		.help = "the ranks call MPI themselves: adds srun --mpi=pmix and UCX's ports"),
	OPT_ROW(struct launch_opts, master, .name = "master", .also = "master-addr rdzv-endpoint",
		.shown = "HOST[:PORT]", .help = "address at which the other ranks reach rank 0"),
	OPT_ROW(struct launch_opts, ssh_config, .name = "ssh-config", .shown = "FILE",
		.help = "configuration file for ssh -F: ports, keys, host names"),
	OPT_ROW(struct launch_opts, machine, .name = "machine", .shown = "DIR",
		.help = "a recorded machine: show the environment for such a node"),
	OPT_ROW(struct launch_opts, print, .name = "print",
		.help = "show the script with a reason for each line; start nothing"),
	OPT_ROW(struct launch_opts, exports, .name = "exports",
		.help = "show this machine's environment variables as export lines with reasons; start nothing"),
	OPT_ROW(struct launch_opts, wait, .name = "wait",
		.help = "Slurm: wait for the job, show its output and end with its exit code"),
};

/* Everything that a launch plan points to. */
struct filled {
	struct launch_plan plan;
	struct env_rows rows;
	char program[PATH_MAX], folder[PATH_MAX], build[PROCESS_BUILD], label[160], route[64];
	char *env_text;
	const char *env[64];
	const char
		*words[COMMAND_WORDS_MAX + 4]; /* with --restarts: the command, with its words of `again` */
	char again[64];
};

static const char *const check_quick[] = {"check", "quick"};

static enum status take_words(struct launch_plan *p, const struct command_context *c, struct error *err)
{
	p->words = c->rest;
	if (!p->words.count)
		p->words = (struct opt_words){check_quick, 2};
	return launch_command_check(&p->words, "launch", err);
}

static enum status take_env(struct filled *f, const char *text, struct error *err)
{
	char *save = NULL;
	size_t n = 0;

	f->env_text = strdup(text ? text : "");
	if (!f->env_text)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "out of memory for --env");
	for (char *w = strtok_r(f->env_text, " ", &save); w && n < 63; w = strtok_r(NULL, " ", &save))
		f->env[n++] = w;
	f->plan.env = (struct opt_words){f->env, n};
	return STATUS_OK;
}

static enum status take_hosts(struct launch_plan *p, const struct launch_opts *o, struct error *err)
{
	if (o->hosts && o->hostfile)
		return error_set(err, STATUS_BAD_INPUT,
				 "--hosts and --hostfile cannot be combined: give one");
	if (o->hosts)
		return hosts_parse(&p->hosts, o->hosts, "--hosts", err);
	return o->hostfile ? hosts_read(&p->hosts, o->hostfile, err) : STATUS_OK;
}

static enum status choose_how(struct launch_plan *p, const struct launch_opts *o, struct error *err)
{
	if (o->how != HOW_AUTO)
		p->how = (enum launch_how)(o->how - 1);
	else
		p->how = p->hosts.count		       ? LAUNCH_SSH
			 : o->nodes && slurm_is_here() ? LAUNCH_SLURM
						       : LAUNCH_PLAIN;
	p->nodes = o->nodes ? o->nodes : p->hosts.count ? (unsigned)p->hosts.count : 1;
	if (p->how == LAUNCH_SSH && !p->hosts.count)
		return error_set(err, STATUS_BAD_INPUT, "--how ssh needs --hosts or --hostfile");
	if (p->how == LAUNCH_PLAIN && (p->nodes > 1 || p->hosts.count))
		return error_set(err, STATUS_BAD_INPUT,
				 "%u nodes, but %s: give --hosts, or --how slurm or mpirun", p->nodes,
				 o->how ? "--how plain uses only this node" : "sbatch is not installed here");
	if (p->how == LAUNCH_SLURM && p->hosts.count)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--hosts does not work with Slurm, which chooses the nodes: use --sbatch --nodelist=..");
	return STATUS_OK;
}

/* Refuses options that only another launch method uses. */
static enum status check_options(const struct launch_plan *p, const struct launch_opts *o, struct error *err)
{
	const struct {
		bool given;
		const char *name;
		enum launch_how how;
	} rows[] = {{o->time, "--time", LAUNCH_SLURM},		{o->partition, "--partition", LAUNCH_SLURM},
		    {o->account, "--account", LAUNCH_SLURM},	{o->sbatch, "--sbatch", LAUNCH_SLURM},
		    {o->wait, "--wait", LAUNCH_SLURM},		{o->script, "--script", LAUNCH_SLURM},
		    {o->ssh_config, "--ssh-config", LAUNCH_SSH}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].given && rows[i].how != p->how)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s works only with --how %s, but this launch uses %s", rows[i].name,
					 hows[rows[i].how + 1], hows[p->how + 1]);
	return STATUS_OK;
}

/* True if the only node is this machine. */
static bool is_here(const struct launch_plan *p)
{
	return p->how == LAUNCH_PLAIN || (p->how == LAUNCH_MPIRUN && p->nodes == 1 && !p->hosts.count);
}

static enum status take_counts(struct launch_plan *p, const struct launch_opts *o,
			       const struct command_context *c, struct error *err)
{
	unsigned cpus = CPU_RANKS;
	enum status st = STATUS_OK;

	if (o->gpus)
		st = counts_number(&p->gpus, "--gpus-per-node", o->gpus, LOCAL_RANKS_MAX, err);
	else if (o->machine || is_here(p))
		st = counts_of_machine(&p->gpus, &cpus, o->machine, c, err);
	else if (!o->ranks)
		st = error_set(err, STATUS_BAD_INPUT,
			       "the number of GPUs per node is not known: give --gpus-per-node, "
			       "--ranks-per-node or --machine");
	cpus = cpus < CPU_RANKS ? cpus : CPU_RANKS;
	p->ranks = p->gpus ? p->gpus : cpus ? cpus : 1;
	if (!st && o->ranks)
		st = counts_number(&p->ranks, "--ranks-per-node", o->ranks, LOCAL_RANKS_MAX, err);
	return st;
}

/* Ranks without a GPU communicate by MPI, which mpirun or srun --mpi=pmix must start. */
static void choose_mpi(struct launch_plan *p, const struct launch_opts *o)
{
	if (p->gpus || p->nodes * p->ranks < 2 || !launch_words_mpi(&p->words))
		return;
	p->mpi = true;
	if (o->how == HOW_AUTO && p->how == LAUNCH_PLAIN)
		p->how = LAUNCH_MPIRUN;
}

/* Finds the environment variables for this machine or a recorded one; none if the nodes are other
 * machines. */
static enum status take_rows(struct filled *f, const struct launch_opts *o, const struct command_context *c,
			     struct error *err)
{
	struct launch_plan *p = &f->plan;
	struct env_setting wish = {.ranks = p->ranks, .nodes = p->nodes, .mpi = p->mpi};
	enum status st;

	if (!o->machine && p->how != LAUNCH_PLAIN && !o->exports)
		return STATUS_OK;
	if (o->exports && p->hosts.count &&
	    route_interface(f->route, sizeof(f->route), hosts_address(p->hosts.name[0])))
		wish.route = f->route;
	st = env_read(&f->rows, &wish, o->machine, f->label, c->stop, c->log, err);
	p->rows = &f->rows;
	p->machine = f->label;
	return st;
}

static enum status find_program(struct filled *f, struct error *err)
{
	ssize_t n = readlink("/proc/self/exe", f->program, sizeof(f->program) - 1);

	if (n <= 0)
		return error_set(err, STATUS_UNAVAILABLE,
				 "cannot find this program's own path: /proc/self/exe");
	f->program[n] = '\0';
	process_build(f->build);
	f->plan.program = f->program;
	f->plan.folder = getcwd(f->folder, sizeof(f->folder));
	f->plan.build = f->build;
	return STATUS_OK;
}

static enum status fill(struct filled *f, const struct launch_opts *o, const struct command_context *c,
			struct error *err)
{
	struct launch_plan *p = &f->plan;
	enum status st;

	p->master = o->master;
	p->derive = o->derive;
	p->mpi = o->mpi;
	p->time = o->time;
	p->partition = o->partition;
	p->account = o->account;
	p->sbatch = o->sbatch;
	p->ssh_config = o->ssh_config;
	st = take_words(p, c, err);
	if (!st)
		st = take_env(f, o->env, err);
	if (!st)
		st = take_hosts(p, o, err);
	if (!st)
		st = choose_how(p, o, err);
	if (!st)
		st = check_options(p, o, err);
	if (!st)
		st = take_counts(p, o, c, err);
	if (!st)
		choose_mpi(p, o);
	if (!st)
		st = launch_words_single(&p->words, p->nodes * p->ranks, err);
	if (!st)
		p->again = launch_words_again(&p->words);
	if (!st)
		st = find_program(f, err);
	return st ? st : launch_check(p, err);
}

static void to_stdout(const char *data, size_t size)
{
	struct text t = {0};

	text_add_bytes(&t, data, size);
	show_text(&t, UTF8_KEEP_NOTHING);
	show_flush();
	text_release(&t);
}

static enum status start_plain(const struct launch_plan *p, const struct filled *f, const struct starting *s,
			       int *code, struct error *err)
{
	const char *words[COMMAND_WORDS_MAX + 1] = {0};
	const struct ranks r = {.count = p->ranks,
				.size = p->ranks,
				.host = "127.0.0.1",
				.words = words,
				.stop = s->stop,
				.preempted = s->preempted,
				.saves = s->saves,
				.lifeline = -1,
				.log = s->log};
	enum status st;
	int told = 0;

	for (size_t i = 0; i < p->words.count; i++)
		words[i] = p->words.word[i];
	for (size_t i = 0; i < p->env.count; i++) {
		char *equals = strchr(f->env[i], '=');

		*equals = '\0';
		setenv(f->env[i], equals + 1, 1);
		*equals = '=';
	}
	ranks_report(s->team->secret, s->team->job);
	if (p->derive)
		env_apply(&f->rows, s->log);
	if (p->gpus && p->ranks > 1)
		log_info(s->log, LOG_TOPIC_RUN,
			 "one node: without launch, assay %s uses all GPUs from one process",
			 p->words.word[0]);
	st = ranks_run(&r, &told, err);
	*code = rank_exit_code(told);
	return st;
}

static enum status start_slurm(const struct launch_plan *p, const struct launch_opts *o,
			       const struct starting *s, int *code, struct error *err)
{
	unsigned long job = 0;
	enum status st = slurm_submit(&job, p, o->script, s, err);

	*code = EXIT_PASS;
	if (st)
		return st;
	if (o->wait) {
		log_info(s->log, LOG_TOPIC_RUN, "submitted job %lu", job);
		return slurm_follow(job, s, code, err);
	}
	printf("%lu\n", job);
	return STATUS_OK;
}

static enum status start(const struct filled *f, const struct launch_opts *o, const struct command_context *c,
			 int *code, struct error *err)
{
	struct ranks_team team;
	const struct starting s = {.team = &team,
				   .stop = c->stop,
				   .preempted = c->preempted,
				   .saves = launch_words_saves(&f->plan.words),
				   .log = c->log,
				   .out = to_stdout};
	enum status st = ranks_team(&team, err);

	if (st)
		return st;
	switch (f->plan.how) {
	case LAUNCH_SSH:
		return start_ssh(&f->plan, &s, code, err);
	case LAUNCH_SLURM:
		return start_slurm(&f->plan, o, &s, code, err);
	case LAUNCH_MPIRUN:
		return start_mpirun(&f->plan, &s, code, err);
	default:
		return start_plain(&f->plan, f, &s, code, err);
	}
}

/* Queries Slurm or mpirun before a script can be written. With --print, mpirun need not be installed here. */
static enum status ask_around(struct launch_plan *p, bool print, const struct command_context *c,
			      struct error *err)
{
	enum status st = STATUS_OK;

	if (p->how == LAUNCH_SLURM)
		slurm_plugin(p, c->stop);
	else if (p->how == LAUNCH_MPIRUN)
		st = mpirun_is_mpich(&p->mpich, c->stop, err);
	if (!st || !print)
		return st;
	log_info(c->log, LOG_TOPIC_RUN, "%s: showing the command for Open MPI", err->text);
	*err = (struct error){0};
	return STATUS_OK;
}

static enum status print(const struct filled *f, const struct launch_opts *o, struct error *err)
{
	struct text t = {0};
	enum status st = STATUS_OK;

	if (o->exports)
		script_exports(&t, &f->rows);
	else
		script_write(&t, &f->plan);
	if (o->script)
		st = file_write(o->script, text_str(&t), t.size, err);
	if (!st)
		show_text(&t, UTF8_KEEP_NOTHING);
	text_release(&t);
	return st;
}

/* A start of the ranks, for launch_restart. */
struct starting_again {
	const struct filled *f;
	const struct launch_opts *o;
	const struct command_context *c;
};

static enum status start_ranks(void *arg, int *code, struct error *err)
{
	const struct starting_again *s = arg;

	return start(s->f, s->o, s->c, code, err);
}

static enum status start_all(struct filled *f, const struct launch_opts *o, const struct command_context *c,
			     int *code, struct error *err)
{
	struct starting_again s = {f, o, c};
	const struct launch_restart r = {
		.plan = &f->plan, .restarts = o->restarts, .c = c, .start = start_ranks, .arg = &s};

	return launch_restart(&r, code, err);
}

static int run(const struct command_context *c, const void *values)
{
	const struct launch_opts *o = values;
	struct filled f = {0};
	struct error err = {0};
	int code = EXIT_PASS;
	enum status st = fill(&f, o, c, &err);

	if (!st)
		st = launch_restart_words(&f.plan, o->restarts, f.words, &err);
	if (!st && !o->exports)
		st = ask_around(&f.plan, o->print, c, &err);
	if (!st)
		st = take_rows(&f, o, c, &err);
	if (!st && (o->print || o->exports))
		st = print(&f, o, &err);
	else if (!st)
		st = start_all(&f, o, c, &code, &err);
	if (st)
		code = command_complain(c, &err);
	free(f.env_text);
	hosts_release(&f.plan.hosts);
	return code;
}

const struct command command_launch = {
	.name = "launch",
	.summary =
		"start assay as several parallel processes (ranks): on this node, over ssh, through Slurm or "
		"mpirun",
	.example = "assay launch --hosts gpu1,gpu2 --gpus-per-node 8 -- check quick   # 16 ranks, one report "
		   "of both nodes",
	.help = "Starts an assay command on every rank (process). The words after -- are the command "
		"(default: check quick). Each node sets the environment variables that its own machine needs "
		"(threads, network interface, InfiniBand ports) and logs the reason. It changes no variable "
		"that you have set, and sets none whose default is right. --exports prints them for other "
		"programs.\n\n"
		"Over ssh, each host needs an OpenSSH server that accepts your key, an entry in known_hosts, "
		"and the same build of assay at the same path. For Slurm, assay writes a job script with the "
		"reason above each line. --print shows it. The ranks share a secret that is new for each "
		"launch and appears on no command line and in no file.\n\n"
		"The exit code is that of rank 0. If the ranks did not join, or if rank 0 succeeded and "
		"another rank did not, it is the worst exit code of all ranks: 64, then 1, then 2 (also for "
		"a signal), then 75, then 0. With --wait, it is the job's exit code. 64 wrong usage. 2 a "
		"host or a program cannot be used. 75 TERM or USR1 stopped training, and a checkpoint is "
		"saved.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct launch_opts)},
	.rest = "[-- COMMAND [WORD...]]",
	.run = run,
};
