/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of counters: our name, CUPTI's metric, unit. It includes no other header, so the profiler's
 * injected library can use the same names. docs/reference/counters.md is printed from it.
 */
#ifndef COUNTER_METRICS_H
#define COUNTER_METRICS_H

/*
 * The set of a metric. CORE fits into one pass of the hardware on GA100, GH100 and GB100. With CACHE and the
 * FLOP of one type it takes two (tests/unit/counter_host.c checks this with the library). XU, FMA and FP64
 * are collected with CORE, one of them at a time, and ISSUE with XU.
 */
#define COUNTER_SETS(X) X(CORE) X(CACHE) X(TENSOR) X(XU) X(FMA) X(FP64) X(ISSUE)

/*
 * Columns: name, set, kind, CUPTI's metric, factor to our unit, unit, meaning. Kind is SUM over the range, or
 * a share or rate: OF_CYCLES elapsed, OF_TIME, OF_ACTIVE cycles of SMs, or OF_L2 sectors. If metrics are
 * separated by |, the first one that the chip knows is used.
 */
/* clang-format off */
#define COUNTER_METRICS(X) \
	X(sm_active_share, CORE, OF_CYCLES, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "SMs with a warp in flight, share of elapsed cycles") \
	X(tensor_active_share, CORE, OF_CYCLES, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "tensor pipe active, share of elapsed cycles") \
	X(occupancy_share, CORE, OF_ACTIVE, "sm__warps_active.avg.pct_of_peak_sustained_active", 1e-2, "", "achieved occupancy: warps in flight on active SMs, share of the maximum per SM") \
	X(dram_share, CORE, OF_TIME, "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "DRAM throughput, share of its peak") \
	X(dram_read_bytes, CORE, SUM, "dram__bytes_read.sum|dram__bytes_op_read.sum", 1, "B", "read from DRAM") \
	X(dram_write_bytes, CORE, SUM, "dram__bytes_write.sum|dram__bytes_op_write.sum", 1, "B", "written to DRAM") \
	X(sm_cycles, CORE, SUM, "sm__cycles_elapsed.max", 1, "", "SM cycles elapsed") \
	X(time_ns, CORE, SUM, "gpu__time_duration.sum", 1, "ns", "time by the GPU's own timer") \
	X(clock_hz, CORE, OF_TIME, "gpc__cycles_elapsed.avg.per_second", 1, "Hz", "clock of the SMs") \
	X(l2_bytes, CACHE, SUM, "lts__t_sectors.sum", 32, "B", "traffic through L2, in sectors of 32 bytes") \
	X(l2_hit_share, CACHE, OF_L2, "lts__t_sector_hit_rate.pct", 1e-2, "", "L2 hit rate: share of sectors found in L2") \
	X(tensor_flop, TENSOR, SUM, 0, 1, "FLOP", "executed on the tensor pipe with operands of the case's type") \
	X(xu_active_share, XU, OF_CYCLES, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "XU pipe (exponentials), instructions as a share of its peak") \
	X(fma_active_share, FMA, OF_CYCLES, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "FP32 pipe active, share of elapsed cycles") \
	X(fp64_active_share, FP64, OF_CYCLES, "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "FP64 pipe active, share of elapsed cycles") \
	X(issue_active_share, ISSUE, OF_CYCLES, "smsp__issue_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "warp schedulers issuing an instruction, share of elapsed cycles")

/* Metrics of tensor_flop by operand type: type, CUPTI's metric. */
#define COUNTER_TENSOR_TYPES(X) \
	X(bf16, "sm__ops_path_tensor_src_bf16_dst_fp32.sum") \
	X(fp16, "sm__ops_path_tensor_src_fp16.sum|sm__ops_path_tensor_src_fp16_dst_fp32.sum") \
	X(tf32, "sm__ops_path_tensor_src_tf32_dst_fp32.sum") \
	X(e4m3, "sm__ops_path_tensor_src_fp8.sum") \
	X(e5m2, "sm__ops_path_tensor_src_fp8.sum") \
	X(int8, "sm__ops_path_tensor_src_int8.sum") \
	X(fp64, "sm__ops_path_tensor_src_fp64.sum")

/* Metrics that are sampled by time: name, CUPTI's metric, factor, unit, meaning. They fit into one pass. */
#define COUNTER_SAMPLED(X) \
	X(sm_active_share, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "SMs with a warp in flight") \
	X(tensor_active_share, "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "tensor pipe active") \
	X(xu_active_share, "sm__inst_executed_pipe_xu_realtime.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "XU pipe") \
	X(dram_share, "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1e-2, "", "DRAM throughput, share of its peak") \
	X(nvlink_tx_rate, "nvltx__bytes.sum.per_second", 1, "B/s", "sent over NVLink") \
	X(nvlink_rx_rate, "nvlrx__bytes.sum.per_second", 1, "B/s", "received over NVLink") \
	X(pcie_read_rate, "pcie__read_bytes.sum.per_second", 1, "B/s", "read over PCIe") \
	X(pcie_write_rate, "pcie__write_bytes.sum.per_second", 1, "B/s", "written over PCIe") \
	X(clock_hz, "gpc__cycles_elapsed.avg.per_second", 1, "Hz", "clock of the SMs")
/* clang-format on */
#endif
