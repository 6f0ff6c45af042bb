/* SPDX-License-Identifier: Apache-2.0 */
/* An array job of Slurm: each task checks one whole node by itself. `assay launch --how slurm` starts one run
 * of all nodes instead. */
#include "deploy/generate/generate.h"
#include "launch/command_words.h"

static void line(struct text *t, const char *reason, const char *text)
{
	generate_reason(t, 0, reason);
	text_addf(t, "%s\n", text);
}

static void __attribute__((format(printf, 3, 4)))
linef(struct text *t, const char *reason, const char *format, ...)
{
	va_list args;

	generate_reason(t, 0, reason);
	va_start(args, format);
	text_addv(t, format, args);
	va_end(args);
	text_add(t, "\n");
}

static void head(struct text *t, const struct generate_plan *p)
{
	text_add(t, "#!/bin/sh\n");
	linef(t, "the job's name in the queue", "#SBATCH --job-name=%s", p->name);
	linef(t, "one task for each node", "#SBATCH --array=1-%u", p->nodes);
	line(t, "stdout and stderr of each task, in the folder of the submission",
	     "#SBATCH --output=%x-%A-%a.out");
	line(t, "a task has one node", "#SBATCH --nodes=1");
	line(t, "and one process, which measures all devices of the node", "#SBATCH --ntasks=1");
	if (p->gpus)
		linef(t, "all GPUs of the node", "#SBATCH --gpus-per-node=%u", p->gpus);
	line(t, "no other job may run during a measurement, and two tasks never share a node",
	     "#SBATCH --exclusive");
	line(t, "all memory of the node: host memory is measured too", "#SBATCH --mem=0");
	line(t, "do not run a failed task again: this would hide a fault that comes and goes",
	     "#SBATCH --no-requeue");
	if (p->time)
		linef(t, "from --time; for each task", "#SBATCH --time=%s", p->time);
	line(t,
	     "half a minute before the limit Slurm sends TERM. assay then closes its journal, so that its "
	     "results are saved.\n"
	     "B: Slurm sends the signal to this script only. The last line replaces the script by assay",
	     "#SBATCH --signal=B:TERM@30");
	if (p->partition)
		linef(t, "from --partition", "#SBATCH --partition=%s", p->partition);
	if (p->account)
		linef(t, "from --account", "#SBATCH --account=%s", p->account);
}

void generate_slurm_array(struct text *t, const struct generate_plan *p)
{
	head(t, p);
	linef(t, "a folder for each node, named by the job and the node",
	      "node=$SLURM_SUBMIT_DIR/%s-$SLURM_ARRAY_JOB_ID/$SLURMD_NODENAME", p->name);
	line(t,
	     "Slurm may give a node to a second task after the first one has ended. That task ends here, "
	     "because the\n"
	     "node has been checked. If there are fewer folders than tasks at the end, submit the array "
	     "again for the other nodes",
	     "mkdir -p \"${node%/*}\" || exit 2\n"
	     "mkdir \"$node\" 2> /dev/null || { [ -d \"$node\" ] || exit 2; echo \"$SLURMD_NODENAME was checked by another task of this array\"; exit 0; }\n"
	     "cd \"$node\" || exit 2");
	generate_reason(t, 0,
			"the exit code of assay is that of the task: 0 passed, 1 failed, 2 inconclusive");
	text_add(t, "exec ");
	command_words_quote(t, p->program);
	for (size_t i = 0; i < p->words.count; i++) {
		text_add(t, " ");
		command_words_quote(t, p->words.word[i]);
	}
	text_addf(
		t,
		"\n# afterwards, in the same folder: assay roofline %s-JOB/*/assay-runs/*; assay compare --as fleet "
		"%s-JOB/*/assay-runs/*\n",
		p->name, p->name);
}
