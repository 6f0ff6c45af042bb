/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one command on many hosts (docs/explanation/design/deploy.md). It copies the program over ssh, starts
 * it detached, follows it, brings its files back, and removes them from the host. Each host has its own
 * state. Trouble with one host does not stop the others.
 */
#ifndef DEPLOY_DEPLOY_H
#define DEPLOY_DEPLOY_H
#include <jansson.h>
#include <signal.h>
#include "core/log.h"
#include "deploy/bundle.h"
#include "deploy/received.h"
#include "deploy/talk.h"
#include "launch/hosts.h"

#define DEPLOY_FILE "deploy.json"

/* name, meaning */
/* clang-format off */
#define HOST_STATES(X) \
	X(WAITING, "waiting", "nothing was done")                          \
	X(COPYING, "copying", "the program is under way")                  \
	X(RUNNING, "running", "the run has started")                       \
	X(FOLLOWED, "followed", "the run's messages arrive")               \
	X(FETCHING, "fetching", "the run has ended; its files are under way") \
	X(FETCHED, "fetched", "all files are here")                        \
	X(CLEANED, "cleaned", "all files are here, and the host is clean") \
	X(LOST, "lost", "the host does not answer")                        \
	X(FAILED, "failed", "it cannot be used; see the reason")
/* clang-format on */
#define X(id, name, text) HOST_##id,
enum host_state { HOST_STATES(X) HOST_STATE_COUNT };
#undef X
const char *host_state_name(enum host_state s);

enum host_step { STEP_LOOK, STEP_RECEIVE, STEP_FOLLOW, STEP_STOP, STEP_FETCH, STEP_CLEAN };
enum { HOST_RUN = 33, HOST_REASON = 480 };

struct deploy;
struct deploy_host {
	const char *name;   /* for ssh: "user@gpu1" */
	char run[HOST_RUN]; /* the run's folder on the host: 128 random bits */
	enum host_state state;
	int exit_code;		  /* of the run; -1: none */
	char reason[HOST_REASON]; /* for LOST, FAILED, and a run without an exit code */

	/* While deploy_run works. */
	struct deploy *deploy;
	struct talk talk;
	enum host_step step;
	bool looked, contact, stopped;
	unsigned tries, repeats; /* connections without progress; copies that had to begin again */
	uint64_t next_ns;	 /* no connection before this time; 0: there was none yet */
	uint64_t contact_ns;
	/* Of the last answer. */
	enum node_run node;
	bool told_state;
	uint64_t free_kib, part, sent;
	uint64_t from; /* where the last copy began */
	bool copied;   /* a copy has begun */
	bool advances; /* the last look found the host further */
	char arch[32], lacks[160], fail[HOST_REASON];
	bool *have;	/* one entry for each file of the bundle */
	uint64_t at[2]; /* bytes of out and err that were followed */
	unsigned stream;
	char line[400];
	size_t line_size;
	struct received received;
	struct upload upload;
};

/* The work, from the command line or from DEPLOY_FILE. All members are borrowed. */
struct deploy_job {
	const char *bundle; /* its folder */
	char id[65];	    /* of the bundle, bundle_id */
	struct opt_words words, env, send;
	const char *ssh_config, *remote_dir; /* NULL: the user's; the default folder */
	bool accept_new, keep;
	uint64_t fetch_most; /* bytes that a host may send back */
};

struct deploy {
	struct deploy_job job;
	char folder[PATH_MAX]; /* on this machine */
	struct deploy_host *host;
	size_t count;
	struct bundle bundle;
	struct upload upload; /* the last one that was made */

	double patience_s; /* time without progress after which a host is lost */
	bool stop_runs;	   /* end the runs, then fetch as usual */
	const volatile sig_atomic_t *stop;
	const struct log *log;
	bool progress; /* log the state of all hosts every few seconds */
	bool changed;  /* since the last save */
	json_t *saved; /* the content of DEPLOY_FILE. It owns the texts of a loaded job */
};

/* Sets up `count` hosts with new runs. Owner of d: caller, deploy_release. */
enum status deploy_hosts(struct deploy *d, const struct hosts *h, struct error *err);
/* Reads DEPLOY_FILE in d->folder. BAD_INPUT: it is none, or is damaged; the message names the place. */
enum status deploy_load(struct deploy *d, struct error *err);
enum status deploy_save(struct deploy *d, struct error *err);
/* Reads the bundle, the files to send and the command into d->bundle. MISMATCH: the bundle of a continued
 * deployment has changed. */
enum status deploy_prepare(struct deploy *d, struct error *err);
/* Works until each host is CLEANED, LOST or FAILED. CANCELLED: stopped on request; runs go on. */
enum status deploy_run(struct deploy *d, struct error *err);
/* The folder of a host's files on this machine. */
void deploy_host_folder(char out[PATH_MAX], const struct deploy *d, const struct deploy_host *h);
void deploy_release(struct deploy *d);

/* host.c: the next connection of a host, and what follows from its answer. */
bool host_is_done(const struct deploy_host *h);
/* The step that the host's state asks for. */
enum host_step host_next_step(const struct deploy_host *h);
/* Starts the connection for h->step. */
enum status host_begin(struct deploy_host *h, struct error *err);
/* Takes the end of a connection: sets the new state, or when to try again. */
void host_finish(struct deploy_host *h, uint64_t now_ns);
#endif
