/* SPDX-License-Identifier: Apache-2.0 */
/* assay __ranks -- WORDS: `assay launch` starts this on each node. It sets the environment variables for
 * this machine and starts the node's ranks. If a launcher started one process per rank, it becomes that
 * rank instead. */
#include <errno.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/launch_command.h"
#include "cmd/shared/show.h"
#include "launch/env.h"
#include "launch/ranks.h"
#include "launch/route.h"
#include "launch/rank_exit.h"
#include "team/transport/secret.h"

struct ranks_opts {
	uint32_t first, count, size;
	const char *master, *build, *env, *folder;
	bool secret_stdin, lifeline, shield, tell, derive, mpi;
};

static const struct opt rows[] = {
	OPT_ROW(struct ranks_opts, first, .name = "first", .help = "number of this node's first rank"),
	OPT_ROW(struct ranks_opts, count, .name = "count", .max = 65536,
		.help = "ranks on this node; 0: a launcher started one process per rank"),
	OPT_ROW(struct ranks_opts, size, .name = "size", .max = 65536, .help = "ranks on all nodes"),
	OPT_ROW(struct ranks_opts, master, .name = "master", .help = "address of rank 0: HOST[:PORT]"),
	OPT_ROW(struct ranks_opts, build, .name = "build", .help = "required build id of this program"),
	OPT_ROW(struct ranks_opts, env, .name = "env", .help = "NAME=value words, separated by blanks"),
	OPT_ROW(struct ranks_opts, folder, .name = "folder",
		.help = "working folder, if it exists on this node"),
	OPT_ROW(struct ranks_opts, secret_stdin, .name = "secret-stdin",
		.help = "the first line of stdin holds the secret, a blank, and the team's name"),
	OPT_ROW(struct ranks_opts, lifeline, .name = "lifeline", .help = "end the ranks when stdin ends"),
	OPT_ROW(struct ranks_opts, shield, .name = "shield",
		.help = "ranks other than 0 end with exit code 0, because the launcher ends all ranks if one fails; "
			"rank 0 ends as with --tell"),
	OPT_ROW(struct ranks_opts, tell, .name = "tell",
		.help = "encode the exit code as in launch/rank_exit.h: the largest one is the team's"),
	OPT_ROW(struct ranks_opts, derive, .name = "derive", .preset = "true",
		.help = "set the environment variables for this machine"),
	OPT_ROW(struct ranks_opts, mpi, .name = "mpi", .help = "the ranks call MPI themselves"),
};

/* Reads the line "SECRET NAME" byte by byte, because the rest of stdin belongs to the ranks. */
static enum status take_team(struct error *err)
{
	char text[256], *blank;
	size_t n = 0;

	while (n + 1 < sizeof(text) && read(STDIN_FILENO, &text[n], 1) == 1 && text[n] != '\n')
		n++;
	text[n] = '\0';
	blank = strchr(text, ' ');
	if (blank)
		*blank++ = '\0';
	if (*text) {
		ranks_report(text, blank ? blank : "");
		secret_take_env(); /* only the ranks need it, no other child process */
		explicit_bzero(text, sizeof(text));
	} else
		return error_set(err, STATUS_BAD_INPUT, "the team's secret is missing on stdin");
	return STATUS_OK;
}

static enum status check_build(const char *build, struct error *err)
{
	char own[PROCESS_BUILD];

	process_build(own);
	if (!build || !strcmp(build, own))
		return STATUS_OK;
	return error_set_cause(
		err, STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH,
		"version_mismatch: assay on this node is build %s, but the launching assay is build %s", own,
		build);
}

/* Puts the words of --env into this process's environment. */
static void take_env(const char *text)
{
	char *copy = text ? strdup(text) : NULL, *save = NULL;

	for (char *word = copy ? strtok_r(copy, " ", &save) : NULL; word; word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		if (!equals)
			continue;
		*equals = '\0';
		setenv(word, equals + 1, 1);
	}
	free(copy);
}

/* Finds the rank number of the node's first rank, from the options or from a launcher's variables. */
static enum status find_place(struct team_place *p, const struct ranks_opts *o, struct error *err)
{
	const struct environment env = {.get = secret_environment};
	char rank[16], size[16];
	const struct team_place_options told = {.rank = o->count ? rank : NULL,
						.size = o->count ? size : NULL,
						.master = o->master  ? o->master
							  : o->count ? "127.0.0.1"
								     : NULL};
	enum status st;

	snprintf(rank, sizeof(rank), "%u", o->first);
	snprintf(size, sizeof(size), "%u", o->size);
	st = team_place(p, &told, &env, err);
	if (!st && o->count && o->first + o->count > o->size)
		st = error_set(err, STATUS_BAD_INPUT, "--first %u and --count %u exceed --size %u", o->first,
			       o->count, o->size);
	return st;
}

/* Sets the environment variables for this machine. Only the node's first rank logs them. */
static enum status set_environment(const struct team_place *p, const struct ranks_opts *o,
				   const struct command_context *c, struct error *err)
{
	unsigned ranks = o->count ? o->count : p->local_size ? p->local_size : 1;
	char route[64];
	struct env_setting wish = {.ranks = ranks, .nodes = (p->size + ranks - 1) / ranks, .mpi = o->mpi};
	struct env_rows rows_here;
	enum status st;

	if (!o->derive)
		return STATUS_OK;
	if (wish.nodes > 1 && route_interface(route, sizeof(route), p->host))
		wish.route = route;
	st = env_read(&rows_here, &wish, NULL, NULL, c->stop, c->log, err);
	if (!st)
		env_apply(&rows_here, p->local_rank ? NULL : c->log);
	return st;
}

static int complain(const struct error *err)
{
	show_message("error: ", err->text);
	return command_code(err->status);
}

/* Runs one rank under a launcher that ends all ranks if one fails. Rank 0 ends last, and its exit code is
 * the team's. */
static int start_shielded(const struct ranks *of_node, const struct team_place *p, struct error *err)
{
	struct ranks r = *of_node;
	int code = EXIT_INCONCLUSIVE;

	r.first = p->rank;
	r.count = 1;
	r.size = p->size;
	r.local_first = p->local_rank;
	r.local_size = p->local_size;
	if (ranks_run(&r, &code, err))
		code = complain(err);
	if (!p->rank || !code)
		return code;
	log_warn(r.log, LOG_TOPIC_RUN, RANKS_ENDED, p->rank, rank_exit_code(rank_exit_of(code, false)));
	return EXIT_PASS;
}

static int start(const struct command_context *c, const struct ranks_opts *o, const struct team_place *p,
		 struct error *err)
{
	const char **words = calloc(c->rest.count + 1, sizeof(*words));
	const struct ranks r = {.first = o->first,
				.count = o->count,
				.size = o->size,
				.host = p->size > 1 ? p->host : "127.0.0.1",
				.port = p->port,
				.words = words,
				.stop = c->stop,
				.preempted = c->preempted,
				.saves = launch_words_saves(&c->rest),
				.lifeline = o->lifeline ? STDIN_FILENO : -1,
				.log = c->log};
	int code = EXIT_INCONCLUSIVE;

	if (!words)
		return EXIT_INCONCLUSIVE;
	memcpy(words, c->rest.word, c->rest.count * sizeof(*words));
	if (o->lifeline)
		fprintf(stderr, "%s\n", RANKS_BEGIN);
	secret_restore_env();
	if (!o->count && o->shield)
		code = start_shielded(&r, p, err);
	else if (o->count ? ranks_run(&r, &code, err) : ranks_become(p, words, o->tell, err))
		code = complain(err);
	free(words);
	return code;
}

static int run_ranks(const struct command_context *c, const struct ranks_opts *o)
{
	struct team_place p;
	struct error err = {0};

	if (!c->rest.count)
		error_set(&err, STATUS_BAD_INPUT, "__ranks: no assay command after --");
	if (!err.status)
		check_build(o->build, &err);
	if (!err.status && o->secret_stdin)
		take_team(&err);
	take_env(o->env);
	if (o->folder && chdir(o->folder))
		log_warn(c->log, LOG_TOPIC_RUN,
			 "folder %s does not exist on this node: %s; the ranks run in ssh's default folder",
			 o->folder, strerror(errno));
	if (err.status || find_place(&p, o, &err) || set_environment(&p, o, c, &err))
		return complain(&err);
	return start(c, o, &p, &err);
}

static int run(const struct command_context *c, const void *opts)
{
	const struct ranks_opts *o = opts;
	int code = run_ranks(c, o);

	return o->shield || o->tell ? rank_exit_of(code, false) : rank_exit_code(rank_exit_of(code, false));
}

const struct command command_ranks = {
	.name = "__ranks",
	.summary = "start the ranks of this node",
	.opts = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct ranks_opts)},
	.rest = "[-- COMMAND [WORD...]]",
	.hidden = true,
	.run = run,
};
