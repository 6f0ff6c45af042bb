/* SPDX-License-Identifier: Apache-2.0 */
/* A run in progress: the state and functions that the files of this folder share. Design:
 * docs/explanation/design/processes.md. */
#ifndef RUN_SUPERVISOR_SUPERVISOR_H
#define RUN_SUPERVISOR_SUPERVISOR_H
#include "core/process/process.h"
#include "core/text/text.h"
#include "journal/telemetry/telemetry_block.h"
#include "journal/journal.h"
#include "journal/telemetry/series.h"
#include "run/supervisor/thermal_guard.h"
#include "run/supervisor/lines.h"
#include "run/followup/case_outcome.h"
#include "run/run.h"
#include "team/links/wait_board.h"
#include "telemetry/telemetry.h"

#define RUN_TERM_NS 2000000000u	  /* a case over its limit gets this time to end by itself after TERM */
#define RUN_STOP_NS 600000000u	  /* on a request to stop: the journal must be closed within a second */
#define RUN_KILL_MS 2000	  /* time for KILL to take effect; after it the process counts as stuck */
#define RUN_STAGGER_NS 100000000u /* between the starts of workers that run together */

enum { RUN_GPUS = 256, RUN_WORDS = 1024 };

struct run;

/* A measured window whose telemetry means go into the results of its case. */
struct telemetry_reader_window {
	unsigned id;
	char phase[16], source[40];
	uint64_t t0_ns, t1_ns, since_ns; /* since_ns: when the means were requested */
};

/* The telemetry reader's state. It writes the sampler's lines to the journal. */
struct watch {
	struct process sampler;
	struct sampler_life life;
	bool alive;
	struct lines in;
	struct series *series;
	size_t series_count;
	struct telemetry_block block;		/* readings that are not yet in the journal */
	uint64_t block_since_ns;		/* time of the block's first reading */
	struct telemetry_reader_window *window; /* windows that wait until telemetry has passed their end */
	size_t window_count;
	uint64_t heard_ns; /* time of the last line */
	bool stalled;	   /* a stall was reported */
	struct thermal_guard guard[RUN_GPUS];
};

/* A worker process. The supervisor never queries a silent worker; it waits until the case's limit. */
struct worker {
	struct process p;
	bool alive;
	char group[32], place[TARGET_TEXT];
	char setting[sizeof(((struct bench_case *)0)->setting)]; /* the setting in its environment */
	const struct bench_case *c;				 /* the running case; NULL: idle */
	struct lines in;
	/* shared memory where its ranks record what they wait for; NULL: there is none */
	struct team_board *board;
	int board_fd;	       /* valid if `board` is set */
	char call[48];	       /* NVML call that had not returned when the worker was told to end */
	char stood[400];       /* the ranks that waited then, and where */
	char words[RUN_WORDS]; /* the last text that it wrote to stdout and stderr */
	char phase[16];
	bool ready, told_to_go, ended_case;
	uint16_t port; /* port that the first rank's worker listens on; 0: not reported yet */
	bool said_port;
	bool leaves;		    /* it reported that its device is lost and that it exits by itself */
	bool fell;		    /* the previous worker crashed or was ended by force */
	bool garbled;		    /* it wrote an invalid line, or a line of another case */
	uint64_t limit_ns, kill_ns; /* times of TERM and KILL; 0: not set */
	/* how the case ends because the worker was told to end; DONE: it was not told */
	enum ending forced;
	enum cause forced_cause;
	char forced_text[128];
	struct run *run;
};

/* Why no further case of this run uses a GPU. */
enum lost { LOST_NOT, LOST_GONE, LOST_HOT };

/* This rank's worker of a team. The next case of the team keeps it if that case follows directly. Engines
 * that start only once keep it until the end of the run. */
struct run_team {
	bool any;
	unsigned id, generation, rank, size; /* rank and size among the case's members */
	unsigned first;			     /* launched rank that leads the members */
	unsigned agreed;		     /* generation of the next workers */
	char group[32], place[TARGET_TEXT];
	char secret[33], host[80];
	uint16_t port;
	bool fell; /* another rank's worker died in this case */
	bool lost; /* a worker died in case lost_by; an engine that starts only once has no other worker */
	unsigned lost_by;
};

/* State of the GPU counter readings (gpu_health.c). */
struct run_health {
	bool off;	  /* no case uses a GPU, or NVML does not answer: no more readings */
	uint64_t read_ns; /* time of the last reading */
	bool answered[RUN_GPUS];
	/* NVML has stopped answering for the GPU; CUDA was queried */
	bool silent[RUN_GPUS], checked[RUN_GPUS];
	bool asks; /* at least one GPU is silent and not checked */
	char why[RUN_GPUS][96];
	enum cause cause[RUN_GPUS]; /* cause of the silence: gpu_lost, version_mismatch or another */
};

/* An attempt of the BLAS kernel search (run/followup/blas_kernel_search.c), in this run or in the part before
 * a resume. */
struct run_try {
	unsigned id; /* the case with the low figure */
	bool reached;
	char what[ENGINE_SETTING]; /* setting or engine that it tried */
};

struct run {
	const struct plan *plan;
	const struct machine *machine;
	const struct probe *const *registry;
	const struct run_options *o;
	struct run_summary *out;
	struct journal *journal;
	struct watch watch;
	struct run_health health;
	/* the worker of the last ordered step, reused by the next step with the same group and target */
	struct worker keeper;
	/* Arrays of `room` cases: those of the plan, then those that were added during the run. */
	unsigned *attempt;	   /* number of times that each case began */
	bool *done;		   /* cases that ended in an earlier run */
	struct case_outcome *note; /* outcome of each case */
	size_t room;
	unsigned next_id;      /* id of the next added case */
	unsigned team_cases;   /* number of team cases so far; equal on all ranks */
	bool searched;	       /* an earlier run already did the isolation searches */
	bool *disturbed;       /* cases of the plan that need a second round */
	bool repeated;	       /* an earlier run already did the second round */
	struct run_try *tries; /* attempts of the BLAS kernel search */
	size_t try_count;
	size_t case_done;
	enum lost lost[RUN_GPUS]; /* quarantined GPUs; lost_by: the case after which */
	unsigned lost_by[RUN_GPUS];
	uint64_t t0_ns;
	struct error team_over;	  /* why no more team cases run; OK: they run */
	struct worker slot;	  /* worker of launched engines: one for the whole run */
	struct run_team teams[2]; /* last team case; the second: of launched engines */
	struct run_team *team;	  /* of the current case */
	unsigned line, round;	  /* line of the suite and round that this rank has reached */
	unsigned line_ms;	  /* time limit of the line on the rank with the most work; 0: no line */
	enum ending last_ending;  /* ending of the last case */
	enum status status;	  /* not OK: the journal cannot be written, and the run is over */
	struct error *err;
};

bool run_stopping(const struct run *r);
/* Sets `used` for the GPUs that the plan's cases use. */
void run_used_gpus(const struct run *r, bool used[RUN_GPUS]);
/* Appends a line and takes `body`. After a failure it writes nothing more. */
void run_journal(struct run *r, enum journal_type type, json_t *body);
/* Tells the command's progress bar that the case is in this phase. */
void run_progress(struct run *r, const struct bench_case *c, const char *phase);
/* Writes the journal's `end` of a case and updates summary and progress. */
void run_end(struct run *r, const struct bench_case *c, enum ending ending, enum status status,
	     enum cause cause, const char *text, const char *place);

/* Runs a step. Returns early if the run stops or the journal fails. */
void worker_pool_step(struct run *r, const struct step *step);
/* Ends an idle worker and waits for its exit. */
void worker_pool_dismiss(struct run *r, struct worker *w);

/* Makes room for this number of cases in total. */
enum status run_reserve(struct run *r, size_t cases, struct error *err);
/* Runs cases beyond the plan. Numbers them, writes them to the journal as `extend` with marks[i] (owned) as
 * field `mark` of case i, and runs the step. False: the run cannot continue. */
bool run_extend(struct run *r, struct step *step, const char *mark, json_t *marks);
/* Like run_extend(), but does not run the step. */
bool run_extend_report(struct run *r, struct step *step, const char *mark, json_t *marks);

/* Runs the isolation searches for slow or wrong cases of several GPUs (run/isolate/run.c). */
void isolate_search_searches(struct run *r);
/* Waits until all ranks begin this line of the suite. */
void team_line(struct run *r, const struct bench_case *c);
/* Runs a case of the whole team: all ranks agree on it, this rank runs its part if it has one, and all end it
 * together. */
void team_case(struct run *r, const struct bench_case *c);
/* A wave: groups of launched ranks that run simultaneously. No rank is in two groups. All ranks take part in
 * the agreement. */
struct run_wave {
	unsigned ordinal;	       /* ordinal of its first case among the team's cases */
	const char *what;	       /* description; equal on all ranks */
	const struct bench_case *like; /* case of the plan whose engine and limit all groups have */
	const struct bench_case *own;  /* this rank's case; NULL: it is in no group */
	bool again;		       /* same groups as the previous wave, so their workers exist */
};
/* False: no rank begins the wave. The end of this rank's own case is then in the journal. *why is the reason.
 */
bool team_wave_begin(struct run *r, const struct run_wave *v, struct error *why);
/* Runs the wave after team_wave_begin(). False: the team has ended. */
bool team_wave_work(struct run *r, const struct run_wave *v);
/* Handles messages of the other ranks while this one waits for something else. `w`: the worker of a team
 * case, or any. */
void team_attend(struct run *r, struct worker *w);

/* Ends the team because a message to or from another rank was lost. */
void team_ended(struct run *r, const struct error *err);
/* At the end of the run: waits until all ranks are there. False: no team, or the team ended before. */
bool team_part(struct run *r);

/* Checks a case's result for a disturbance that a second round may remove. repeat_disturbed() runs that round
 * at the end (run/followup/repeat_disturbed.c). */
void repeat_disturbed_note(struct run *r, const struct bench_case *c, const char *phase,
			   const json_t *values);
void repeat_disturbed(struct run *r);
/* Marks CPU cases of the plan whose figures contradict each other (journal/figure/contradiction.h) for the
 * second round. */
void repeat_disturbed_contradictions(struct run *r);

/* Reads the counters before the first case. */
void health_begin(struct run *r);
/* Reads the counters after a case: every five seconds, after a case that failed, and after NVML stopped
 * answering. `pool` has the workers that may still use the case's GPUs. */
void health_between(struct run *r, const struct bench_case *c, struct worker *pool, size_t count);
void health_end(struct run *r);
/* Records that NVML has stopped answering for this GPU. Warns once per GPU. `cause`: gpu_lost if NVML reports
 * that. */
void health_silent(struct run *r, unsigned gpu, const char *why, enum cause cause);
/* Tries other BLAS kernels for CPU GEMMs below their threshold (run/followup/blas_kernel_search.c). */
void blas_search_round(struct run *r);
/* Takes over the attempts of an interrupted run. An attempt that did not end is repeated. */
enum status blas_search_take_up(struct run *r, const struct record_case *c, struct error *err);

void telemetry_reader_start(struct run *r);
void telemetry_reader_read(struct run *r); /* reads what the sampler has sent */
/* Writes everything that the sampler has sent to the journal, so that the next synced line covers it. */
void telemetry_reader_write(struct run *r);
/* Tells the sampler that a window is about to begin. */
void telemetry_reader_begin(const struct run *r);
/* Requests the window's means for the case's results. They are written when telemetry has passed the window's
 * end. */
void telemetry_reader_want(struct run *r, const struct bench_case *c, const char *phase, uint64_t t0_ns,
			   uint64_t t1_ns);
void telemetry_reader_stop(struct run *r); /* reads the last lines, writes all windows, ends the sampler */
/* Writes the means of `source` over the window as result fields. A field is absent if its signal has no
 * usable readings. Pure. */
void telemetry_reader_values(const struct series *series, size_t count, const char *source, uint64_t t0_ns,
			     uint64_t t1_ns, struct result *out);
/* The mean of one signal of `source` over the window; 0: it has no usable readings. Pure. */
double telemetry_reader_mean(const struct series *series, size_t count, const char *source,
			     const char *signal, uint64_t t0_ns, uint64_t t1_ns);
#endif
