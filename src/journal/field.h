/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result is a table of typed fields; what was not read is not there. The core's fields are RESULT_FIELDS;
 * each producer (a probe) adds a table of its own in its own file. JSON, CSV, tables and the schema are
 * expansions.
 */
#ifndef JOURNAL_FIELD_H
#define JOURNAL_FIELD_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind { FIELD_F64, FIELD_U64, FIELD_TEXT, FIELD_BITS };

struct field {
	const char *name, *unit, *help;
	enum field_kind kind;
	int better; /* +1 higher, -1 lower, 0 neither */
};
/* A row of a producer's own table, of its list X(name, unit, kind, better, help). */
#define FIELD_ROW(name_, unit_, kind_, better_, help_)                                                       \
	{.name = #name_, .unit = unit_, .help = help_, .kind = FIELD_##kind_, .better = better_},

/* What every timed phase reports. name, unit, kind, better, help */
/* clang-format off */
#define RESULT_FIELDS(X)                                                                              \
	X(time_ns_median, "ns", F64, -1, "one iteration, median of the samples")                      \
	X(time_ns_min, "ns", F64, -1, "one iteration, fastest sample")                                \
	X(time_ns_mean, "ns", F64, -1, "one iteration, mean over the window")                         \
	X(time_ns_p05, "ns", F64, -1, "5th percentile of the samples, each the mean of its batch")    \
	X(time_ns_p99, "ns", F64, -1, "99th percentile of the samples, each the mean of its batch")   \
	X(time_ns_max, "ns", F64, -1, "slowest sample")                                               \
	X(iteration_ns_p50, "ns", F64, -1, "median of single iterations, timed one by one")           \
	X(iteration_ns_p90, "ns", F64, -1, "90th percentile of single iterations, timed one by one")  \
	X(iteration_ns_p99, "ns", F64, -1, "99th percentile of single iterations, timed one by one")  \
	X(iteration_ns_max, "ns", F64, -1, "slowest of single iterations, timed one by one")          \
	X(iteration_samples, "", U64, 0, "single iterations that these percentiles are of")           \
	X(iteration_mark_ns, "ns", F64, 0, "what the mark between two of them takes by itself, an event or a look at the clock") \
	X(iteration_starved_share, "", F64, -1, "of them, those that the device had to wait for: as long as the host took") \
	X(half_width_share, "", F64, -1, "95 % half-width of the mean by batch means, share of it")   \
	X(samples, "", U64, 0, "samples in the window")                                               \
	X(batch, "", U64, 0, "iterations a sample")                                                   \
	X(iterations, "", U64, 0, "iterations in the window")                                         \
	X(window_s, "s", F64, 0, "length of the window")                                              \
	X(settled, "", U64, 0, "1: clock, power and rate had settled before it")                      \
	X(flop_rate, "FLOP/s", F64, 1, "work.flop over the window's mean time")                       \
	X(byte_rate, "B/s", F64, 1, "bytes read and written over the window's mean time")             \
	X(link_rate, "B/s", F64, 1, "bytes sent over the window's mean time")                         \
	X(message_rate, "1/s", F64, 1, "messages or launches over the window's mean time")            \
	X(latency_ns, "ns", F64, -1, "one message, hop or launch: the window's mean time over their number") \
	X(clock_hz, "Hz", F64, 0, "held clock: stamps on every SM; CPU: dependent adds right after the window") \
	X(clock_spread_share, "", F64, 0, "largest minus smallest SM's held clock, share of the mean") \
	X(pcie_gen_loaded, "", U64, 0, "PCIe generation, read once while the window's copies ran")       \
	X(pcie_width_loaded, "", U64, 0, "PCIe lanes, read once while the window's copies ran")          \
	X(nvlink_tx_bytes, "B", U64, 0, "sent over NVLink in the window, by the device's counters")    \
	X(nvlink_rx_bytes, "B", U64, 0, "received over NVLink in the window")                          \
	X(nvlink_raw_tx_bytes, "B", U64, 0, "sent over NVLink with the protocol around the data")      \
	X(nvlink_raw_rx_bytes, "B", U64, 0, "received over NVLink with the protocol around the data")  \
	X(nvlink_errors_new, "", U64, -1, "NVLink replay, recovery and CRC errors in the window")       \
	X(nvlink_errors_place, "", TEXT, 0, "links that counted them, and how many")                   \
	X(clock_nvml_hz, "Hz", F64, 0, "mean of NVML's SM clock over the window")                     \
	X(memory_clock_hz, "Hz", F64, 0, "mean of NVML's memory clock over the window")               \
	X(power_w, "W", F64, 0, "mean power over the window, from the energy counter's own ticks")    \
	X(power_integral_w, "W", F64, 0, "mean of the instant power readings over the window")        \
	X(energy_j, "J", F64, -1, "energy of the window: power_w times its length")                   \
	X(temperature_c, "C", F64, 0, "highest GPU temperature in the window")                        \
	X(temperature_memory_c, "C", F64, 0, "highest memory temperature in the window")              \
	X(clock_reasons_and, "", BITS, 0, "clock event reasons set in every reading")                 \
	X(clock_reasons_or, "", BITS, 0, "clock event reasons set in any reading")                    \
	X(violation_power_share, "", F64, -1, "share of the window limited by power")                 \
	X(violation_thermal_share, "", F64, -1, "share of the window limited by temperature")         \
	X(tensor_active_share, "", F64, 0, "tensor pipe active over elapsed cycles, GPM")             \
	X(fp32_active_share, "", F64, 0, "FP32 pipe active over elapsed cycles, GPM")                 \
	X(fp64_active_share, "", F64, 0, "FP64 pipe active over elapsed cycles, GPM")                 \
	X(sm_active_share, "", F64, 0, "SMs with a warp over elapsed cycles, GPM")                    \
	X(dram_active_share, "", F64, 0, "DRAM bandwidth used, share of peak, GPM")                   \
	X(counter_tensor_active_share, "", F64, 0, "tensor pipe active over elapsed cycles, CUPTI") \
	X(counter_sm_active_share, "", F64, 0, "SMs with a warp over elapsed cycles, CUPTI") \
	X(counter_occupancy_share, "", F64, 0, "achieved occupancy: warps on active SMs, share of what an SM holds, CUPTI") \
	X(counter_xu_active_share, "", F64, 0, "XU pipe (exponentials) over its peak, CUPTI") \
	X(counter_fma_active_share, "", F64, 0, "FP32 pipe active over elapsed cycles, CUPTI") \
	X(counter_issue_active_share, "", F64, 0, "warp schedulers that issue an instruction over elapsed cycles, CUPTI") \
	X(counter_fp64_active_share, "", F64, 0, "FP64 pipe active over elapsed cycles, CUPTI") \
	X(counter_dram_share, "", F64, 0, "DRAM throughput, share of peak, CUPTI") \
	X(counter_dram_read_bytes, "B", F64, 0, "read from DRAM by one iteration, CUPTI") \
	X(counter_dram_write_bytes, "B", F64, 0, "written to DRAM by one iteration, CUPTI") \
	X(counter_l2_bytes, "B", F64, 0, "through L2 in one iteration, CUPTI") \
	X(counter_l2_hit_share, "", F64, 0, "of them, found there, CUPTI") \
	X(counter_tensor_flop, "FLOP", F64, 0, "executed on the tensor pipe by one iteration, CUPTI") \
	X(counter_sm_cycles, "", F64, 0, "SM cycles of one iteration, CUPTI") \
	X(counter_time_ns, "ns", F64, 0, "one iteration while it was counted, CUPTI") \
	X(counter_clock_hz, "Hz", F64, 0, "clock while it was counted, CUPTI") \
	X(counter_iterations, "", U64, 0, "iterations that were counted, a pass") \
	X(counter_passes, "", U64, 0, "passes that the counters took") \
	X(counter_note, "", TEXT, 0, "why hardware counters were not read, and what to do") \
	X(cpu_share, "", F64, 0, "thread CPU time over threads times wall time")                      \
	X(threads, "", U64, 0, "CPU threads that worked")                                             \
	X(steal_share, "", F64, -1, "share of the threads' time that the host gave to others (steal)") \
	X(ceiling_by, "", TEXT, 0, "the instrument of this machine that was timed in turns with the case") \
	X(ceiling_ratio, "", F64, 1, "rate over the ceiling's in the same turn, median of the turns") \
	X(ceiling_ratio_low, "", F64, 1, "lower edge of its 95 % interval")                           \
	X(ceiling_ratio_high, "", F64, 1, "upper edge of its 95 % interval")                          \
	X(repeats, "", U64, -1, "windows that other work disturbed, and that were taken again")       \
	X(turns, "", U64, 0, "turns with the ceiling that count")                                     \
	X(turns_disturbed, "", U64, -1, "turns that other work disturbed, and that were taken again") \
	X(wrong_checked, "", U64, 0, "elements checked by verification")                              \
	X(wrong_total, "", U64, 0, "elements of the result")                                          \
	X(wrong_count, "", U64, -1, "wrong elements found")                                           \
	X(wrong_suspect, "", U64, 0, "the rank whose share is what is wrong, or seems to be missing in it, or twice in it") \
	X(wrong_ranks, "", U64, -1, "ranks that found something wrong")                               \
	X(wrong_rank, "", U64, 0, "the first of them")                                                \
	X(wrong_place, "", TEXT, 0, "where the first wrong element is, with expected and found")      \
	X(ranks, "", U64, 0, "ranks that worked together")                                            \
	X(rank_ns_min, "ns", F64, -1, "mean of the rank with the shortest iterations")                \
	X(rank_ns_median, "ns", F64, -1, "median of the ranks' means")                                \
	X(rank_ns_max, "ns", F64, -1, "mean of the rank with the longest iterations")                 \
	X(rank_shortest, "", U64, 0, "the rank with the shortest iterations")                         \
	X(rank_longest, "", U64, 0, "the rank with the longest iterations")                           \
	X(wait_share, "", F64, -1, "waiting for the last rank, share of the time: single iterations beyond the shortest rank's") \
	X(skew_ns, "ns", F64, -1, "longest less shortest rank of a single iteration, median: how far apart they begin") \
	X(rank_late, "", U64, 0, "the rank that comes last to 80 % of single iterations or more: its own are the shortest") \
	X(variant, "", TEXT, 0, "the variant timed: what the engine calls it")                        \
	X(listing_s, "s", F64, -1, "time that listing the variants took, a part of the search's budget") \
	X(variants_tried, "", U64, 0, "variants timed by the search")                                 \
	X(variants_dropped, "", U64, 0, "variants left alone after two samples far slower than the best") \
	X(variants_left, "", U64, 0, "variants that the search had no time for")                      \
	X(nominated_ratio, "", F64, 1, "best variant over the first by brief turns, where the search was stopped") \
	X(best_ratio, "", F64, 1, "best variant over the first, median of interleaved pairs")         \
	X(best_ratio_low, "", F64, 1, "lower edge of its 95 % interval")                              \
	X(best_ratio_high, "", F64, 1, "upper edge of its 95 % interval")                              \
	X(not_finite, "", TEXT, 0, "values that came as NaN or infinite, and are left out")
/* clang-format on */

#define X(name, unit, kind, better, help) extern const struct field field_##name;
RESULT_FIELDS(X)
#undef X
extern const struct field *const result_fields[]; /* NULL ends */

struct result; /* every value present or absent */
struct result *result_create(void);
void result_destroy(struct result *r);
/* NaN and infinities: absent, and named by not_finite in the JSON. */
void result_f64(struct result *r, const struct field *f, double value);
void result_u64(struct result *r, const struct field *f, uint64_t value);
void result_text(struct result *r, const struct field *f, const char *value);
bool result_has(const struct result *r, const struct field *f);
double result_get(const struct result *r, const struct field *f, double fallback);
void result_clear(struct result *r);
/* {"name": value, ..}; caller decrefs. BITS are hex text "0x4". */
json_t *result_json(const struct result *r);
/* The table as a plan's line carries it; caller decrefs. */
json_t *field_rows_json(const struct field *fields, size_t count);
/* A JSON string of foreign text: bytes that are not UTF-8 become '?'. NULL text is "". Caller decrefs. */
json_t *field_string(const char *text);
/* As JSON's integers hold it: more than INT64_MAX becomes that. */
json_int_t field_integer(uint64_t n);
/* A command line for the record: assay's own words as they are, since --resume reads them; behind "--", where
 * another program's stand, without secrets (core/text/redact.h). Owner: caller; NULL: no memory. */
json_t *field_command(const char *const *words);
#endif
