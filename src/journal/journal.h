/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The append-only record of a run: journal.jsonl, or journal.jsonl.zst once it is over (journal/file/compressed.h); one JSON object a line,
 *   {"n":sequence,"t":monotonic_ns,"type":"...", body...}
 * Case ids are places in the plan, 0 first. A resumed run appends another `open`; a result for a phase joins the earlier
 * ones; `phase` t0, t1 and telemetry t are CLOCK_MONOTONIC of the boot they were taken in (journal/record/record.h makes one axis of it).
 * A line without its newline is torn.
 *
 * One writer a file: its supervisor. Worker and sampler send lines over a socket pair, so a kill loses nothing that was
 * sent but up to a second of telemetry, which waits to be journaled together. fsync on `end` and `close`. Any prefix reads. Bodies are documented in docs/explanation/design/journal.md and below:
 *
 * open      {"schema":3,"program":"0.1.0","command":[word..],"build":"..","wall":"..Z","node":"..","salt":hex?,"seed":N?,"suite":"quick",
 *            "expectations":"builtin"|dir,"options":{..},"boot":id?,"started":ns?,"price_per_hour":x?,"team":{..}?,"planted":fault?,
 *            "kept":{"expectations.txt":sum?,"site.yaml":sum?}?}
 *            command: the words as given; build: of the program's file; node: a pseudonym unless options.real_names; started: when the program was started, as t;
 *            team: {"rank":r,"size":n,"node":index,"nodes":[{"name","ranks":[r..],"offset_ns":its clock less rank 0's,"error_ns","at":ns of
 *            rank 0's clock}..]}?  of a rank of several (docs/explanation/design/team.md); the journals of the others lie below nodes/
 *            salt: 128 random bits, of the reports' pseudonyms; in the first open of a run, not before there was one
 *            seed: of all random data; a job has none of the run's
 *            boot: the kernel's id of this boot, shown as the facts show it
 *            kept: SHA-256 of the files beside it that judge the run; not in later opens, nor before there was one
 * machine   {"facts":{..}}                            pseudonyms for serials, UUIDs, hosts, unless real names were asked for
 * plan      {"hash":"..","suite":"..","fields":{"gemm":[{"name","unit","kind","better","help"}..]},
 *            "steps":[{"together":false,"lockstep":true?,"cases":[CASE..]}]}
 *   CASE = {"case":id,"key":"gemm engine=..","probe":"gemm","engine":"cublaslt","options":{name:text..},
 *           "kind":"timed"|"reading","target":"gpu0"|"cpu"|"cpu:node1","gpus":["0000:1b:00.0"],"phases":"headline"|"burst",
 *           "require":(journal/require.h),"limit_ms":N,"group":"..",
 *           "work":{"flop":x,"read_bytes":x,"write_bytes":x,"link_bytes":x,"messages":x,"limit":"compute.bf16"},
 *           "need":{"device_bytes":x,"host_bytes":x}?,"together"|"lockstep":true?,"seconds":x?,"search_s":x?,"setting":"NAME=value of its worker's environment"?,"beside":"who uses the device"?,
 *           "skip":null|{"status":"unavailable","cause":"library_missing","reason":".."}}
 * extend    {"steps":[..]}                            more cases; ids go on: the second round, each with "again":id; a search for what
 *            is bad with a case (docs/explanation/design/isolation.md), each with "follows":{"case":id,"round":k,"why":".."};
 *            the same product by other kernels or another library, with "tries":"setting or engine" in it
 * begin     {"case":id,"attempt":k,"pid":N}
 * phase     {"case":id,"phase":"prepare|cold|ramp|burst|settle|sustained|single|verify|search|pairs","t0":ns,"t1":ns}
 * samples   {"case":id,"phase":"burst","batch":N,"ns":[per-iteration ns a sample ..]}    in chunks of <= 4096
 * result    {"case":id,"phase":"cold"|"burst"|"sustained"|"best"|"once"|"isolated","values":{field:value..}}  once: readings, curves' own
 *            of a training also "kernels" and "choices": {"choices_cached":N,"choices_key":"..","choices":[{"what":"a product","choice":"algo66 ..",
 *            "from":"cache","key":".."}..]}: what was chosen by time, and by which other run's time
 * telemetry {"source":"gpu:0000:1b:00.0"|"host","from":ns,"signals":{"power_w":{"kind":"gauge|counter|bits","after":[ns..],
 *            "v":[number|null..]}..}}   about a second; after: since the reading before it, the first since from
 *            schema 1: {"source","signal":"power_w","kind","at":[ns..],"v"}
 * health    {"when":"before"|"between"|"after"|"resumed","gpus":{"0000:1b:00.0":{"t_ns":ns,"counters":{name:n},"states":{name:n},
 *            "signals":{name:n},"errors":{"link 3":n}} | {"t_ns":ns,"why":"what NVML answers","cuda":"ok"|"why not"?,
 *            "cuda_missing":"why CUDA could not be asked"?}}}
 *            counters only grow, in their facts' names, or *_s; states come and go; signals are the sampler's (schema 3)
 * end       {"case":id,"ending":"done","status":"ok","cause":"","text":"..","place":"file:line"?}
 * close     {"ending":"done"|"cancelled"|..,"text":"","team":{as in open, clocks read again at the end}?}
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
#define JOURNAL_CUT ".cut" /* behind its name: what a resumed run could not read */
enum { JOURNAL_LINE_MAX = 16 << 20, JOURNAL_SCHEMA = 3 /* written; 1 and 2 are read too */ };

struct journal;
/* Creates the directory and the file (refuses an existing journal unless `append`, which cuts what
 * cannot be read at its end and keeps that as JOURNAL_FILE JOURNAL_CUT). */
enum status journal_create(struct journal **j, const char *dir, bool append, const struct clock *clock,
			   struct error *err);
/* Appends one event; steals nothing: `body` is borrowed, and has no n, t or type of its own (BUG). A full
 * disk is NO_RESOURCE with cause DISK_FULL and what was written before still reads. A file that was removed
 * or moved is UNAVAILABLE; a removed one is written to its place again, this line too, where that can be
 * done. */
enum status journal_append(struct journal *j, enum journal_type type, const json_t *body, struct error *err);
/* Last sync and close; NULL-safe. */
void journal_close(struct journal **j);

/* UNAVAILABLE or the system's error: why `dir` has no journal that opens, by the errno of the attempt. The
 * message says whether it is a file, or a folder that holds runs. */
enum status journal_lacking(const char *dir, int errnum, struct error *err);
/* Whether there is a run in `dir`: a journal, or one that was compressed (journal/file/compressed.h). */
bool journal_held(const char *dir);
/* Of the journal's bytes, also where it was compressed. */
enum status journal_sha256(char hex[65], const char *dir, struct error *err);
/* Any prefix reads. `visit` returns 0 to go on. *cut: bytes dropped at the end (torn or garbage line). A bad
 * line in the middle ends the reading there: the rest counts as cut. Of a compressed journal that is cut, the
 * bytes that are missing count as one. */
typedef int journal_visit(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body);
enum status journal_read(const char *dir, journal_visit *visit, void *arg, uint64_t *cut, struct error *err);
/* One line of bytes to type and body (fuzzed). Caller decrefs *body. */
enum status journal_parse_line(const char *line, size_t size, enum journal_type *type, uint64_t *t_ns,
			       json_t **body, struct error *err);
#endif
