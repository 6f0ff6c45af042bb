/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `assay __worker`: runs one case after the other. Cases come as lines on descriptor 3, and the answers go
 * there too. This process does not survive a fault: whatever goes wrong in a library ends it, and the
 * supervisor reports how it ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include "machine/machine.h"
#include "run/probe.h"
#include "run/supervisor/lines.h"
#include "run/worker/measure.h"
#include "run/worker/ranks.h"
#include "run/run.h"
#include "core/text/text.h"
#include "team/links/processes.h"

enum { CHANNEL = 3, BOARD = 4 };

static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
}

struct worker_state {
	const struct probe *const *registry;
	struct machine *machine;
	struct measure measure;
	struct log log;
	pthread_mutex_t writing; /* ranks log from their own threads */
	struct lines in;
	json_t *next; /* the last line that was read */
	bool garbled;
	const struct bench_case *now;
	/* A rank of a launched team, linked with the workers of the other ranks from its first case on. */
	struct team team;
	bool listens, linked;
};

/* Sends {"type":type, body..} to the supervisor. */
static enum status send_line(struct worker_state *o, const char *type, const json_t *body, struct error *err)
{
	json_t *line = json_pack("{s:s}", "type", type);

	if (line)
		json_object_update(line, (json_t *)body);
	return lines_send(CHANNEL, line, 15, &o->writing, err);
}

static bool take_line(void *arg, const char *line, size_t size)
{
	struct worker_state *o = arg;

	o->next = json_loadb(line, size, 0, NULL);
	o->garbled = !o->next;
	return false; /* one line at a time */
}

/* The next line from the supervisor, owned by the caller. NULL: the supervisor closed the channel, a stop
 * request, or an invalid line. */
static json_t *next_line(struct worker_state *o)
{
	json_t *line;

	o->next = NULL;
	while (!o->next && !o->garbled && !stop_requested) {
		struct pollfd in = {.fd = CHANNEL, .events = POLLIN};

		/* the buffer may already contain a line */
		if (o->in.size && memchr(o->in.data, '\n', o->in.size)) {
			char *newline = memchr(o->in.data, '\n', o->in.size);
			size_t size = (size_t)(newline - o->in.data);

			take_line(o, o->in.data, size);
			memmove(o->in.data, newline + 1, o->in.size - size - 1);
			o->in.size -= size + 1;
			break;
		}
		if (poll(&in, 1, 100) <= 0) /* short, so that a TERM between the test and the wait is seen */
			continue;
		if (lines_read(&o->in, CHANNEL, take_line, o) != LINES_MORE)
			break;
	}
	line = o->next;
	o->next = NULL;
	return line;
}

/* Handles events of the measurement. A case of a simultaneous step waits here for the others. */
static enum status on_event(void *arg, const char *type, const json_t *body, struct error *err)
{
	struct worker_state *o = arg;
	enum status st = send_line(o, type, body, err);
	json_t *go;

	if (st || strcmp(type, "ready") || o->now->order == STEP_IN_ORDER)
		return st;
	go = next_line(o);
	if (stop_requested)
		st = error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped on request");
	else if (!json_is_true(json_object_get(go, "go")))
		st = error_set(err, STATUS_BUG, "the supervisor's start signal is missing");
	json_decref(go);
	return st;
}

static void log_to_channel(void *arg, enum log_level level, enum log_topic topic, const char *text)
{
	json_t *body = json_pack("{s:i, s:i, s:o}", "level", (int)level, "topic", (int)topic, "text",
				 field_string(text));

	send_line(arg, "log", body, NULL);
	json_decref(body);
}

static enum status send_end(struct worker_state *o, unsigned id, enum status status, const struct error *err,
			    struct error *sent)
{
	char place[128] = "";
	json_t *body;
	enum status st;

	if (status && err->file)
		snprintf(place, sizeof(place), "%s:%d", err->file, err->line);
	body = json_pack("{s:i, s:s, s:s, s:o, s:s}", "case", (int)id, "status", status_name(status), "cause",
			 status ? cause_name(err->cause) : "", "text", field_string(status ? err->text : ""),
			 "place", place);
	st = send_line(o, "end", body, sent);
	json_decref(body);
	return st;
}

/* Reads {"rank","size","launched","generation","local_rank","local_size","node","nodes","name"} from the
 * first line. Rank 0's also has the secret; rank 0 listens and reports its port. */
static enum status take_place(struct worker_state *o, const json_t *j, struct error *err)
{
	struct team *t = &o->team;
	struct process_links_place place = {.stop = &stop_requested};
	const char *name = NULL, *secret = NULL;
	uint16_t port = 0;
	json_t *body;
	enum status st;

	if (json_unpack((json_t *)j, "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s?s}", "rank",
			(int *)&t->rank, "size", (int *)&t->size, "launched", (int *)&t->launched,
			"generation", (int *)&t->generation, "local_rank", (int *)&t->local_rank,
			"local_size", (int *)&t->local_size, "node", (int *)&t->node, "nodes",
			(int *)&t->nodes, "name", &name, "secret", &secret))
		return error_set(err, STATUS_BUG,
				 "the supervisor sent an invalid place of this rank in the team");
	text_copy(t->name, sizeof(t->name), name);
	t->limit_ms = TEAM_LIMIT_MS;
	t->board = o->measure.board;
	team_board_take(t->board, t->rank);
	o->measure.team = t;
	if (t->rank)
		return STATUS_OK;
	place.size = t->size;
	place.limit_ms = TEAM_LIMIT_MS;
	place.secret = secret ? secret : "";
	st = process_links_listen(t, &place, &port, err);
	o->listens = !st;
	body = json_pack("{s:i}", "port", st ? 0 : (int)port);
	send_line(o, "listen", body, NULL);
	json_decref(body);
	return st;
}

/* Links the ranks, before the first case. `links` has the address of rank 0's worker. */
static enum status link_up(struct worker_state *o, const json_t *links, struct error *err)
{
	struct process_links_place place = {.rank = o->team.rank,
					    .size = o->team.size,
					    .limit_ms = TEAM_LIMIT_MS,
					    .stop = &stop_requested};
	enum status st;
	int port = 0;

	if (!o->measure.team || o->linked)
		return STATUS_OK;
	if (!o->team.rank) {
		st = process_links_gather(&o->team, err);
	} else {
		if (json_unpack((json_t *)links, "{s:s, s:i, s:s}", "host", &place.host, "port", &port,
				"secret", &place.secret))
			return error_set(err, STATUS_BUG,
					 "the supervisor sent no address of rank 0's worker");
		place.port = (uint16_t)port;
		st = process_links_connect(&o->team, &place, err);
	}
	o->linked = !st;
	return st;
}

/* False: the worker should end, because the channel or the device is lost. */
static bool run_case(struct worker_state *o, const json_t *json, const json_t *links)
{
	struct bench_case c;
	struct error err = {0};
	const json_t *id = json_object_get(json, "case");
	enum status st = case_from_json(&c, json, o->machine, o->registry, &err);

	if (!st) {
		o->now = &c;
		st = link_up(o, links, &err);
		if (!st)
			st = measure_case(&o->measure, &c, &err);
		o->now = NULL;
		/* the hung thread still uses this memory, so nothing is freed */
		if (ranks_hang(&o->measure)) {
			send_end(o, (unsigned)json_integer_value(id), st, &err, NULL);
			_exit(1);
		}
		case_release(&c);
	}
	return !send_end(o, (unsigned)json_integer_value(id), st, &err, NULL) && st != STATUS_LOST &&
	       !stop_requested;
}

/* Reads the first line: the machine and the settings that all cases share. */
static enum status read_first_line(struct worker_state *o, struct error *err)
{
	json_t *line = next_line(o);
	const json_t *seed = json_object_get(line, "seed"), *topics = json_object_get(line, "topics");
	enum status st =
		line ? machine_from_json(&o->machine, json_object_get(line, "machine"), err)
		     : error_set(err, STATUS_BAD_INPUT,
				 "no first line on descriptor 3: this command is for internal use only");

	o->log.topics = (unsigned)json_integer_value(topics);
	o->measure = (struct measure){
		.machine = o->machine,
		.seed = (uint64_t)json_integer_value(seed),
		.clock = clock_monotonic(),
		.log = &o->log,
		.stop = &stop_requested,
		.emit = {on_event, o},
		.board = json_is_true(json_object_get(line, "board")) ? team_board_open(BOARD) : NULL,
	};
	if (!st && json_object_get(line, "team"))
		st = take_place(o, json_object_get(line, "team"), err);
	json_decref(line);
	return st;
}

static void settle_in(void)
{
	struct sigaction term = {.sa_handler = on_term}; /* without SA_RESTART, a signal ends a wait */
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit no_core = {0, 0};

	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setrlimit(RLIMIT_CORE, &no_core); /* a crash leaves no core file; the journal has the ending */
	fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
	fcntl(BOARD, F_SETFD, FD_CLOEXEC); /* fails without effect if there is no board */
}

int worker_main(const struct probe *const *registry)
{
	struct worker_state o = {.registry = registry, .writing = PTHREAD_MUTEX_INITIALIZER};
	struct error err = {0};
	json_t *line;
	enum status st;
	bool open = true;

	settle_in();
	o.log = (struct log){.sink = log_to_channel, .arg = &o};
	st = read_first_line(&o, &err);
	while (!st && open && (line = next_line(&o))) {
		open = run_case(&o, json_object_get(line, "run"), json_object_get(line, "links"));
		json_decref(line);
	}
	if (st)
		log_error(&o.log, LOG_TOPIC_RUN, "%s", err.text);
	measure_release(&o.measure);
	if (o.team.close)
		o.team.close(&o.team);
	process_links_close(&o.team);
	lines_release(&o.in);
	machine_free(o.machine);
	return st ? 1 : 0;
}
