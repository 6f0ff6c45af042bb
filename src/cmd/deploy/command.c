/* SPDX-License-Identifier: Apache-2.0 */
/* assay deploy: runs one command on many hosts that do not have assay. */
#include "cmd/deploy/deploy.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/launch_command.h"
#include "cmd/shared/run_dirs.h"
#include "cmd/shared/show.h"
#include "core/file/file.h"
#include "deploy/generate/generate.h"

enum { WORDS_MAX = 64 };

#define X(id, name, text) name,
static const char *const ways[] = {"ssh", GENERATE_KINDS(X) NULL};
#undef X

static const struct opt opts[] = {
	OPT_ROW(struct deploy_opts, as, .name = "as", .preset = "ssh", .choices = ways,
		.help = "ssh: run on the hosts now. All others print a file for another system and start nothing"),
	OPT_ROW(struct deploy_opts, hostfile, .name = "hostfile", .also = "machinefile", .shown = "FILE",
		.help = "file with one host per line"),
	OPT_ROW(struct deploy_opts, out, .name = "out", .also = "output output-dir o", .shown = "DIR",
		.help = "folder on this machine (default: assay-runs/DATE-deploy)"),
	OPT_ROW(struct deploy_opts, resume, .name = "resume", .also = "continue restart", .shown = "DIR",
		.help = "continue the deployment in DIR: follow its runs, fetch their files, clean the hosts"),
	OPT_ROW(struct deploy_opts, stop, .name = "stop", .also = "cancel kill",
		.help = "with --resume: end the runs, then fetch their files"),
	OPT_ROW(struct deploy_opts, bundle, .name = "bundle", .shown = "DIR",
		.help = "unpacked bundle to copy (default: this program's own, or that of its build folder)"),
	OPT_ROW(struct deploy_opts, send, .name = "send", .shown = "FILES",
		.help = "files that the command reads, separated by commas. assay copies them into its working folder"),
	OPT_ROW(struct deploy_opts, env, .name = "env", .also = "export", .shown = "WORDS",
		.help = "environment variables of the command: NAME=value words, separated by blanks"),
	OPT_ROW(struct deploy_opts, ssh_config, .name = "ssh-config", .shown = "FILE",
		.help = "configuration file for ssh -F: users, ports, jump hosts, keys"),
	OPT_ROW(struct deploy_opts, accept_new, .name = "accept-new",
		.help = "save the keys of hosts that are not known yet. A changed key is refused all the same"),
	OPT_ROW(struct deploy_opts, remote_dir, .name = "remote-dir", .shown = "DIR",
		.help = "folder on the hosts (default: assay/deploy in $XDG_CACHE_HOME or $HOME/.cache)"),
	OPT_ROW(struct deploy_opts, keep, .name = "keep",
		.help = "leave the program on the hosts, so that the next deployment copies only what differs"),
	OPT_ROW(struct deploy_opts, patience, .name = "patience", .preset = "2min", .unit = "s", .min = 1,
		.max = 1e6, .help = "time without an answer after which a host counts as lost"),
	OPT_ROW(struct deploy_opts, fetch_most, .name = "fetch-most", .preset = "4GiB", .unit = "B", .min = 1,
		.max = 1e15, .help = "most bytes that one host may send back"),
	OPT_ROW(struct deploy_opts, nodes, .name = "nodes", .preset = "1", .min = 1, .max = 65536,
		.help = "for --as: number of nodes. For kubernetes-hpa it is the largest number of pods, at least 2"),
	OPT_ROW(struct deploy_opts, gpus, .name = "gpus-per-node", .also = "gpus", .shown = "N",
		.help = "for --as, GPUs of each node, or 0 (default: counted on this machine or in --machine)"),
	OPT_ROW(struct deploy_opts, machine, .name = "machine", .shown = "DIR",
		.help = "for --as: count the GPUs of this recorded machine (assay info --record)"),
	OPT_ROW(struct deploy_opts, image, .name = "image", .shown = "NAME",
		.help = "for Kubernetes: the container image (--as containerfile prints its recipe)"),
	OPT_ROW(struct deploy_opts, space, .name = "namespace", .preset = "default", .shown = "NAME",
		.help = "for Kubernetes: the namespace"),
	OPT_ROW(struct deploy_opts, name, .name = "name", .preset = "assay", .shown = "NAME",
		.help = "for --as: name of the job or service"),
	OPT_ROW(struct deploy_opts, port, .name = "port", .preset = "8000", .min = 1, .max = 65535,
		.help = "for a ServiceMonitor: port of assay serve"),
	OPT_ROW(struct deploy_opts, time, .name = "time", .also = "timelimit", .shown = "TIME",
		.help = "time limit of each task of Slurm, for example 30 (minutes) or 1:30:00"),
	OPT_ROW(struct deploy_opts, partition, .name = "partition", .shown = "NAME",
		.help = "for Slurm: partition"),
	OPT_ROW(struct deploy_opts, account, .name = "account", .shown = "NAME",
		.help = "for Slurm: account"),
	OPT_ROW(struct deploy_opts, hosts, .name = "host", .positional = true, .many = true, .shown = "HOST",
		.help = "hosts, for example gpu1 user@gpu2 gpu[03-20]"),
};

static const char *const check_quick[] = {"check", "quick"};

/* What the options point to. */
struct filled {
	struct deploy deploy;
	struct hosts hosts;
	char bundle[PATH_MAX], ssh_config[PATH_MAX];
	char *env_text, *send_text;
	const char *env[WORDS_MAX], *send[WORDS_MAX];
};

static enum status split(struct opt_words *out, const char **words, char **copy, const char *text,
			 const char *between, const char *option, struct error *err)
{
	char *save = NULL;
	size_t n = 0;

	*copy = strdup(text ? text : "");
	if (!*copy)
		return error_errno(err, ENOMEM, "no memory for %s", option);
	for (char *w = strtok_r(*copy, between, &save); w; w = strtok_r(NULL, between, &save)) {
		if (n == WORDS_MAX)
			return error_set(err, STATUS_BAD_INPUT, "%s has more than %d entries", option,
					 WORDS_MAX);
		words[n++] = w;
	}
	*out = (struct opt_words){words, n};
	return STATUS_OK;
}

static enum status check_env(const struct opt_words *env, struct error *err)
{
	static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

	for (size_t i = 0; i < env->count; i++) {
		size_t n = strspn(env->word[i], name);

		if (!n || env->word[i][n] != '=' || (*env->word[i] >= '0' && *env->word[i] <= '9'))
			return error_set(err, STATUS_BAD_INPUT,
					 "--env: \"%.60s\" is not written as NAME=value", env->word[i]);
	}
	return STATUS_OK;
}

/* The words are lines of a script on the node. */
static enum status check_words(const struct opt_words *words, struct error *err)
{
	for (size_t i = 0; i < words->count; i++)
		for (const char *c = words->word[i]; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 127)
				return error_set(err, STATUS_BAD_INPUT,
						 "deploy: \"%.40s\" after -- contains control characters",
						 words->word[i]);
	return launch_command_check(words, "deploy", err);
}

static enum status take_hosts(struct hosts *h, const struct deploy_opts *o, struct error *err)
{
	struct text all = {0};
	enum status st = STATUS_OK;

	if (o->hosts.count && o->hostfile)
		return error_set(err, STATUS_BAD_INPUT,
				 "deploy: hosts and --hostfile cannot be combined: give one");
	if (o->hostfile)
		return hosts_read(h, o->hostfile, err);
	if (!o->hosts.count)
		return error_set(err, STATUS_BAD_INPUT,
				 "no hosts given: assay deploy HOST.. -- COMMAND, or --hostfile FILE");
	for (size_t i = 0; i < o->hosts.count; i++)
		text_addf(&all, "%s%s", i ? "," : "", o->hosts.word[i]);
	st = all.failed ? error_errno(err, ENOMEM, "no memory for the hosts")
			: hosts_parse(h, text_str(&all), "deploy", err);
	text_release(&all);
	return st;
}

/* A configuration file is named in DEPLOY_FILE, so that --resume works from another folder. */
static enum status whole_path(char out[PATH_MAX], const char *path, const char *option, struct error *err)
{
	return realpath(path, out)
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT, "%s %s: %s", option, path, strerror(errno));
}

static enum status fill_new(struct filled *f, const struct deploy_opts *o, const struct command_context *c,
			    struct error *err)
{
	struct deploy_job *j = &f->deploy.job;
	char found[PATH_MAX];
	enum status st;

	*j = (struct deploy_job){.bundle = f->bundle,
				 .remote_dir = o->remote_dir,
				 .accept_new = o->accept_new,
				 .keep = o->keep,
				 .fetch_most = o->fetch_most,
				 .words = c->rest.count ? c->rest : (struct opt_words){check_quick, 2}};
	if (o->stop)
		return error_set(err, STATUS_BAD_INPUT, "--stop needs --resume DIR");
	if (o->remote_dir && (*o->remote_dir != '/' || o->remote_dir[strcspn(o->remote_dir, "\r\n")]))
		return error_set(err, STATUS_BAD_INPUT, "--remote-dir %s is not an absolute path",
				 o->remote_dir);
	st = check_words(&j->words, err);
	if (!st)
		st = take_hosts(&f->hosts, o, err);
	if (!st)
		st = deploy_hosts(&f->deploy, &f->hosts, err);
	if (!st)
		st = split(&j->env, f->env, &f->env_text, o->env, " ", "--env", err);
	if (!st)
		st = check_env(&j->env, err);
	if (!st)
		st = split(&j->send, f->send, &f->send_text, o->send, ",", "--send", err);
	if (!st && o->ssh_config) {
		st = whole_path(f->ssh_config, o->ssh_config, "--ssh-config", err);
		j->ssh_config = f->ssh_config;
	}
	if (!st)
		st = bundle_find(found, o->bundle, err);
	if (!st)
		st = whole_path(f->bundle, found, "--bundle", err);
	return st;
}

static enum status fill_resumed(struct filled *f, const struct deploy_opts *o,
				const struct command_context *c, struct error *err)
{
	if (o->hosts.count || o->hostfile || c->rest.count || o->out || o->bundle || o->send || o->env ||
	    o->ssh_config || o->remote_dir || o->accept_new || o->keep)
		return error_set(
			err, STATUS_BAD_INPUT,
			"--resume continues with the hosts, the command and the options of the folder: give only "
			"--stop or --patience with it");
	text_copy(f->deploy.folder, sizeof(f->deploy.folder), o->resume);
	return deploy_load(&f->deploy, err);
}

static enum status check_fresh(const char *folder, struct error *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/" DEPLOY_FILE, folder);
	return access(path, F_OK)
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "%s already holds a deployment: continue it with --resume, or choose another folder",
				 folder);
}

/* Two processes must not write to one folder. */
static enum status lock(int *fd, const char *folder, struct error *err)
{
	*fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return error_errno(err, errno, "cannot open %s", folder);
	if (file_is_held(folder))
		return error_set(err, STATUS_BAD_INPUT, "another assay deploy works in %s", folder);
	file_hold(*fd);
	return STATUS_OK;
}

static enum status over_ssh(struct filled *f, const struct deploy_opts *o, const struct command_context *c,
			    int *code, struct error *err)
{
	struct deploy *d = &f->deploy;
	int fd = -1;
	enum status st = o->resume ? fill_resumed(f, o, c, err) : fill_new(f, o, c, err);

	d->patience_s = o->patience;
	d->stop_runs = o->stop;
	d->stop = c->stop;
	d->log = c->log;
	d->progress = true;
	if (!st)
		st = deploy_prepare(d, err);
	if (!st && !o->resume)
		st = run_dirs_make(d->folder, o->out, "deploy", err);
	if (!st && !o->resume)
		st = check_fresh(d->folder, err);
	if (!st)
		st = lock(&fd, d->folder, err);
	if (!st)
		log_info(c->log, LOG_TOPIC_RUN, "deploying to %zu host%s: %s", d->count,
			 d->count == 1 ? "" : "s", d->folder);
	if (!st)
		st = deploy_run(d, err);
	if (!st)
		st = fleet_report(d, c, code, err);
	if (fd >= 0)
		close(fd);
	return st;
}

static int run(const struct command_context *c, const void *values)
{
	const struct deploy_opts *o = values;
	struct filled *f = calloc(1, sizeof(*f));
	struct opt_words words = c->rest.count ? c->rest : (struct opt_words){check_quick, 2};
	struct text file = {0};
	struct error err = {0};
	int code = EXIT_PASS;
	enum status st;

	if (!f)
		st = error_errno(&err, ENOMEM, "no memory for the hosts");
	else if (o->as)
		st = print_file(&file, o, &words, c, &err);
	else
		st = over_ssh(f, o, c, &code, &err);
	if (!st && o->as)
		show_text(&file, UTF8_KEEP_NOTHING);
	text_release(&file);
	if (st)
		code = command_complain(c, &err);
	if (f) {
		deploy_release(&f->deploy);
		hosts_release(&f->hosts);
		free(f->env_text);
		free(f->send_text);
	}
	free(f);
	return code;
}

const struct command command_deploy = {
	.name = "deploy",
	.summary = "copy assay to many hosts over ssh and run a command there; or print files for Slurm and "
		   "Kubernetes",
	.example =
		"assay deploy gpu[01-20] -- check quick   # copies assay, runs it detached, brings 20 runs back, one report",
	.help = "Copies the bundle (assay with its libraries) to each host over ssh and starts the command "
		"there (default: check quick). Follows the command, copies its files back, and removes "
		"everything from the host. If the connection or this program ends, the run on the host goes "
		"on, and --resume continues. A host needs an ssh server, a POSIX shell and the usual small "
		"programs. It needs neither tar nor Python.\n\n"
		"ssh uses only your keys and your agent, and asks no questions. Users, ports and jump hosts "
		"come from your ssh configuration. Host keys must be known. --accept-new saves new ones.\n\n"
		"The results are in one folder: the files of each host below hosts/, one report of all runs, "
		"and fleet.txt with outliers and differences.\n\n"
		"--as prints a file for another system, with a reason for each setting. It can print array "
		"jobs for Slurm, four kinds of objects for Kubernetes (Job, DaemonSet, "
		"HorizontalPodAutoscaler, ServiceMonitor), and container files.\n\n"
		"Exit codes: 0 all requirements are met on all hosts. 1 a run failed, or a host is a slow "
		"outlier. 2 a host was lost or could not be used, or a run was inconclusive. If 1 and 2 both "
		"apply, the exit code is 1. 64 wrong usage.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct deploy_opts)},
	.rest = "[-- COMMAND [WORD...]]",
	.alone = true,
	.run = run,
};
