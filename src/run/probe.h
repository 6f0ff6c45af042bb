/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a probe is. The core owns loop, clock, warm-up, phases, statistics, tuning; a probe never times,
 * repeats, prints or decides. docs/CONTRIBUTING.md, "Adding a probe", walks through one.
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
	unsigned suspect; /* of several ranks: whose data it seems to be, 1 + rank; 0: nobody's */
	unsigned ranks,
		rank;	/* of several: so many found something wrong, the first of them; not the probe's */
	char place[96]; /* "row 17 column 4011", "address 0x7f..": in the probe's own terms */
};

/* What a worker hands to an engine. All lent for the case's life. */
struct bench {
	const struct machine *machine;
	const struct target *target;
	struct team *team;	   /* this rank among those that measure together; NULL: one rank */
	struct gpu_device *device; /* NULL on a CPU target: context is current on this thread */
	unsigned gpu;		   /* its number in the machine */
	struct gpu_stream *stream[2];
	/* Target PAIR: the other GPU and a stream of its own; never current here but inside an engine's call
	 * that makes it so. */
	struct gpu_device *peer;
	struct gpu_stream *peer_stream;
	const unsigned *cpus; /* logical CPUs to use, one a thread */
	unsigned threads; /* of cpus; an engine that uses fewer says so: field_threads in out, at prepare */
	uint64_t seed;
	double search_s; /* budget for variants: what listing them takes (field_listing_s) is taken from it */
	const volatile sig_atomic_t *stop; /* not 0: a long prepare ends CANCELLED; NULL: never */
	const struct clock *clock;	   /* for waiting and budgets; a probe never times its work */
	struct result *out;		   /* the engine's own facts: probe's fields (phase "once") */
	const struct log *log;
};

/* How a GPU meter enqueues iterations. AUTO: short ones are replayed from a graph. */
enum launch { LAUNCH_AUTO, LAUNCH_STREAM, LAUNCH_GRAPH };

/* An environment variable with its value, "OPENBLAS_CORETYPE=SkylakeX": for a worker of its own. */
enum { ENGINE_SETTING = 300 };
struct engine_setting {
	char text[ENGINE_SETTING];
};

/* One way to do a probe's work: openblas, onednn, cublaslt, own, driver. Part of the key. */
struct engine {
	const char *name;
	/* "cublaslt cuda": machine_lib names its supports may ask for; also groups workers. */
	const char *libs;
	const char *others; /* more names that its settings may ask for; NULL: none */
	unsigned targets;   /* TARGET_* bits */
	/* Of options whose default here is another than the probe's: name and value, a NULL name at the end;
	 * NULL: of none. */
	const char *const (*presets)[2];
	unsigned streams; /* 0: needs no device opened, and is timed by the CPU's clock on any target */
	/* Target PAIR: which GPU of the target is `device`, whose stream is timed: 0 the sender, 1 the
	 * receiver. */
	unsigned seat;
	/* GPU: every iteration is enqueued by itself, never replayed from a graph (what a launch costs). */
	bool plain;
	/* Targets NODE and TEAM. False: a rank a GPU of the target; true: a rank a launched process. */
	bool launched;
	/* With `launched`: what its library begins can be begun once for each launched rank, and on all at
	 * once. So one worker runs all its cases, kept to the run's end, and each case is of all ranks. */
	bool once;
	/* GPU, optional: how it wants to be enqueued with these options; all ranks alike. With several ranks
	 * AUTO is STREAM: each by itself must come to the same. Pure. */
	enum launch (*launch)(const void *opts);
	size_t state_size; /* probe's struct first */
	/* Supervisor, pure over facts. UNSUPPORTED = skip, UNAVAILABLE = unknown with its cause; prepare may
	 * say the same later. NULL: always. */
	enum status (*supports)(const struct machine *m, const struct target *t, const void *opts,
				struct error *err);
	/* CPU, optional. Settings that may help if a figure is low, the likeliest first. Each makes the
	 * library use other code, or takes another library with the same functions. `chosen`: the result
	 * field "kernels", or "". Pure but for the environment. */
	unsigned (*settings)(const struct machine *m, const char *chosen, struct engine_setting *out,
			     unsigned max);
	/* Worker, each rank on its own thread. State is zeroed. On failure release is called all the same. */
	enum status (*prepare)(void *state, const struct bench *b, const void *opts, struct error *err);
	/* GPU: enqueues on stream[0], may be captured: no sync, no allocation. CPU: does the work and
	 * returns. i counts up and rotates buffers. */
	enum status (*enqueue)(void *state, uint64_t i, struct error *err);
	/* CPU, optional: all ranks are here when it returns. Called before each timed batch, outside of its
	 * time, so that none is timed while it waits for another's start. */
	enum status (*align)(void *state, struct error *err);
	/* CPU, optional: CPU time used by the engine's own threads since prepare, ns (contamination check).
	 * NULL: the process's CPU clock is used. */
	uint64_t (*cpu_time_ns)(void *state);
	/* Optional. Candidates the core times (0 = the library's first choice): a probe never times, so it
	 * cannot tune. select also names the candidate in *name (static or state-owned). */
	unsigned (*variants)(void *state);
	enum status (*select)(void *state, unsigned variant, const char **name, struct error *err);
	/* Optional: compare on the device and count, on the same stream (stress: every result). */
	enum status (*enqueue_check)(void *state, uint64_t i, struct error *err);
	void (*release)(void *state); /* accepts any half-built state */
};

/* The instrument of this machine that a CPU case is held against: another probe's work, timed in turns with
 * the case's own (docs/explanation/design/interleave.md). */
struct ceiling {
	const struct probe *probe;
	const struct engine *engine;
	_Alignas(16) unsigned char opts[256]; /* of that probe, all set */
};

/* Options that belong together, by one word: `assay probe NAME --preset WORD`. */
struct probe_preset {
	const char *name, *summary;
	const char *target, *engine; /* where the command line names none; NULL: as without a preset */
	const char *const *options;  /* "name=value[,value..]"; NULL ends */
};

enum probe_kind { PROBE_TIMED, PROBE_READING }; /* a reading (ECC, versions) has observe alone; replays too */

struct probe {
	const char *name, *summary;
	bool hidden; /* for tests: not listed */
	/* On one GPU: hardware counters are read over some iterations behind the timed ones (phase counted).
	 */
	bool counted;
	enum probe_kind kind;
	enum target_kind reads; /* a reading: TARGET_GPU or TARGET_NODE, where alone it runs */
	struct opt_table opts;
	const struct probe_preset *presets; /* a NULL name ends; NULL: none */
	const struct field *fields;
	size_t field_count;
	const struct engine *const *engines; /* CPU and GPU ones; NULL ends; NULL for a reading */
	struct work (*work)(const struct machine *m, const struct target *t, const void *opts);
	/* Fills device_bytes and host_bytes of *out with what one case holds at its peak, buffers that adapt
	 * to the machine as they would. Pure. NULL: it cannot say, and the plan says so. */
	void (*need)(const struct machine *m, const struct target *t, const void *opts, struct need *out);
	/* Options checked together, beyond each row's range (m*n*k fits memory ..). Optional, pure. */
	enum status (*check)(const void *opts, struct error *err);
	/* Optional, for CPU targets: fills *out with what limits these options here; false: no instrument of
	 * ours does. Pure. */
	bool (*ceiling)(const struct machine *m, const struct target *t, const void *opts,
			struct ceiling *out);
	/* Independent of the engine, NaN-safe. Each variant before it is timed; and after sustained, on the
	 * data that phase left. Fills *wrong; MISMATCH when wrong->count > 0. Several ranks: each its own
	 * result, and who finds it wrong comes to every agreement all the same. */
	enum status (*verify)(void *state, struct wrong *wrong, struct error *err);
	/* After the phases, on every rank: facts only the probe can derive from its own device-side records
	 * (per-SM times, a curve's levels). Optional. */
	enum status (*finish)(void *state, struct result *out, struct error *err);
	/* Facts to fields; the rule and its verdict are the judge's. */
	enum status (*observe)(const struct machine *m, const struct target *t, const void *opts,
			       struct result *out, struct error *err);
};
#endif
