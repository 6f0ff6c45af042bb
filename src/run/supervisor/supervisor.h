/* SPDX-License-Identifier: Apache-2.0 */
/* A run in progress: what supervisor.c, worker_pool.c and telemetry_reader.c share. Design:
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

#define RUN_TERM_NS 2000000000u	  /* a case over its limit has so long to end by itself */
#define RUN_STOP_NS 600000000u	  /* on a request to stop: the journal is closed within a second */
#define RUN_KILL_MS 2000	  /* KILL to be seen; then the process is stuck */
#define RUN_STAGGER_NS 100000000u /* between the starts of workers that run together */

enum { RUN_GPUS = 256, RUN_WORDS = 1024 };

struct run;

/* Telemetry: the sampler's lines into the journal, and their means over a case's windows into its results. */
struct telemetry_reader_window {
	unsigned id;
	char phase[16], source[40];
	uint64_t t0_ns, t1_ns, since_ns; /* since: when it was asked for */
};

struct watch {
	struct process sampler;
	bool alive;
	struct lines in;
	struct series *series;
	size_t series_count;
	struct telemetry_block block;		/* what is not journaled yet */
	uint64_t block_since_ns;		/* when its first reading came */
	struct telemetry_reader_window *window; /* waiting for telemetry to pass their end */
	size_t window_count;
	uint64_t heard_ns; /* last line */
	bool stalled;	   /* said so once */
	struct thermal_guard guard[RUN_GPUS];
};

/* A worker that is quiet for long is asked nothing: it is waited for, up to its limit. */
struct worker {
	struct process p;
	bool alive;
	char group[32], place[TARGET_TEXT];
	char setting[sizeof(((struct bench_case *)0)->setting)]; /* in its environment */
	const struct bench_case *c;				 /* running; NULL: idle */
	struct lines in;
	struct team_board *board; /* where its ranks stand; NULL: it has one */
	int board_fd;		  /* with a board */
	char call[48];		  /* of NVML, which had not returned then */
	char stood[400];	  /* who waited where when it was told to end */
	char words[RUN_WORDS];	  /* the end of what it wrote to stdout and stderr */
	char phase[16];
	bool ready, told_to_go, ended_case;
	uint16_t port; /* rank 0's of a team: where it listens; 0: it has not said */
	bool said_port;
	bool leaves;		    /* it said that its device is lost and goes by itself */
	bool fell;		    /* the one before it was ended by force or crashed */
	bool garbled;		    /* it wrote what is no line of ours, or of another case */
	uint64_t limit_ns, kill_ns; /* when TERM, when KILL; 0: not set */
	enum ending forced;	    /* how its case ends since it was told to end; DONE: it was not */
	enum cause forced_cause;
	char forced_text[128];
	struct run *run;
};

/* Why a GPU is used no more in this run. */
enum lost { LOST_NOT, LOST_GONE, LOST_HOT };

/* A team's worker here, kept from one case of the team to the next that stands right behind it; of engines
 * that begin once, to the run's end. */
struct run_team {
	bool any;
	unsigned id, generation, rank, size; /* rank, size: among the case's members */
	unsigned first;			     /* of them: the launched rank that conducts */
	unsigned agreed;		     /* generation of the next workers */
	char group[32], place[TARGET_TEXT];
	char secret[33], host[80];
	uint16_t port;
	bool fell; /* another rank's worker, in this case */
	bool lost; /* a worker fell: for engines that begin once there is no other; lost_by: in which case */
	unsigned lost_by;
};

/* Readings of the GPUs' counters (gpu_health.c). */
struct run_health {
	bool off;	  /* no case uses a GPU, or NVML does not answer: nothing more is read */
	uint64_t read_ns; /* the last reading */
	bool answered[RUN_GPUS];
	bool silent[RUN_GPUS], checked[RUN_GPUS]; /* NVML has stopped to answer for it; CUDA was asked */
	bool asks;				  /* one is silent and not checked */
	char why[RUN_GPUS][96];
	enum cause cause[RUN_GPUS]; /* of the silence: gpu_lost, version_mismatch or another */
};

/* An attempt by other kernels for a case of the plan (run/followup/blas_kernel_search.c), of this run or of
 * the part before. */
struct run_try {
	unsigned id; /* of the low case */
	bool reached;
	char what[ENGINE_SETTING]; /* setting or engine */
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
	struct worker keeper; /* of the last step in order, for the next of its group and target */
	/* Each has room for `room` cases: those of the plan, then those that came to it. */
	unsigned *attempt;	   /* a case: times begun */
	bool *done;		   /* a case: ended in an earlier run */
	struct case_outcome *note; /* a case: what it came to */
	size_t room;
	unsigned next_id;      /* of the next case beyond the plan */
	unsigned team_cases;   /* of the whole team, so far; the same on all ranks */
	bool searched;	       /* an earlier run has searched what was slow or wrong */
	bool *disturbed;       /* a case of the plan: wants a second round */
	bool repeated;	       /* an earlier run had its second round */
	struct run_try *tries; /* of other kernels */
	size_t try_count;
	size_t case_done;
	enum lost lost[RUN_GPUS]; /* quarantined: by the case lost_by */
	unsigned lost_by[RUN_GPUS];
	uint64_t t0_ns;
	struct error team_over;	  /* why there are no more cases of the team; OK: there are */
	struct worker slot;	  /* of launched engines: one for the whole run */
	struct run_team teams[2]; /* the last case of each: launched engines second */
	struct run_team *team;	  /* of the case at hand */
	unsigned line, round;	  /* of the suite: where this rank stands */
	unsigned line_ms;	  /* what the line may take on the rank that has most to do; 0: no line */
	enum ending last_ending;  /* of the case that ended last */
	enum status status;	  /* of the journal: once it cannot be written the run is over */
	struct error *err;
};

bool run_stopping(const struct run *r);
/* The GPUs that a case of the plan will use. */
void run_used_gpus(const struct run *r, bool used[RUN_GPUS]);
/* Appends; steals `body`. After a failure nothing more is written. */
void run_journal(struct run *r, enum journal_type type, json_t *body);
/* Tells the command's bar that the case is in this phase. */
void run_progress(struct run *r, const struct bench_case *c, const char *phase);
/* `end` of a case, summary and progress with it. */
void run_end(struct run *r, const struct bench_case *c, enum ending ending, enum status status,
	     enum cause cause, const char *text, const char *place);

/* Runs a step; returns early when the run stops or the journal fails. */
void worker_pool_step(struct run *r, const struct step *step);
/* Sends an idle worker home. */
void worker_pool_dismiss(struct run *r, struct worker *w);

/* Room for so many cases in all. */
enum status run_room(struct run *r, size_t cases, struct error *err);
/* Runs cases beyond the plan: numbers them, journals them as an `extend` with marks[i] as `mark` of the i-th
 * (owned), and runs the step. False: nothing runs any more. */
bool run_extend(struct run *r, struct step *step, const char *mark, json_t *marks);
/* The same, but for the running. */
bool run_extend_tell(struct run *r, struct step *step, const char *mark, json_t *marks);

/* Looks for what makes the cases of several GPUs slow or wrong (run/isolate/run.c). */
void isolate_search_searches(struct run *r);
/* All ranks begin a line of the suite together. */
void team_line(struct run *r, const struct bench_case *c);
/* A case of the whole team: agreed, run here where this rank takes part, and ended by all. */
void team_case(struct run *r, const struct bench_case *c);
/* Groups of launched ranks that work at one time, no rank in two of them. All ranks come to it. */
struct run_wave {
	unsigned ordinal;	       /* of its first case among those of the team */
	const char *what;	       /* the same on all ranks */
	const struct bench_case *like; /* of the plan: its engine and limit are those of all groups */
	const struct bench_case *own;  /* this rank's; NULL: it is in no group */
	bool again;		       /* the groups of the wave before: their workers are there */
};
/* False: no rank begins it. Of its own case that has been recorded; *why says it of the others'. */
bool team_wave_begin(struct run *r, const struct run_wave *v, struct error *why);
/* After that. False: the team is over. */
bool team_wave_work(struct run *r, const struct run_wave *v);
/* While anything else is waited for: what the others say. `w`: the worker of a team's case, or any. */
void team_attend(struct run *r, struct worker *w);

/* A word to the others, or of them, did not come: the team is over. */
void team_ended(struct run *r, const struct error *err);
/* At the end of the run: all have come to it. False: alone, or the team ended before. */
bool team_part(struct run *r);

/* Looks at a case's result for what a second round may mend, and runs that at the end
 * (run/followup/repeat_disturbed.c). */
void repeat_disturbed_note(struct run *r, const struct bench_case *c, const char *phase,
			   const json_t *values);
void repeat_disturbed(struct run *r);
/* CPU figures of the plan of which one must be wrong (journal/figure/contradiction.h): both want a second
 * round. */
void repeat_disturbed_contradictions(struct run *r);

/* Reads the counters before the first case. */
void health_begin(struct run *r);
/* After a case, with the workers that may still hold its GPUs: every five seconds, after a case that did not
 * end well, and when NVML fell silent. */
void health_between(struct run *r, const struct bench_case *c, struct worker *pool, size_t count);
void health_end(struct run *r);
/* NVML has stopped to answer for this GPU of the machine. Said once. `cause`: gpu_lost if NVML itself says
 * so. */
void health_silent(struct run *r, unsigned gpu, const char *why, enum cause cause);
/* Tries other kernels for products that are low on the CPU (run/followup/blas_kernel_search.c). */
void blas_search_round(struct run *r);
/* What the part before has tried: an attempt that it did not end is done again. */
enum status blas_search_take_up(struct run *r, const struct record_case *c, struct error *err);

void telemetry_reader_start(struct run *r);
void telemetry_reader_read(struct run *r); /* what the sampler has sent */
/* Journals all that the sampler has sent, so that the next synced line covers it. */
void telemetry_reader_write(struct run *r);
/* Tells the sampler that a window is about to begin. */
void telemetry_reader_begin(const struct run *r);
/* Wants the window's means in the case's results once telemetry has passed its end. */
void telemetry_reader_want(struct run *r, const struct bench_case *c, const char *phase, uint64_t t0_ns,
			   uint64_t t1_ns);
void telemetry_reader_stop(struct run *r); /* takes the last lines, settles all windows, ends the sampler */
/* Means of `source` over the window as result fields. Absent where a signal says nothing of it. Pure. */
void telemetry_reader_values(const struct series *series, size_t count, const char *source, uint64_t t0_ns,
			     uint64_t t1_ns, struct result *out);
#endif
