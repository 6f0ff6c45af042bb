/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result is a table of typed fields. A value that was not measured is absent. RESULT_FIELDS are the fields
 * of every timed phase; each probe adds a table of its own in its own file. The JSON, the CSV, the tables and
 * the schema are generated from these tables.
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
/* A row of a probe's own table, from its list X(name, unit, kind, better, help). */
#define FIELD_ROW(name_, unit_, kind_, better_, help_)                                                       \
	{.name = #name_, .unit = unit_, .help = help_, .kind = FIELD_##kind_, .better = better_},

/* Fields of every timed phase: name, unit, kind, better, help. */
/* clang-format off */
#define RESULT_FIELDS(X)                                                                              \
	X(time_ns_median, "ns", F64, -1, "one iteration, median of the samples")              \
	X(time_ns_min, "ns", F64, -1, "one iteration, fastest sample")                        \
	X(time_ns_mean, "ns", F64, -1, "one iteration, mean over the window")                 \
	X(time_ns_p05, "ns", F64, -1, "5th percentile of the samples; each sample is the mean of its batch") \
	X(time_ns_p99, "ns", F64, -1, "99th percentile of the samples; each sample is the mean of its batch") \
	X(time_ns_max, "ns", F64, -1, "slowest sample")                                       \
	X(iteration_ns_p50, "ns", F64, -1, "median of individually timed iterations")         \
	X(iteration_ns_p90, "ns", F64, -1, "90th percentile of individually timed iterations") \
	X(iteration_ns_p99, "ns", F64, -1, "99th percentile of individually timed iterations") \
	X(iteration_ns_max, "ns", F64, -1, "slowest individually timed iteration")            \
	X(iteration_samples, "", U64, 0, "number of individually timed iterations")           \
	X(iteration_mark_ns, "ns", F64, 0, "duration of one timestamp between two iterations: a CUDA event or a clock read") \
	X(iteration_starved_share, "", F64, -1, "share of individually timed iterations in which the device waited for the host") \
	X(half_width_share, "", F64, -1, "95 % half-width of the mean by batch means, share of the mean") \
	X(samples, "", U64, 0, "samples in the window")                                       \
	X(batch, "", U64, 0, "iterations per sample")                                         \
	X(iterations, "", U64, 0, "iterations in the window")                                 \
	X(window_s, "s", F64, 0, "length of the window")                                      \
	X(settled, "", U64, 0, "1: clock, power and rate had settled before the window")      \
	X(flop_rate, "FLOP/s", F64, 1, "work.flop of one iteration over the window's mean time") \
	X(byte_rate, "B/s", F64, 1, "bytes read and written by one iteration over the window's mean time") \
	X(link_rate, "B/s", F64, 1, "bytes sent by one iteration over the window's mean time") \
	X(message_rate, "1/s", F64, 1, "messages or launches of one iteration over the window's mean time") \
	X(latency_ns, "ns", F64, -1, "one message, hop or launch: the window's mean time over their number") \
	X(clock_hz, "Hz", F64, 0, "sustained clock; GPU: from timestamps on every SM; CPU: from dependent adds right after the window") \
	X(clock_spread_share, "", F64, 0, "highest minus lowest sustained clock of the SMs, share of their mean") \
	X(pcie_gen_loaded, "", U64, 0, "PCIe generation, read once during the window's copies") \
	X(pcie_width_loaded, "", U64, 0, "PCIe lanes, read once during the window's copies")  \
	X(nvlink_tx_bytes, "B", U64, 0, "sent over NVLink in the window, from the device's counters") \
	X(nvlink_rx_bytes, "B", U64, 0, "received over NVLink in the window, from the device's counters") \
	X(nvlink_raw_tx_bytes, "B", U64, 0, "sent over NVLink in the window, including protocol overhead") \
	X(nvlink_raw_rx_bytes, "B", U64, 0, "received over NVLink in the window, including protocol overhead") \
	X(nvlink_errors_new, "", U64, -1, "NVLink replay, recovery and CRC errors in the window") \
	X(nvlink_errors_place, "", TEXT, 0, "links that counted these errors, and how many each") \
	X(clock_nvml_hz, "Hz", F64, 0, "mean of NVML's SM clock over the window")             \
	X(memory_clock_hz, "Hz", F64, 0, "mean of NVML's memory clock over the window")       \
	X(power_w, "W", F64, 0, "mean power over the window, from the steps of the energy counter") \
	X(power_integral_w, "W", F64, 0, "mean of the instant power readings over the window") \
	X(energy_j, "J", F64, -1, "energy of the window: power_w times the window's length")  \
	X(temperature_c, "C", F64, 0, "highest GPU temperature in the window")                \
	X(temperature_memory_c, "C", F64, 0, "highest memory temperature in the window")      \
	X(clock_reasons_and, "", BITS, 0, "clock event reasons set in every reading")         \
	X(clock_reasons_or, "", BITS, 0, "clock event reasons set in any reading")            \
	X(violation_power_share, "", F64, -1, "share of the window in which power limited the clock") \
	X(violation_thermal_share, "", F64, -1, "share of the window in which temperature limited the clock") \
	X(tensor_active_share, "", F64, 0, "cycles with an active tensor pipe over elapsed cycles, GPM") \
	X(fp32_active_share, "", F64, 0, "cycles with an active FP32 pipe over elapsed cycles, GPM") \
	X(fp64_active_share, "", F64, 0, "cycles with an active FP64 pipe over elapsed cycles, GPM") \
	X(sm_active_share, "", F64, 0, "SM cycles with at least one warp over elapsed cycles, GPM") \
	X(dram_active_share, "", F64, 0, "DRAM bandwidth used, share of peak, GPM")           \
	X(counter_tensor_active_share, "", F64, 0, "cycles with an active tensor pipe over elapsed cycles, CUPTI") \
	X(counter_sm_active_share, "", F64, 0, "SM cycles with at least one warp over elapsed cycles, CUPTI") \
	X(counter_occupancy_share, "", F64, 0, "achieved occupancy: warps on active SMs over the most that an SM holds, CUPTI") \
	X(counter_xu_active_share, "", F64, 0, "throughput of the XU pipe (exponentials), share of peak, CUPTI") \
	X(counter_fma_active_share, "", F64, 0, "cycles with an active FP32 pipe over elapsed cycles, CUPTI") \
	X(counter_issue_active_share, "", F64, 0, "cycles in which warp schedulers issued an instruction over elapsed cycles, CUPTI") \
	X(counter_fp64_active_share, "", F64, 0, "cycles with an active FP64 pipe over elapsed cycles, CUPTI") \
	X(counter_dram_share, "", F64, 0, "DRAM throughput, share of peak, CUPTI")            \
	X(counter_dram_read_bytes, "B", F64, 0, "bytes read from DRAM by one iteration, CUPTI") \
	X(counter_dram_write_bytes, "B", F64, 0, "bytes written to DRAM by one iteration, CUPTI") \
	X(counter_l2_bytes, "B", F64, 0, "bytes that pass through L2 in one iteration, CUPTI") \
	X(counter_l2_hit_share, "", F64, 0, "share of L2 accesses that hit, CUPTI")           \
	X(counter_tensor_flop, "FLOP", F64, 0, "operations executed on the tensor pipe by one iteration, CUPTI") \
	X(counter_sm_cycles, "", F64, 0, "SM cycles of one iteration, CUPTI")                 \
	X(counter_time_ns, "ns", F64, 0, "one iteration while CUPTI counted")                 \
	X(counter_clock_hz, "Hz", F64, 0, "clock while CUPTI counted")                        \
	X(counter_iterations, "", U64, 0, "iterations counted in each pass of CUPTI")         \
	X(counter_passes, "", U64, 0, "passes that CUPTI needed for the counters")            \
	X(counter_note, "", TEXT, 0, "why hardware counters were not read, and what to do about it") \
	X(cpu_share, "", F64, 0, "CPU time of the threads over their number times wall time") \
	X(threads, "", U64, 0, "CPU threads used")                                            \
	X(steal_share, "", F64, -1, "share of the threads' time that the hypervisor gave to other guests (steal)") \
	X(ceiling_by, "", TEXT, 0, "measured ceiling of this machine that was interleaved with the case") \
	X(ceiling_ratio, "", F64, 1, "rate of the case over the ceiling's rate in the same turn, median of the turns") \
	X(ceiling_ratio_low, "", F64, 1, "lower end of the 95 % confidence interval of ceiling_ratio") \
	X(ceiling_ratio_high, "", F64, 1, "upper end of the 95 % confidence interval of ceiling_ratio") \
	X(repeats, "", U64, -1, "windows that were repeated because other work disturbed them") \
	X(turns, "", U64, 0, "valid turns of the interleaved measurement with the ceiling")   \
	X(turns_disturbed, "", U64, -1, "turns that were repeated because other work disturbed them") \
	X(wrong_checked, "", U64, 0, "elements that verification checked")                    \
	X(wrong_total, "", U64, 0, "elements of the result")                                  \
	X(wrong_count, "", U64, -1, "wrong elements found")                                   \
	X(wrong_suspect, "", U64, 0, "rank whose contribution is wrong, or seems to be missing or counted twice") \
	X(wrong_ranks, "", U64, -1, "number of ranks that found wrong elements")              \
	X(wrong_rank, "", U64, 0, "lowest rank that found wrong elements")                    \
	X(wrong_place, "", TEXT, 0, "position of the first wrong element, with expected and actual value") \
	X(ranks, "", U64, 0, "number of ranks that worked together")                          \
	X(rank_ns_min, "ns", F64, -1, "mean iteration of the fastest rank")                   \
	X(rank_ns_median, "ns", F64, -1, "median over the ranks of their mean iterations")    \
	X(rank_ns_max, "ns", F64, -1, "mean iteration of the slowest rank")                   \
	X(rank_shortest, "", U64, 0, "rank with the shortest iterations")                     \
	X(rank_longest, "", U64, 0, "rank with the longest iterations")                       \
	X(wait_share, "", F64, -1, "share of the time spent waiting for the last rank: single iterations beyond the shortest rank's") \
	X(skew_ns, "ns", F64, -1, "difference between the ranks' start times: longest minus shortest rank of a single iteration, median") \
	X(rank_late, "", U64, 0, "rank that arrives last in at least 80 % of the single iterations: its own iterations are the shortest") \
	X(variant, "", TEXT, 0, "timed variant, by the engine's own name")                    \
	X(listing_s, "s", F64, -1, "time spent on listing the variants, a part of the search's budget") \
	X(variants_tried, "", U64, 0, "variants that the search timed")                       \
	X(variants_dropped, "", U64, 0, "variants given up after two samples far slower than the best") \
	X(variants_left, "", U64, 0, "variants not timed because the search's time was up")   \
	X(nominated_ratio, "", F64, 1, "rate of the best variant over the first, from brief interleaved runs, if the search was stopped early") \
	X(best_ratio, "", F64, 1, "rate of the best variant over the first, median of interleaved pairs") \
	X(best_ratio_low, "", F64, 1, "lower end of the 95 % confidence interval of best_ratio") \
	X(best_ratio_high, "", F64, 1, "upper end of the 95 % confidence interval of best_ratio") \
	X(not_finite, "", TEXT, 0, "fields whose values were NaN or infinite, and were left out")
/* clang-format on */

#define X(name, unit, kind, better, help) extern const struct field field_##name;
RESULT_FIELDS(X)
#undef X
extern const struct field *const result_fields[]; /* ends with NULL */

struct result; /* each value is present or absent */
struct result *result_create(void);
void result_destroy(struct result *r);
/* A NaN or infinite value becomes absent, and not_finite in the JSON names the field. */
void result_f64(struct result *r, const struct field *f, double value);
void result_u64(struct result *r, const struct field *f, uint64_t value);
void result_text(struct result *r, const struct field *f, const char *value);
bool result_has(const struct result *r, const struct field *f);
double result_get(const struct result *r, const struct field *f, double fallback);
void result_clear(struct result *r);
/* {"name": value, ..}; caller decrefs. BITS are hex text "0x4". */
json_t *result_json(const struct result *r);
/* The table as the journal's `plan` line holds it; caller decrefs. */
json_t *field_rows_json(const struct field *fields, size_t count);
/* A JSON string of text from outside the program: bytes that are not UTF-8 become '?'. NULL text is "".
 * Caller decrefs. */
json_t *field_string(const char *text);
/* `n` as a JSON integer; values over INT64_MAX become INT64_MAX. */
json_int_t field_integer(uint64_t n);
/* A command line for the journal. assay's own words are unchanged, because --resume reads them. Words after
 * "--" belong to another program; secrets in them are removed (core/text/redact.h). Owner: caller; NULL: no
 * memory. */
json_t *field_command(const char *const *words);
#endif
