/* SPDX-License-Identifier: Apache-2.0 */
/* One host: which connection comes next, and what follows from its answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/file/embedded.h"
#include "core/file/file.h"
#include "deploy/deploy.h"

enum { TRIES_FIRST = 3, REPEATS = 3, WAIT_MOST_S = 15, SPARE_KIB = 16 << 10 };
#define SECOND 1000000000ull

/* $0 is the folder of --remote-dir or empty, $1 the run, $2 the step. In single quotes, without a line break
 * or an exclamation mark, this is the same text for every login shell. */
#define ROOT_WORDS "root=$0; : \"${root:=${XDG_CACHE_HOME:-${HOME:?}/.cache}/assay/deploy}\"; "
static const char look_words[] =
	"umask 077; " ROOT_WORDS "mkdir -p \"$root/runs/$1\" || exit 1; "
	"[ -O \"$root\" ] || { echo \"$root belongs to another user\" >&2; exit 1; }; "
	"cat > \"$root/runs/$1/node.sh\" && exec sh \"$root/runs/$1/node.sh\" look \"$root\" \"$1\"";
static const char step_words[] = ROOT_WORDS
	"run=$1; step=$2; shift 2; exec sh \"$root/runs/$run/node.sh\" \"$step\" \"$root\" \"$run\" \"$@\"";

static const char *const step_names[] = {"look", "receive", "follow", "stop", "fetch", "clean"};

static void become(struct deploy_host *h, enum host_state state)
{
	if (h->state == state)
		return;
	h->state = state;
	h->deploy->changed = true;
}

static void __attribute__((format(printf, 3, 4)))
end_as(struct deploy_host *h, enum host_state state, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(h->reason, sizeof(h->reason), format, args);
	va_end(args);
	become(h, state);
	log_warn(h->deploy->log, LOG_TOPIC_RUN, "%s: %s: %s", h->name, host_state_name(state), h->reason);
}

bool host_is_done(const struct deploy_host *h)
{
	return h->state == HOST_CLEANED || h->state == HOST_LOST || h->state == HOST_FAILED;
}

enum host_step host_next_step(const struct deploy_host *h)
{
	if (!h->looked && h->state != HOST_FETCHED)
		return STEP_LOOK;
	switch (h->state) {
	case HOST_RUNNING:
	case HOST_FOLLOWED:
		return h->deploy->stop_runs && !h->stopped ? STEP_STOP : STEP_FOLLOW;
	case HOST_FETCHING:
		return STEP_FETCH;
	case HOST_FETCHED:
		return STEP_CLEAN;
	default:
		return STEP_RECEIVE;
	}
}

/* Passes on whole lines of the run's stderr. Control characters are removed where lines are shown. */
static void take_line(struct deploy_host *h, const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\n' || h->line_size + 1 == sizeof(h->line)) {
			h->line[h->line_size] = '\0';
			h->line_size = 0;
			log_info(h->deploy->log, LOG_TOPIC_RUN, "%s: %s", h->name, h->line);
		}
		if (data[i] != '\n' && data[i] != '\r')
			h->line[h->line_size++] = data[i] ? data[i] : ' ';
	}
}

static void take_have(struct deploy_host *h, const char *sum)
{
	const struct bundle *b = &h->deploy->bundle;

	for (size_t i = 0; i < b->count; i++)
		h->have[i] = h->have[i] || !strcmp(b->file[i].sum, sum);
}

static enum status take(void *arg, const struct answer_event *e, struct error *err)
{
	struct deploy_host *h = arg;
	size_t used;

	switch (e->kind) {
	case ANSWER_ARCH:
		text_copy(h->arch, sizeof(h->arch), e->text);
		return STATUS_OK;
	case ANSWER_LACKS:
		used = strlen(h->lacks);
		snprintf(h->lacks + used, sizeof(h->lacks) - used, " %s", e->text);
		return STATUS_OK;
	case ANSWER_FREE:
		h->free_kib = e->number;
		return STATUS_OK;
	case ANSWER_PART:
		h->part = e->number;
		return STATUS_OK;
	case ANSWER_HAVE:
		take_have(h, e->sum);
		return STATUS_OK;
	case ANSWER_RUN:
		h->node = e->run;
		h->told_state = true;
		if (e->run == NODE_ENDED)
			h->exit_code = (int)e->number;
		if (h->step == STEP_FOLLOW && e->run == NODE_RUNNING)
			become(h, HOST_FOLLOWED);
		return STATUS_OK;
	case ANSWER_BYTES:
		h->stream = !strcmp(e->text, "err");
		return STATUS_OK;
	case ANSWER_FAIL:
		text_copy(h->fail, sizeof(h->fail), e->text);
		return STATUS_OK;
	case ANSWER_FILE:
	case ANSWER_SAME:
	case ANSWER_SKIP:
		if (h->step != STEP_FETCH)
			return error_set(err, STATUS_MISMATCH, "it sent a file that assay did not ask for");
		return received_take(&h->received, e, err);
	case ANSWER_DATA:
	case ANSWER_DATA_END:
		if (h->step == STEP_FETCH)
			return received_take(&h->received, e, err);
		h->at[h->stream] += e->size;
		if (h->stream && e->size)
			take_line(h, e->data, e->size);
		return STATUS_OK;
	default:
		return STATUS_OK;
	}
}

/* An unnamed file with `size` bytes of text, as stdin of ssh. */
static int text_input(const char *data, size_t size)
{
	int fd = memfd_create("assay-deploy", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static enum status begin_look(struct deploy_host *h, int *input, struct error *err)
{
	const struct embedded *script = embedded_find("src/deploy/node.sh");

	h->free_kib = 0;
	h->part = 0;
	*h->arch = *h->lacks = '\0';
	memset(h->have, 0, h->deploy->bundle.count * sizeof(*h->have));
	if (!script)
		return error_set(err, STATUS_BUG, "the script for nodes is not in the program");
	*input = text_input((const char *)script->data, script->size);
	return *input < 0 ? error_errno(err, errno, "cannot prepare the script for nodes") : STATUS_OK;
}

static enum status begin_receive(struct deploy_host *h, int *input, struct command_words *w,
				 struct error *err)
{
	struct deploy *d = h->deploy;
	enum status st = upload_make(&h->upload, &d->bundle, h->have, d->folder, &d->upload, err);

	if (st)
		return st;
	d->upload = h->upload;
	if (h->part > h->upload.size)
		h->part = 0; /* of another copy; the checksum will be wrong, and the node begins again */
	*input = open(h->upload.path, O_RDONLY | O_CLOEXEC);
	if (*input < 0 || lseek(*input, (off_t)h->part, SEEK_SET) < 0)
		return error_errno(err, errno, "cannot read %s", h->upload.path);
	h->sent = h->from = h->part;
	h->copied = true;
	command_words_addf(w, "%llu", (unsigned long long)h->upload.size);
	command_words_add(w, h->upload.sum);
	command_words_addf(w, "%u", h->upload.header);
	if (h->part)
		log_info(d->log, LOG_TOPIC_RUN, "%s: copying %.1f MB, from %.1f MB on", h->name,
			 (double)h->upload.size * 1e-6, (double)h->part * 1e-6);
	else
		log_info(d->log, LOG_TOPIC_RUN, "%s: copying %.1f MB", h->name,
			 (double)h->upload.size * 1e-6);
	become(h, HOST_COPYING);
	return STATUS_OK;
}

static enum status begin_fetch(struct deploy_host *h, int *input, struct error *err)
{
	struct received *r = &h->received;
	struct text here = {0};
	enum status st;

	*r = (struct received){.most = h->deploy->job.fetch_most};
	deploy_host_folder(r->folder, h->deploy, h);
	st = file_make_private_dir(r->folder, err);
	if (!st)
		st = received_list(&here, r->folder, err);
	if (!st) {
		*input = text_input(text_str(&here), here.size);
		st = *input < 0 ? error_errno(err, errno, "cannot prepare the list of files") : STATUS_OK;
	}
	text_release(&here);
	return st;
}

/* Words for the step's arguments, and its stdin. */
static enum status begin_step(struct deploy_host *h, int *input, struct command_words *w, struct error *err)
{
	switch (h->step) {
	case STEP_LOOK:
		return begin_look(h, input, err);
	case STEP_RECEIVE:
		return begin_receive(h, input, w, err);
	case STEP_FOLLOW:
		command_words_addf(w, "%llu", (unsigned long long)h->at[0]);
		command_words_addf(w, "%llu", (unsigned long long)h->at[1]);
		return STATUS_OK;
	case STEP_FETCH:
		return begin_fetch(h, input, err);
	case STEP_CLEAN:
		command_words_add(w, h->deploy->job.keep ? "yes" : "no");
		return STATUS_OK;
	default:
		return STATUS_OK;
	}
}

enum status host_begin(struct deploy_host *h, struct error *err)
{
	const struct deploy_job *j = &h->deploy->job;
	struct command_words w = {0};
	struct text remote = {0};
	int input = -1;
	enum status st;

	command_words_add(&w, "exec");
	command_words_add(&w, "sh");
	command_words_add(&w, "-c");
	command_words_add(&w, h->step == STEP_LOOK ? look_words : step_words);
	command_words_add(&w, j->remote_dir ? j->remote_dir : "");
	command_words_add(&w, h->run);
	command_words_add(&w, step_names[h->step]);
	*h->fail = '\0';
	h->told_state = false;
	st = begin_step(h, &input, &w, err);
	command_words_join(&remote, &w);
	if (!st && (w.failed || remote.failed))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for the words of ssh");
	if (st && input >= 0)
		close(input);
	h->talk.answer = (struct answer){.take = take, .arg = h};
	if (!st)
		st = talk_start(&h->talk,
				&(struct ssh_command){.config = j->ssh_config,
						      .accept_new = j->accept_new,
						      .compress = true,
						      .host = h->name,
						      .remote = text_str(&remote)},
				input, err);
	text_release(&remote);
	command_words_release(&w);
	return st;
}

/* The upload's size, and as much again for the unpacked files. */
static uint64_t needed_kib(const struct deploy_host *h)
{
	const struct bundle *b = &h->deploy->bundle;
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->count; i++)
		bytes += h->have[i] ? 0 : b->file[i].size;
	return 2 * bytes / 1024 + SPARE_KIB;
}

static void after_run_state(struct deploy_host *h)
{
	if (h->node == NODE_RUNNING) {
		become(h, HOST_RUNNING);
		return;
	}
	if (h->node == NODE_NONE) {
		end_as(h, HOST_FAILED, "the run and its files no longer exist on the host");
		return;
	}
	if (h->node == NODE_GONE) {
		text_copy(h->reason, sizeof(h->reason),
			  "the run ended without an exit code: it was killed, or the host was restarted");
		log_warn(h->deploy->log, LOG_TOPIC_RUN, "%s: %s", h->name, h->reason);
	} else {
		log_info(h->deploy->log, LOG_TOPIC_RUN, "%s: ended with exit code %d", h->name, h->exit_code);
	}
	become(h, HOST_FETCHING);
}

static void after_look(struct deploy_host *h)
{
	const char *arch = h->deploy->bundle.arch;

	h->looked = true;
	if (*h->lacks) {
		end_as(h, HOST_FAILED, "it lacks programs that are needed to copy and run assay:%s",
		       h->lacks);
		return;
	}
	if (h->node != NODE_NONE) {
		after_run_state(h);
		return;
	}
	if (h->deploy->stop_runs) { /* what an earlier copy left is removed */
		text_copy(h->reason, sizeof(h->reason), "there was no run to stop");
		become(h, HOST_FETCHED);
		return;
	}
	if (*arch && *h->arch && strcmp(arch, h->arch) != 0) {
		end_as(h, HOST_FAILED,
		       "its CPU is %s, but the bundle is for %s: make a bundle on such a machine", h->arch,
		       arch);
		return;
	}
	if (h->free_kib && h->free_kib < needed_kib(h)) {
		end_as(h, HOST_FAILED,
		       "its disk is full: %llu MiB are free, and %llu MiB are needed; free space, or name another folder "
		       "with --remote-dir",
		       (unsigned long long)h->free_kib / 1024, (unsigned long long)needed_kib(h) / 1024);
		return;
	}
	become(h, HOST_COPYING);
}

/* What a node refused, with a word for the kind. */
static void after_fail(struct deploy_host *h)
{
	const char *text = strchr(h->fail, ' ');

	text = text ? text + 1 : h->fail;
	if ((!strncmp(h->fail, "damaged ", 8) || !strncmp(h->fail, "missing ", 8)) &&
	    ++h->repeats < REPEATS) {
		log_info(h->deploy->log, LOG_TOPIC_RUN, "%s: %s; the copy begins again", h->name, text);
		h->looked = false;
		return;
	}
	if (!strncmp(h->fail, "state ", 6) && ++h->repeats < REPEATS) {
		h->looked = false;
		return;
	}
	end_as(h, HOST_FAILED, "%s%s",
	       !strncmp(h->fail, "program ", 8) ? "the program does not start there: " : "", text);
}

static void after_fetch(struct deploy_host *h)
{
	const struct received *r = &h->received;
	struct error err = {0};

	if (received_sync(r, &err)) {
		end_as(h, HOST_FAILED, "%s", err.text);
		return;
	}
	log_info(h->deploy->log, LOG_TOPIC_RUN, "%s: %zu files are here%s", h->name, r->files,
		 r->skipped ? "; links and files with odd names stayed on the host" : "");
	become(h, HOST_FETCHED);
}

static void after_answer(struct deploy_host *h)
{

	switch (h->step) {
	case STEP_LOOK:
		after_look(h);
		return;
	case STEP_RECEIVE:
		h->looked = false; /* how much has arrived? */
		if (h->told_state) {
			h->looked = true;
			after_run_state(h);
		} else if (h->part <= h->from && ++h->repeats >= REPEATS) {
			end_as(h, HOST_FAILED, "the copy ends at byte %llu each time",
			       (unsigned long long)h->part);
		}
		return;
	case STEP_STOP:
		h->stopped = true;
		return;
	case STEP_FOLLOW:
		after_run_state(h);
		return;
	case STEP_FETCH:
		after_fetch(h);
		return;
	default:
		become(h, HOST_CLEANED);
		return;
	}
}

static void after_refusal(struct deploy_host *h, const char *why)
{
	const char *address = hosts_address(h->name);

	if (h->talk.refusal == TALK_KEY_CHANGED)
		end_as(h, HOST_FAILED,
		       "its host key has changed, so assay does not connect: if the operator confirms the new key, remove the old "
		       "one with ssh-keygen -R %s",
		       address);
	else if (h->talk.refusal == TALK_KEY_UNKNOWN)
		end_as(h, HOST_FAILED,
		       "its host key is not known: %s; connect once with ssh %s and compare the fingerprint, or use --accept-new",
		       why, h->name);
	else
		end_as(h, HOST_FAILED, "it refuses the keys of this user: %s", why);
}

/* The connection broke, or never was. */
static void try_again(struct deploy_host *h, const char *why, uint64_t now_ns)
{
	uint64_t wait_s = h->tries < 4 ? 1ull << h->tries : WAIT_MOST_S;
	double silent_s = (double)(now_ns - h->contact_ns) * 1e-9;

	h->tries++;
	if (!h->contact && (h->tries >= TRIES_FIRST || silent_s > h->deploy->patience_s)) {
		end_as(h, HOST_LOST, "it cannot be reached: %s", why);
		return;
	}
	if (h->contact && silent_s > h->deploy->patience_s) {
		end_as(h, HOST_LOST, "it has not answered for %.0f s: %s", silent_s, why);
		return;
	}
	if (h->state == HOST_FOLLOWED)
		become(h, HOST_RUNNING);
	if (h->tries == 1)
		log_info(h->deploy->log, LOG_TOPIC_RUN, "%s: the connection is lost (%s); trying again",
			 h->name, why);
	if (h->step == STEP_RECEIVE)
		h->looked = false; /* how much has arrived? */
	h->next_ns = now_ns + wait_s * SECOND;
}

/* Whether a connection brought the host forward. If copies break at the same byte each time, for example
 * because large packets are lost, the host is lost after `patience_s`, although it answers. */
static bool is_progress(const struct deploy_host *h)
{
	bool whole = talk_is_whole(&h->talk);

	switch (h->step) {
	case STEP_LOOK:
		return whole && !(h->copied && h->node == NODE_NONE && h->part <= h->from);
	case STEP_RECEIVE:
		return whole;
	case STEP_FETCH:
		return whole || h->received.whole;
	default:
		return h->talk.answer.begun;
	}
}

void host_finish(struct deploy_host *h, uint64_t now_ns)
{
	const struct talk *t = &h->talk;
	int status = t->process.wait_status;
	bool remote = t->process.ended && WIFEXITED(status) && WEXITSTATUS(status) != 255;
	bool progress = is_progress(h);
	char why[400];

	h->next_ns = now_ns;
	talk_why(t, why, sizeof(why));
	received_abandon(&h->received);
	if (progress) {
		h->contact = true;
		h->contact_ns = now_ns;
		h->tries = 0;
	} else if (h->step == STEP_RECEIVE && h->advances && h->sent > h->from) {
		h->contact_ns = t->heard_ns; /* the next look tells whether these bytes arrived */
	}
	if (h->step == STEP_LOOK)
		h->advances = progress;
	if (talk_is_whole(t) && *h->fail)
		after_fail(h);
	else if (talk_is_whole(t))
		after_answer(h);
	else if (t->wrong.status)
		end_as(h, HOST_FAILED, "%s", why);
	else if (t->refusal)
		after_refusal(h, why);
	else if (remote)
		end_as(h, HOST_FAILED, "%s", why);
	else
		try_again(h, why, now_ns);
	talk_end(&h->talk);
}
