/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/script.h"
#include "launch/ssh_command.h"

/* Appends the reason as comment lines. */
static void explain(struct text *t, const char *reason)
{
	for (const char *at = reason, *end; *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, "\n");
		text_add(t, "# ");
		text_add_bytes(t, at, (size_t)(end - at));
		text_add(t, "\n");
	}
}

static void line(struct text *t, const char *reason, const char *text)
{
	explain(t, reason);
	text_add(t, text);
	text_add(t, "\n");
}

static void __attribute__((format(printf, 3, 4)))
linef(struct text *t, const char *reason, const char *format, ...)
{
	va_list args;

	explain(t, reason);
	va_start(args, format);
	text_addv(t, format, args);
	va_end(args);
	text_add(t, "\n");
}

static void add_env(struct command_words *w, const struct launch_plan *p)
{
	struct text all = {0};

	for (size_t i = 0; i < p->env.count; i++)
		text_addf(&all, "%s%s", i ? " " : "", p->env.word[i]);
	command_words_add(w, "--env");
	command_words_add(w, text_str(&all));
	text_release(&all);
}

/* Options that say which ranks these are, if no launcher sets it. */
static void add_places(struct command_words *w, const struct launch_plan *p, unsigned node)
{
	if (node) {
		command_words_add(w, "--first");
		command_words_addf(w, "%u", node * p->ranks);
	}
	command_words_add(w, "--count");
	command_words_addf(w, "%u", p->ranks);
	command_words_add(w, "--size");
	command_words_addf(w, "%u", p->nodes * p->ranks);
}

/* Appends the command that a node executes: `assay __ranks`. */
static void script_ranks(struct command_words *w, const struct launch_plan *p, unsigned node, bool lifeline)
{
	const char *first = p->hosts.count && p->nodes > 1 ? hosts_address(p->hosts.name[0]) : NULL;
	const char *master = p->master ? p->master : first;

	command_words_add(w, p->program);
	command_words_add(w, "__ranks");
	if (p->how == LAUNCH_PLAIN || p->how == LAUNCH_SSH)
		add_places(w, p, node);
	if (master) {
		command_words_add(w, "--master");
		command_words_add(w, master);
	}
	if (p->how == LAUNCH_SSH) {
		command_words_add(w, "--build");
		command_words_add(w, p->build);
		command_words_add(w, "--secret-stdin");
		if (p->folder) {
			command_words_add(w, "--folder");
			command_words_add(w, p->folder);
		}
	}
	if (lifeline)
		command_words_add(w, "--lifeline");
	if (p->how == LAUNCH_SSH && p->env.count)
		add_env(w, p);
	if (p->how == LAUNCH_MPIRUN)
		command_words_add(w, "--shield");
	if (p->how == LAUNCH_SSH || p->how == LAUNCH_SLURM)
		command_words_add(w, "--tell");
	if (!p->derive)
		command_words_add(w, "--no-derive");
	if (p->mpi)
		command_words_add(w, "--mpi");
	command_words_add(w, "--");
	for (size_t i = 0; i < p->words.count; i++)
		command_words_add(w, p->words.word[i]);
}

static void job_line(struct text *t, const struct launch_plan *p)
{
	line(t,
	     "the team's name: a rank that finds rank 0 of another team on these hosts tries the next port",
	     p->how == LAUNCH_SLURM ? "ASSAY_JOB=slurm-$SLURM_JOB_ID"
				    : "ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \\n')");
}

/* The same as secret_write_file, which is used when assay launch starts the ranks itself. */
static void laid_lines(struct text *t, const struct launch_plan *p)
{
	job_line(t, p);
	explain(t,
		"the secret of this team's ranks: new at each start, in the home folder that the nodes share");
	line(t,
	     "mpirun sends the ranks' environment unencrypted to its daemons, so it holds only the file's path",
	     "ASSAY_TEAM_SECRET_FILE=$HOME/.cache/assay/team/$ASSAY_JOB\n"
	     "(umask 077 && mkdir -p \"$HOME/.cache/assay/team\" &&\n"
	     "    od -An -N16 -tx1 /dev/urandom | tr -d ' \\n' > \"$ASSAY_TEAM_SECRET_FILE\") || exit 2\n"
	     "trap 'rm -f \"$ASSAY_TEAM_SECRET_FILE\"' EXIT\n"
	     "trap 'exit 2' HUP INT TERM\n"
	     "export ASSAY_TEAM_SECRET_FILE ASSAY_JOB");
}

/* The same as ranks_team, which is used when assay launch starts the ranks itself. */
static void team_lines(struct text *t, const struct launch_plan *p, const char *how)
{
	struct text reason = {0};

	text_addf(&reason, "the secret of this team's ranks: new at each start, passed %s", how);
	line(t, text_str(&reason), "ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')");
	job_line(t, p);
	if (p->how != LAUNCH_SSH)
		text_add(t, "export ASSAY_TEAM_SECRET ASSAY_JOB\n");
	text_release(&reason);
}

static void told_lines(struct text *t, const struct launch_plan *p)
{
	struct text value = {0};

	for (size_t i = 0; i < p->env.count; i++) {
		const char *equals = strchr(p->env.word[i], '=');

		text_addf(&value, "export %.*s=", (int)(equals - p->env.word[i]), p->env.word[i]);
		command_words_quote(&value, equals + 1);
		line(t, "from --env", text_str(&value));
		text_release(&value);
	}
}

/* Comments on the variables that the nodes will set themselves. */
static void derived_lines(struct text *t, const struct launch_plan *p)
{
	struct text row = {0};

	if (!p->derive) {
		explain(t, "--no-derive: the nodes do not change the environment");
		return;
	}
	explain(t,
		"each node sets the variables that its machine needs when its ranks start, and prints the reasons on "
		"stderr");
	for (size_t i = 0; p->rows && i < p->rows->count; i++) {
		text_addf(&row, "  %s: ", p->machine);
		env_explain(&row, &p->rows->row[i]);
		explain(t, text_str(&row));
		text_release(&row);
	}
}

void script_exports(struct text *t, const struct env_rows *rows)
{
	struct text row = {0};

	for (size_t i = 0; i < rows->count; i++) {
		const struct env_row *r = &rows->row[i];

		env_explain(&row, r);
		explain(t, text_str(&row));
		text_release(&row);
		if (r->kind != ENV_SET)
			continue;
		text_addf(t, "export %s=", r->name);
		command_words_quote(t, r->value);
		text_add(t, "\n");
	}
}

/* Appends `before`, the command that the node executes, and `after`; only the command is quoted. */
static void ranks_line(struct text *t, const struct launch_plan *p, const char *before, const char *after,
		       const char *reason)
{
	struct command_words w = {0};

	explain(t, reason);
	script_ranks(&w, p, 0, false);
	text_add(t, before);
	command_words_join(t, &w);
	text_addf(t, "%s\n", after);
	command_words_release(&w);
}

static void plain(struct text *t, const struct launch_plan *p)
{
	char reason[160];

	team_lines(t, p, "in the environment");
	told_lines(t, p);
	derived_lines(t, p);
	snprintf(
		reason, sizeof(reason),
		"%u %s on this node; each gets ASSAY_RANK, ASSAY_SIZE, ASSAY_LOCAL_RANK, ASSAY_LOCAL_SIZE, ASSAY_HOST",
		p->ranks, p->ranks == 1 ? "rank" : "ranks");
	ranks_line(t, p, "", "", reason);
}

void script_ssh(struct command_words *w, const struct launch_plan *p, unsigned node, bool lifeline)
{
	struct command_words ranks = {0};
	struct text remote = {0};

	script_ranks(&ranks, p, node, lifeline);
	command_words_join(&remote, &ranks);
	ssh_command_words(w, &(struct ssh_command){.config = p->ssh_config,
						   .host = p->hosts.name[node],
						   .remote = text_str(&remote)});
	w->failed = w->failed || ranks.failed || remote.failed;
	text_release(&remote);
	command_words_release(&ranks);
}

static void ssh_line(struct text *t, const struct launch_plan *p, unsigned node)
{
	struct command_words w = {0};
	char reason[96];

	snprintf(reason, sizeof(reason), "node %u of %u: ranks %u to %u", node + 1, p->nodes, node * p->ranks,
		 (node + 1) * p->ranks - 1);
	explain(t, reason);
	script_ssh(&w, p, node, false);
	text_add(t, "echo \"$ASSAY_TEAM_SECRET $ASSAY_JOB\" | ");
	command_words_join(t, &w);
	text_add(t, " &\npids=\"$pids $!\"\n");
	command_words_release(&w);
}

/* Decodes the codes of launch/rank_exit.h. */
static void told_lines_end(struct text *t, const char *told)
{
	text_add(
		t,
		"# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110\n"
		"# to 113; any other code comes from the program that started the ranks: inconclusive\n");
	text_addf(t,
		  "case %s in\n"
		  "0) exit 0 ;;\n"
		  "100|110) exit 75 ;;\n"
		  "102|112) exit 1 ;;\n"
		  "103|113) exit 64 ;;\n"
		  "*) exit 2 ;;\n"
		  "esac\n",
		  told);
}

static void ssh(struct text *t, const struct launch_plan *p)
{
	team_lines(t, p, "through ssh's stdin, not on a command line");
	derived_lines(t, p);
	explain(t, "ssh: only keys and known hosts, no questions; no terminal, agent or X11 forwarding\n"
		   "(assay launch also keeps each stdin open, with --lifeline: ranks that lose it end)");
	text_add(t, "pids=\n");
	for (unsigned node = 0; node < p->nodes; node++)
		ssh_line(t, p, node);
	line(t, "wait until all nodes have ended: the largest code is the team's",
	     "code=0\n"
	     "for pid in $pids; do\n"
	     "    wait \"$pid\"\n"
	     "    told=$?\n"
	     "    case $told in 0|10[0-3]|11[0-3]) ;; 1) told=102 ;; 64) told=103 ;; 75) told=100 ;; *) told=101 ;; esac\n"
	     "    [ $told -le $code ] || code=$told\n"
	     "done");
	told_lines_end(t, "$code");
}

static void again_head(struct text *t)
{
	line(t,
	     "two minutes before the limit, this script gets USR1 and lets the ranks save a checkpoint.\n"
	     "B: Slurm sends the signal to the script alone, which knows then that it has to queue the job again",
	     "#SBATCH --signal=B:USR1@120");
	line(t, "Slurm may begin the job again after a preemption or the failure of a node",
	     "#SBATCH --requeue");
	line(t, "the output of a job that begins again is appended", "#SBATCH --open-mode=append");
}

static void slurm_head(struct text *t, const struct launch_plan *p)
{
	line(t, "the job's name in the queue", "#SBATCH --job-name=assay");
	line(t, "stdout and stderr of all ranks, in the folder of the submission",
	     "#SBATCH --output=assay-%j.out");
	linef(t, p->again ? "the nodes of the run" : "the nodes to test", "#SBATCH --nodes=%u", p->nodes);
	linef(t, p->gpus && p->gpus == p->ranks ? "one rank for each GPU" : "ranks on each node",
	      "#SBATCH --ntasks-per-node=%u", p->ranks);
	if (p->gpus)
		linef(t, "all GPUs of each node", "#SBATCH --gpus-per-node=%u", p->gpus);
	line(t,
	     p->again ? "no other job may share the nodes: the slowest rank decides how long a step takes"
		      : "no other job may run during a measurement",
	     "#SBATCH --exclusive");
	line(t, p->again ? "all memory of each node" : "all memory of each node: host memory is measured too",
	     "#SBATCH --mem=0");
	if (p->time)
		linef(t, "from --time", "#SBATCH --time=%s", p->time);
	if (p->again)
		again_head(t);
	else
		line(t,
		     "half a minute before the limit each rank closes its journal, so that its results are saved",
		     "#SBATCH --signal=TERM@30");
	if (p->partition)
		linef(t, "from --partition", "#SBATCH --partition=%s", p->partition);
	if (p->account)
		linef(t, "from --account", "#SBATCH --account=%s", p->account);
	if (p->sbatch)
		linef(t, "from --sbatch", "#SBATCH %s", p->sbatch);
}

/* Before and after the ranks of a job that may begin again. */
static void again_begin(struct text *t, const struct launch_plan *p)
{
	if (strstr(p->again, "$run"))
		line(t, "the run directory, the same whenever this job begins",
		     "run=assay-runs/slurm-$SLURM_JOB_ID");
	line(t,
	     "USR1 comes from --signal above. The ranks finish their step and save a checkpoint, and the job is queued again",
	     "requeue=no\n"
	     "trap 'requeue=yes; scancel --signal=TERM \"$SLURM_JOB_ID\"' USR1");
	line(t, "Slurm sends TERM to end the job: the script stays until the ranks have saved",
	     "trap : TERM");
}

static void again_end(struct text *t)
{
	line(t, "a signal interrupts wait, so it is repeated until srun has ended",
	     "ranks=$!\n"
	     "while :; do\n"
	     "    wait $ranks\n"
	     "    told=$?\n"
	     "    kill -0 $ranks 2> /dev/null || break\n"
	     "done");
	line(t, "stopped before the end of the run: the job goes back to the queue under its number",
	     "[ $requeue = no ] || [ $told = 0 ] || scontrol requeue \"$SLURM_JOB_ID\"");
}

static void slurm(struct text *t, const struct launch_plan *p)
{
	struct text srun = {0}, reason = {0}, after = {0};

	slurm_head(t, p);
	team_lines(t, p, "by srun in the ranks' environment, not in a file");
	line(t,
	     "an error of srun itself ends the job with 2, inconclusive. Its default of 1 would read as a failed case",
	     "export SLURM_EXIT_ERROR=2");
	told_lines(t, p);
	derived_lines(t, p);
	text_addf(&srun, "srun --mpi=%s --cpu-bind=none", p->plugin);
	text_addf(&reason, "--mpi=%s: %s\n", p->plugin, p->plugin_reason);
	text_add(&reason,
		 "--cpu-bind=none: each rank binds itself to the NUMA node of its GPU; the first rank of a "
		 "node measures all CPUs\n");
	if (p->gpus) {
		text_add(&srun, " --gpu-bind=none");
		text_add(
			&reason,
			"--gpu-bind=none: ranks must see each other's GPUs; each rank selects its own by its "
			"local rank\n");
	}
	text_add(&srun, " --kill-on-bad-exit=0 --wait=0 ");
	text_add(&reason,
		 "--kill-on-bad-exit=0 --wait=0: the loss of one rank must not end the others before they "
		 "close their journals");
	if (p->again) {
		again_begin(t, p);
		text_addf(&after, "%s &", p->again);
		text_add(
			&reason,
			"\n--resume-if-exists: a job that begins again continues the run from its newest checkpoint");
	}
	ranks_line(t, p, text_str(&srun), text_str(&after), text_str(&reason));
	if (p->again)
		again_end(t);
	told_lines_end(t, p->again ? "$told" : "$?");
	text_release(&after);
	text_release(&srun);
	text_release(&reason);
}

static void add_hosts(struct command_words *w, const struct launch_plan *p)
{
	struct text list = {0};

	for (size_t i = 0; i < p->hosts.count; i++) {
		text_addf(&list, "%s%s", i ? "," : "", p->hosts.name[i]);
		if (!p->mpich)
			text_addf(&list, ":%u", p->ranks);
	}
	command_words_add(w, p->mpich ? "-hosts" : "--host");
	command_words_add(w, text_str(&list));
	text_release(&list);
}

/* Open MPI passes on only the variables it is told to; MPICH passes on all. */
static void add_passed_on(struct command_words *w, const struct launch_plan *p)
{
	command_words_add(w, "-x");
	command_words_add(w, "ASSAY_TEAM_SECRET_FILE");
	command_words_add(w, "-x");
	command_words_add(w, "ASSAY_JOB");
	for (size_t i = 0; i < p->env.count; i++) {
		command_words_add(w, "-x");
		command_words_add(w, p->env.word[i]);
	}
}

void script_mpirun(struct command_words *w, const struct launch_plan *p)
{
	command_words_add(w, "mpirun");
	command_words_add(w, "-n");
	command_words_addf(w, "%u", p->nodes * p->ranks);
	command_words_add(w, p->mpich ? "-ppn" : "--map-by");
	command_words_addf(w, p->mpich ? "%u" : "ppr:%u:node", p->ranks);
	command_words_add(w, p->mpich ? "-bind-to" : "--bind-to");
	command_words_add(w, "none");
	if (!p->mpich)
		command_words_add(w, "--oversubscribe");
	if (p->hosts.count)
		add_hosts(w, p);
	if (!p->mpich)
		add_passed_on(w, p);
	script_ranks(w, p, 0, false);
}

/* Follows the mpirun command. Counts as start_mpirun does: mpirun's own exit code, and those that ranks print
 * on stderr. */
static const char others_told[] = " 2>&1 >&3 3>&- 4>&-\n"
				  "    echo $? >&4; } | {\n"
				  "    trap '' HUP INT TERM\n"
				  "    while IFS= read -r line || [ -n \"$line\" ]; do\n"
				  "        printf '%s\\n' \"$line\" >&2\n"
				  "        case $line in\n"
				  "        (*'rank '[1-9]*' ended with exit code 1') echo 102 ;;\n"
				  "        (*'rank '[1-9]*' ended with exit code 64') echo 103 ;;\n"
				  "        (*'rank '[1-9]*' ended with exit code 75') echo 100 ;;\n"
				  "        (*'rank '[1-9]*' ended with exit code '*) echo 101 ;;\n"
				  "        esac\n"
				  "    done; }; } 4>&1)\n"
				  "told=0\n"
				  "for code in ${codes:-101}; do\n"
				  "    case $code in 0|10[0-3]|11[0-3]) ;; *) code=101 ;; esac\n"
				  "    [ $code -le $told ] || told=$code\n"
				  "done\n";

static void mpirun(struct text *t, const struct launch_plan *p)
{
	struct command_words w = {0};

	laid_lines(t, p);
	if (p->mpich)
		told_lines(t, p);
	derived_lines(t, p);
	explain(t,
		p->mpich
			? "MPICH's options; -ppn limits the ranks on each node"
			: "Open MPI's options; ppr limits the ranks on each node, so --oversubscribe can safely "
			  "ignore its slots");
	if (p->nodes > 1 && !p->hosts.count && !p->master)
		explain(t,
			"the host of rank 0 is not known here: in a Slurm job mpirun finds it; otherwise give --master "
			"HOST or --hosts");
	explain(t, "bind-to none: each rank binds itself to the NUMA node of its GPU");
	explain(t,
		"--shield: mpirun ends all ranks when one fails, so only rank 0, the last to end, returns its exit code. "
		"The others\nprint theirs on stderr, which is passed on and counted");
	script_mpirun(&w, p);
	text_add(t, "exec 3>&1\ncodes=$({ { ");
	command_words_join(t, &w);
	text_add(t, others_told);
	told_lines_end(t, "$told");
	command_words_release(&w);
}

void script_write(struct text *t, const struct launch_plan *p)
{
	static void (*const ways[LAUNCH_HOW_COUNT])(struct text *, const struct launch_plan *) = {
		[LAUNCH_PLAIN] = plain, [LAUNCH_SSH] = ssh, [LAUNCH_SLURM] = slurm, [LAUNCH_MPIRUN] = mpirun};

	text_add(t, "#!/bin/sh\n");
	ways[p->how](t, p);
}
