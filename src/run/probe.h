/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definition of a probe. The core does loops, clocks, warm-up, phases, statistics and tuning. A probe never
 * times, repeats, prints or decides. docs/CONTRIBUTING.md, "Adding a probe", has an example.
 */
#ifndef RUN_PROBE_H
#define RUN_PROBE_H
#include <signal.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/input/opt.h"
#include "journal/field.h"
#include "machine/machine.h"
#include "run/plan/case.h"
#include "team/team.h"

struct gpu;
struct gpu_device;
struct gpu_stream;

struct wrong {
	uint64_t checked, total, count, first_index;
	double expected, found;
	bool nan;
	unsigned suspect; /* several ranks: the rank whose data seems wrong, counted from 1; 0: none */
	unsigned ranks,
		/* several ranks: number of ranks that found wrong data, and the first of them; not set by the
		 * probe */
		rank;
	char place[96]; /* in the probe's own terms: "row 17 column 4011", "address 0x7f.." */
};

/* Resources of an engine. All are lent for the duration of the case. */
struct bench {
	const struct machine *machine;
	const struct target *target;
	struct team *team;	   /* this rank in the team that measures together; NULL: one rank */
	struct gpu_device *device; /* NULL for a CPU target; its context is current on this thread */
	unsigned gpu;		   /* index of the GPU in the machine */
	struct gpu_stream *stream[2];
	/* Target PAIR: the other GPU and a stream of its own. It is current only inside an engine's call that
	 * makes it so. */
	struct gpu_device *peer;
	struct gpu_stream *peer_stream;
	const unsigned *cpus; /* logical CPUs to use, one per thread */
	/* number of `cpus`; an engine that uses fewer sets field_threads in `out` during prepare */
	unsigned threads;
	uint64_t seed;
	double search_s; /* time limit for variants, including the time to list them (field_listing_s) */
	/* not 0: a long prepare ends as CANCELLED; NULL: it cannot be stopped */
	const volatile sig_atomic_t *stop;
	const struct clock *clock; /* for waits and time limits; a probe never times its work */
	struct result *out;	   /* the engine's own facts, as fields of the probe (phase "once") */
	const struct log *log;
};

/* How a GPU meter enqueues iterations. AUTO: it replays short iterations from a graph. */
enum launch { LAUNCH_AUTO, LAUNCH_STREAM, LAUNCH_GRAPH };

/* An environment variable with its value, "OPENBLAS_CORETYPE=SkylakeX", set in a worker of its own. */
enum { ENGINE_SETTING = 300 };
struct engine_setting {
	char text[ENGINE_SETTING];
};

/* One way to do a probe's work: openblas, onednn, cublaslt, own, driver. The engine is part of the key. */
struct engine {
	const char *name;
	/* "cublaslt cuda": names that `supports` may pass to machine_lib(); also groups workers */
	const char *libs;
	const char *others; /* further names that `settings` may pass to machine_lib(); NULL: none */
	unsigned targets;   /* TARGET_* bits */
	/* Options whose default differs from the probe's: pairs of name and value, ended by a NULL name.
	 * NULL: none. */
	const char *const (*presets)[2];
	unsigned streams; /* 0: needs no open device; the CPU's clock times it on any target */
	/* Target PAIR: the GPU of the target that is `device` and whose stream is timed. 0: sender, 1:
	 * receiver. */
	unsigned seat;
	/* GPU: every iteration is enqueued by itself and never replayed from a graph, to measure the cost of
	 * a launch. */
	bool plain;
	/* Targets NODE and TEAM. False: one rank per GPU of the target. True: one rank per launched process.
	 */
	bool launched;
	/* With `launched`: the library can be initialized only once per launched rank, and on all ranks
	 * together. So one worker runs all its cases until the end of the run, and each case has all ranks.
	 */
	bool once;
	/* GPU, optional: how to enqueue with these options; the same on all ranks. With several ranks, AUTO
	 * means STREAM, because all ranks must decide alike. Pure. */
	enum launch (*launch)(const void *opts);
	size_t state_size; /* probe's struct first */
	/* Runs in the supervisor, pure over facts. UNSUPPORTED: the case is skipped. UNAVAILABLE: it is
	 * unknown, with the cause. `prepare` may return the same later. NULL: always supported. */
	enum status (*supports)(const struct machine *m, const struct target *t, const void *opts,
				struct error *err);
	/* CPU, optional. Settings that may help if a figure is low, the likeliest first. Each makes the
	 * library use other code, or selects another library with the same functions. `chosen`: the result
	 * field "kernels", or "". Pure, except that it reads the environment. */
	unsigned (*settings)(const struct machine *m, const char *chosen, struct engine_setting *out,
			     unsigned max);
	/* Runs in the worker, for each rank on its own thread. The state is zeroed. After a failure, release
	 * is still called. */
	enum status (*prepare)(void *state, const struct bench *b, const void *opts, struct error *err);
	/* GPU: enqueues on stream[0] and may be captured, so it must not synchronize or allocate. CPU: does
	 * the work and returns. `i` counts up and selects the buffers in rotation. */
	enum status (*enqueue)(void *state, uint64_t i, struct error *err);
	/* CPU, optional: returns when all ranks have called it. Called before each timed batch, outside its
	 * time, so that no rank's time includes waiting for another's start. */
	enum status (*align)(void *state, struct error *err);
	/* CPU, optional: CPU time in ns of the engine's own threads since prepare, to detect other work.
	 * NULL: the CPU time of the process. */
	uint64_t (*cpu_time_ns)(void *state);
	/* Optional. Variants that the core times; 0 is the library's first choice. A probe never times, so it
	 * cannot tune. `select` also sets *name to the variant's name (static or owned by the state). */
	unsigned (*variants)(void *state);
	enum status (*select)(void *state, unsigned variant, const char **name, struct error *err);
	/* Optional: compares on the device and counts, on the same stream (stress: every result). */
	enum status (*enqueue_check)(void *state, uint64_t i, struct error *err);
	void (*release)(void *state); /* accepts a partly prepared state */
};

/* The ceiling of a CPU case on this machine: another probe's work, interleaved with the case's own
 * (docs/explanation/design/interleave.md). */
struct ceiling {
	const struct probe *probe;
	const struct engine *engine;
	_Alignas(16) unsigned char opts[256]; /* options of that probe, all set */
};

/* A named set of options: `assay probe NAME --preset WORD`. */
struct probe_preset {
	const char *name, *summary;
	/* used if the command line names none; NULL: the same default as without a preset */
	const char *target, *engine;
	const char *const *options; /* "name=value[,value..]"; NULL ends the list */
};

/* a reading (ECC, versions) has only `observe`; it also works on a recorded machine */
enum probe_kind { PROBE_TIMED, PROBE_READING };

struct probe {
	const char *name, *summary;
	bool hidden; /* for tests: not listed */
	/* One GPU only: hardware counters are read over some iterations after the timed ones (phase
	 * "counted"). */
	bool counted;
	enum probe_kind kind;
	enum target_kind reads; /* a reading: TARGET_GPU or TARGET_NODE, the only target that it runs on */
	struct opt_table opts;
	const struct probe_preset *presets; /* a NULL name ends the list; NULL: none */
	const struct field *fields;
	size_t field_count;
	const struct engine *const *engines; /* for CPU and GPU; NULL ends the list; NULL for a reading */
	struct work (*work)(const struct machine *m, const struct target *t, const void *opts);
	/* Sets device_bytes and host_bytes of *out to the peak memory of one case. Buffers that adapt to the
	 * machine count with their adapted size. Pure. NULL: no estimate, and the plan reports that. */
	void (*need)(const struct machine *m, const struct target *t, const void *opts, struct need *out);
	/* Optional, pure. Checks options that depend on each other (m*n*k fits memory ..), beyond the range
	 * of each. */
	enum status (*check)(const void *opts, struct error *err);
	/* Optional, for CPU targets: fills *out with the work whose rate limits these options on this
	 * machine. False: assay has no such measurement. Pure. */
	bool (*ceiling)(const struct machine *m, const struct target *t, const void *opts,
			struct ceiling *out);
	/* Independent of the engine, and detects NaN. Runs for each variant before it is timed, and after the
	 * sustained phase on the data of that phase. Fills *wrong; MISMATCH if wrong->count > 0. With several
	 * ranks, each checks its own result, and a rank with a wrong result still takes part in every
	 * agreement. */
	enum status (*verify)(void *state, struct wrong *wrong, struct error *err);
	/* Optional. Runs after the phases on every rank: facts that only the probe can derive from its own
	 * device-side records (per-SM times, the levels of a curve). */
	enum status (*finish)(void *state, struct result *out, struct error *err);
	/* Writes facts as fields. The judge has the rules and the verdict. */
	enum status (*observe)(const struct machine *m, const struct target *t, const void *opts,
			       struct result *out, struct error *err);
};
#endif
