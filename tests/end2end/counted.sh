#!/bin/sh
# Hardware counters in the measuring loop: the real binary on the fake driver and the fake CUPTI. What was counted stands
# with the judged window and in the gap; what refuses is a note, and never a failure. usage: counted.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json
export ASSAY_COUNTERS=on # the window is short
gemm="probe gemm m=16 n=16 k=16 type=bf16 search=first --engine cublaslt --target gpu0 --seconds 50ms"
done_ok() { says '"type":"end","case":0,"ending":"done","status":"ok"' "$1/journal.jsonl"; }

FAKE_CUPTI=tensor_active_share=0.93,sm_active_share=0.96,occupancy_share=0.15,dram_read_bytes=1e12 "$assay" $gemm --out all > out 2> err
ok "a case with counters ends well" done_ok all
ok "behind the window comes the phase counted" says '"type":"phase","case":0,"phase":"counted"' all/journal.jsonl
ok "the tensor pipe's share is told" [ "$(value all 0 counter_tensor_active_share)" = 0.93 ]
ok "so is the occupancy" [ "$(value all 0 counter_occupancy_share)" = 0.15 ]
ok "and DRAM's bytes of one iteration" [ -n "$(value all 0 counter_dram_read_bytes)" ]
ok "in two passes" [ "$(value all 0 counter_passes)" = '2' ]
ok "with nothing to excuse" [ -z "$(value all 0 counter_note)" ]
FAKE_CUPTI=first=3e6 "$assay" $gemm --out first > out 2> err
ok "what delays the first work of a pass is not taken off the rest" [ "$(value first 0 counter_time_ns)" = "$(value all 0 counter_time_ns)" ]
refused() { # NAME WORDS PATTERN
	FAKE_CUPTI=$2 "$assay" $gemm --out "$1" > out 2> err
	ok "$1: the case ends well" done_ok "$1"
	ok "$1: a note says what to do" says "\"counter_note\":\"[^\"]*$3" "$1/journal.jsonl"
	ok "$1: nothing is told as counted" [ -z "$(value "$1" 0 counter_tensor_active_share)" ]
}
refused permission cuptiRangeProfilerEnable=35 'NVreg_RestrictProfilingToAdminUsers=0'
refused busy cuptiRangeProfilerEnable=26 'dcgmi profile --pause'
refused midway cuptiRangeProfilerPopRange=999 'range_pop'
refused dropped lost=1 'dropped'
ASSAY_LIB_CUPTI=/nowhere/libcupti.so.13 "$assay" $gemm --out absent > out 2> err
ok "without CUPTI the case ends well" done_ok absent
ok "and says which is wanted" says '"counter_note":"[^"]*CUDA 12.6 or newer' absent/journal.jsonl
ASSAY_COUNTERS=off "$assay" $gemm --out off > out 2> err
ok "counters can be turned off" sh -c '! grep -q counted off/journal.jsonl && ! grep -q counter_ off/journal.jsonl'
ASSAY_COUNTERS= "$assay" $gemm --out short > out 2> err
ok "a window of 50 ms is not worth them unasked" sh -c '! grep -q counter_ short/journal.jsonl'
finish
