/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The append-only record of a run: journal.jsonl, or journal.jsonl.zst after the run (journal/file/compressed.h). Each line is one JSON object,
 *   {"n":sequence,"t":monotonic_ns,"type":"...", body...}
 * A case id is the position of the case in the plan, from 0. A resumed run appends another `open`. Several `result` lines of a
 * phase are merged. t0 and t1 of `phase` and the times of telemetry are CLOCK_MONOTONIC of the boot they were taken in;
 * journal/record/record.h converts all times to one axis. A line without its newline is torn.
 *
 * Each file has one writer, the supervisor of its rank. Worker and sampler send lines over a socket pair. So a kill loses nothing
 * that was sent, except up to a second of telemetry that waits for its line. The file is synced on `end` and `close`. Any prefix
 * of a journal is readable. Bodies are documented in docs/explanation/design/journal.md and here:
 *
 * open      {"schema":3,"program":"0.1.0","command":[word..],"build":"..","wall":"..Z","node":"..","salt":hex?,"seed":N?,"suite":"quick",
 *            "expectations":"builtin"|dir,"options":{..},"boot":id?,"started":ns?,"price_per_hour":x?,"team":{..}?,"planted":fault?,
 *            "kept":{"expectations.txt":sum?,"site.yaml":sum?}?}
 *            command: the arguments as given; build: identifies the program's file; node: a pseudonym unless options.real_names;
 *            started: start time of the program, on the clock of t;
 *            team: {"rank":r,"size":n,"node":index,"nodes":[{"name","ranks":[r..],"offset_ns":its clock minus rank 0's,"error_ns","at":ns of
 *            rank 0's clock}..]}?  only in a team (docs/explanation/design/team.md); the journals of the other ranks are below nodes/
 *            salt: 128 random bits for the pseudonyms in reports; only in the first open of a run; absent from old journals
 *            seed: of all random data; a job does not use it
 *            boot: the kernel's boot id, in the same form as in the facts
 *            kept: SHA-256 of the files next to the journal that judge the run; only in the first open; absent from old journals
 * machine   {"facts":{..}}                            pseudonyms for serials, UUIDs and hosts, unless options.real_names
 * plan      {"hash":"..","suite":"..","fields":{"gemm":[{"name","unit","kind","better","help"}..]},
 *            "steps":[{"together":false,"lockstep":true?,"cases":[CASE..]}]}
 *   CASE = {"case":id,"key":"gemm engine=..","probe":"gemm","engine":"cublaslt","options":{name:text..},
 *           "kind":"timed"|"reading","target":"gpu0"|"cpu"|"cpu:node1","gpus":["0000:1b:00.0"],"phases":"headline"|"burst",
 *           "require":(journal/require.h),"limit_ms":N,"group":"..",
 *           "work":{"flop":x,"read_bytes":x,"write_bytes":x,"link_bytes":x,"messages":x,"limit":"compute.bf16"},
 *           "need":{"device_bytes":x,"host_bytes":x}?,"together"|"lockstep":true?,"seconds":x?,"search_s":x?,"setting":"NAME=value of its worker's environment"?,"beside":"who uses the device"?,
 *           "skip":null|{"status":"unavailable","cause":"library_missing","reason":".."}}
 * extend    {"steps":[..]}                            more cases, with consecutive ids: a further round, each with "again":id; an isolation search for
 *            a case (docs/explanation/design/isolation.md), each with "follows":{"case":id,"round":k,"why":".."}; for the same
 *            GEMM by other kernels or another library also "tries":"setting or engine" in it
 * begin     {"case":id,"attempt":k,"pid":N}
 * phase     {"case":id,"phase":"prepare|cold|ramp|burst|settle|sustained|single|verify|search|pairs","t0":ns,"t1":ns}
 * samples   {"case":id,"phase":"burst","batch":N,"ns":[per-iteration ns a sample ..]}    in chunks of <= 4096
 * result    {"case":id,"phase":"cold"|"burst"|"sustained"|"best"|"once"|"isolated","values":{field:value..}}  once: readings, and values of a whole curve
 *            for training also "kernels" and "choices": {"choices_cached":N,"choices_key":"..","choices":[{"what":"..","choice":"algo66 ..",
 *            "from":"cache","key":".."}..]}: tuning choices by measured time, and the run whose time was used
 * telemetry {"source":"gpu:0000:1b:00.0"|"host","from":ns,"signals":{"power_w":{"kind":"gauge|counter|bits","after":[ns..],
 *            "v":[number|null..]}..}}   about a second; after: ns since the previous reading, for the first one since "from"
 *            schema 1: {"source","signal":"power_w","kind","at":[ns..],"v"}
 * health    {"when":"before"|"between"|"after"|"resumed","gpus":{"0000:1b:00.0":{"t_ns":ns,"counters":{name:n},"states":{name:n},
 *            "signals":{name:n},"errors":{"link 3":n}} | {"t_ns":ns,"why":"what NVML answers","cuda":"ok"|"why not"?,
 *            "cuda_missing":"why CUDA could not be asked"?}}}
 *            counters only grow; they have the names of their facts, or *_s; states may rise and fall; signals: of the sampler (schema 3)
 * end       {"case":id,"ending":"done","status":"ok","cause":"","text":"..","place":"file:line"?}
 * close     {"ending":"done"|"cancelled"|..,"text":"","team":{as in open, with the clocks read again at the end}?}
 */
/* clang-format on */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/clock.h"
#include "core/error.h"

/* name, text */
/* clang-format off */
#define JOURNAL_TYPES(X)                                                                                 \
	X(OPEN, "open") X(MACHINE, "machine") X(PLAN, "plan") X(EXTEND, "extend") X(BEGIN, "begin")      \
	X(PHASE, "phase") X(SAMPLES, "samples") X(RESULT, "result") X(TELEMETRY, "telemetry") X(END, "end") \
	X(HEALTH, "health") X(CLOSE, "close")
/* clang-format on */
#define X(name, text) JOURNAL_##name,
enum journal_type { JOURNAL_TYPES(X) JOURNAL_TYPE_COUNT };
#undef X
const char *journal_type_name(enum journal_type type);
int journal_type_from_name(const char *name, enum journal_type *out);

#define JOURNAL_FILE "journal.jsonl"
#define JOURNAL_CUT ".cut" /* suffix of the file for the part that a resumed run could not read */
enum { JOURNAL_LINE_MAX = 16 << 20, JOURNAL_SCHEMA = 3 /* written; 1 and 2 are read too */ };

struct journal;
/* Creates the directory and the journal. An existing journal is BAD_INPUT, unless `append`: that cuts off an
 * unreadable end and saves it as JOURNAL_FILE JOURNAL_CUT. Owner: caller, journal_close. */
enum status journal_create(struct journal **j, const char *dir, bool append, const struct clock *clock,
			   struct error *err);
/* Appends one line. `body` is borrowed; if it contains n, t or type, the result is BUG. NO_RESOURCE with
 * cause DISK_FULL: the disk is full; earlier lines stay readable. UNAVAILABLE: the file was removed or moved;
 * a removed one is written again with this line if possible. */
enum status journal_append(struct journal *j, enum journal_type type, const json_t *body, struct error *err);
/* Syncs and closes. *j may be NULL. */
void journal_close(struct journal **j);

/* Explains why no journal of `dir` could be opened, from the errno of the attempt. The message says whether
 * `dir` is a file, or a folder that contains runs. Returns UNAVAILABLE or the status of the system's error.
 */
enum status journal_lacking(const char *dir, int errnum, struct error *err);
/* Whether `dir` has a journal or a compressed one (journal/file/compressed.h). */
bool journal_exists(const char *dir);
/* SHA-256 of the journal's uncompressed bytes. */
enum status journal_sha256(char hex[65], const char *dir, struct error *err);
/* Reads a journal; any prefix of one is readable. `visit` returns 0 to continue. *cut: bytes ignored at the
 * end. An invalid line ends the reading, and the rest counts as cut. Missing bytes of a compressed journal
 * count as one. */
typedef int journal_visit(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body);
enum status journal_read(const char *dir, journal_visit *visit, void *arg, uint64_t *cut, struct error *err);
/* Parses one line into type and body (fuzzed). Caller decrefs *body. */
enum status journal_parse_line(const char *line, size_t size, enum journal_type *type, uint64_t *t_ns,
			       json_t **body, struct error *err);
#endif
