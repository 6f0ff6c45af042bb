/* SPDX-License-Identifier: Apache-2.0 */
/* assay __trainer: the training process that `assay train` starts. It reads one line from descriptor 3 and
 * writes lines to it. */
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/internal/child_channel.h"
#include "core/text/text.h"
#include "team/links/processes.h"
#include "train/run/run.h"

static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
}

static enum status read_first(struct child_channel *c, struct error *err)
{
	child_read(c, &stop_requested);
	if (!json_string_value(json_object_get(c->first, "dir")) ||
	    !json_string_value(json_object_get(c->first, "config")))
		return error_set(
			err, STATUS_BAD_INPUT,
			"descriptor 3 has no first line: this is an internal command, use assay train");
	return STATUS_OK;
}

static enum status listen_for_others(struct team *t, struct process_links_place *place,
				     struct child_channel *c, struct error *err)
{
	uint16_t port = 0;
	enum status st = process_links_listen(t, place, &port, err);

	child_send(c, "listen", json_pack("{s:i}", "port", st ? 0 : (int)port), NULL);
	return st ? st : process_links_gather(t, err);
}

/* Links this rank to the others, as the first line says. *team: zeroed if this is the only rank. */
static enum status join_ranks(struct team *team, struct team_board *board, struct child_channel *c,
			      struct error *err)
{
	const json_t *j = json_object_get(c->first, "team");
	struct process_links_place place = {.limit_ms = TEAM_LIMIT_MS, .stop = &stop_requested};
	const char *name = "", *host = NULL;
	int port = 0;

	if (!json_is_object(j))
		return STATUS_OK;
	if (json_unpack((json_t *)j, "{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s?s, s?i}", "rank",
			(int *)&team->rank, "size", (int *)&team->size, "local_rank",
			(int *)&team->local_rank, "local_size", (int *)&team->local_size, "node",
			(int *)&team->node, "nodes", (int *)&team->nodes, "name", &name, "secret",
			&place.secret, "host", &host, "port", &port))
		return error_set(err, STATUS_BUG, "the supervisor sent an invalid place of this rank");
	text_copy(team->name, sizeof(team->name), name);
	team->launched = team->rank;
	team->limit_ms = TEAM_LIMIT_MS;
	team->stop = &stop_requested;
	team->board = board;
	place.rank = team->rank;
	place.size = team->size;
	place.host = host;
	place.port = (uint16_t)port;
	return team->rank ? process_links_connect(team, &place, err)
			  : listen_for_others(team, &place, c, err);
}

/* A failed rank stays until its supervisor ends it: MPI would end the job of all ranks otherwise, before
 * their supervisors have reported. */
static void await_end(const struct team *team, enum status st)
{
	while (team->size > 1 && st && st != STATUS_CANCELLED)
		pause();
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct child_channel channel = CHILD_CHANNEL_NEW;
	const struct sigaction quit = {.sa_handler = on_term};
	struct log log = child_log(&channel);
	struct train_job job = {.stop = &stop_requested, .log = &log, .emit = child_send, .arg = &channel};
	struct team team = {0};
	struct error err = {0};
	json_t *values = NULL;
	enum status st;

	(void)c, (void)argc, (void)argv;
	child_prepare(on_term);
	sigaction(SIGQUIT, &quit, NULL);
	st = read_first(&channel, &err);
	log.topics = (unsigned)json_integer_value(json_object_get(channel.first, "topics"));
	job.dir = json_string_value(json_object_get(channel.first, "dir"));
	job.config_hash = json_string_value(json_object_get(channel.first, "config"));
	job.gpu = json_string_value(json_object_get(channel.first, "gpu"));
	job.card = json_object_get(channel.first, "card");
	if (!json_is_object(job.card)) /* null: no GPU */
		job.card = NULL;
	job.started_ns = (uint64_t)json_integer_value(json_object_get(channel.first, "started"));
	job.tuned_s = json_number_value(json_object_get(channel.first, "tuned_s"));
	job.resume = json_is_true(json_object_get(channel.first, "resume"));
	job.board = team_board_open(CHILD_SHARED);
	team_board_take(job.board, 0);
	if (!st)
		st = join_ranks(&team, job.board, &channel, &err);
	job.team = team.size > 1 ? &team : NULL;
	if (!st)
		st = train_run(&job, &values, &err);
	child_send_end(&channel, st, &err, values);
	await_end(&team, st);
	process_links_close(&team);
	child_release(&channel);
	return st ? 1 : 0;
}

const struct command command_trainer = {
	.name = "__trainer",
	.summary = "train as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
