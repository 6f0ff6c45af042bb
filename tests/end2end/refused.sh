#!/bin/sh
# Readings whose decisive fields the driver refuses, a vendor library that is broken, and values that cannot be: verdict,
# cause, reason and exit code. usage: refused.sh ASSAY FAKES
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
all_libraries
scratch
LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
unset CUDA_VISIBLE_DEVICES ASSAY_LIB_NVML
ecc=ecc_volatile_uncorrected=@,ecc_volatile_corrected=@,ecc_aggregate_uncorrected=@,ecc_aggregate_corrected=@,ecc_sram=@
remap=remapped_rows=@,remap_pending=@,remap_failed=@,remapped_correctable=@,remapped_uncorrectable=@
clocks=reasons=@,reasons_old=@,power_limit=@,power_limit_current=@
pcie=pcie_width=@,pcie_gen=@,pcie_gen_max=@
# probe, its verdict and cause in the table
is() {
	grep -o "\"$1\",.*" run/results.csv | head -n 1 | grep -q "\"$2\",\"$3\","
}
# CODE PROBE VERDICT CAUSE: one probe alone
probe() {
	rm -rf run
	expect "$1" probe "$2" --out run && is "$2" "$3" "$4"
}

ok "a healthy GPU: ecc passes" probe 0 ecc pass ""
for row in "ecc $ecc" "remap $remap" "clock_state $clocks" "pcie_state $pcie"; do
	each=${row%% *} keys=${row#* }
	FAKE_NVML_RET=$(echo "$keys" | sed 's/@/4/g')
	export FAKE_NVML_RET
	ok "$each without permission is unknown" probe 2 "$each" unknown permission
	ok "and says why" says "permission denied" run/results.csv
	FAKE_NVML_RET=$(echo "$keys" | sed 's/@/3/g')
	ok "$each not supported by a product that has it is unknown" probe 2 "$each" unknown unsupported
	ok "and says why" says "not supported by this device or driver" run/results.csv
	FAKE_NVML_RET=$(echo "$keys" | sed 's/@/999/g')
	ok "$each refused for another reason is unknown" probe 2 "$each" unknown vendor_call
	unset FAKE_NVML_RET
done
FAKE_NVML_RET=remapped_rows=3,remap_pending=3,remap_failed=3
FAKE_NVML_VALUE=mig_mode=1
export FAKE_NVML_RET FAKE_NVML_VALUE
ok "in MIG mode what the parent device does not tell is unknown" probe 2 remap unknown mig
unset FAKE_NVML_RET FAKE_NVML_VALUE
FAKE_NVML_RET=remapped_rows=3,remap_pending=3,remap_failed=3,remap_histogram=3,remapped_correctable=3,remapped_uncorrectable=3
export FAKE_NVML_RET
unlisted() { # the same GPU as a product that no row knows, of an architecture whose products differ
	sed 's/590352606/286331614/; s/"compute_capability": \[0, \[9, 0\]\]/"compute_capability": [0, [8, 6]]/' "$1"
}
unlisted "$here/../fake/h100.json" > other.json
FAKE_NVML_FILE=$PWD/other.json
FAKE_CUDA=cc=86
export FAKE_NVML_FILE FAKE_CUDA
ok "not supported by a product that nobody states it of is a skip" probe 2 remap skip unsupported
FAKE_NVML_RET=$(echo "$ecc" | sed 's/@/3/g')
ok "but ECC that is on has counters" probe 2 ecc unknown unsupported
unset FAKE_NVML_RET FAKE_NVML_FILE FAKE_CUDA

# CUDA sees the GPU, NVML does not.
echo "this is no library" > text.so
broken() { # CAUSE ADVICE NAME
	for each in ecc remap clock_state pcie_state gpu_mode contamination gpu_count versions; do
		ok "$3: $each is unknown" probe 2 "$each" unknown "$1"
		tr '\n' ' ' < out | tr -s ' ' > line
		ok "$3: $each advises" says "$2" line
		ok "$3: $each misses no GPU" sh -c '! grep -q "gpu_missing\|reseat\|replace" run/results.csv line'
	done
}
ASSAY_LIB_NVML=$PWD/text.so
export ASSAY_LIB_NVML
broken library_missing "install the library" "a text file for NVML"
ASSAY_LIB_NVML=$PWD/none.so
broken library_missing "install the library" "no NVML"
unset ASSAY_LIB_NVML
FAKE_NVML_INIT=18
export FAKE_NVML_INIT
broken version_mismatch "reload the driver" "NVML of another release"
FAKE_NVML_INIT=9
broken version_mismatch "reload the driver" "NVML that sees no driver, while CUDA does"
unset FAKE_NVML_INIT

# Values that no device can have.
FAKE_NVML_VALUE=pcie_width=64
export FAKE_NVML_VALUE
ok "a PCIe width of 64 is no width" probe 2 pcie_state unknown vendor_call
ok "and its function is named" says "nvmlDeviceGetCurrPcieLinkWidth answered 64" run/results.csv
FAKE_NVML_VALUE=pcie_width=12,pcie_width_max=8
ok "nor is one above the widest" probe 2 pcie_state unknown vendor_call
ok "and both figures are named" says "nvmlDeviceGetCurrPcieLinkWidth answered 12 of at most 8" run/results.csv
FAKE_NVML_VALUE=temperature=-300
ok "a temperature below absolute zero is none" probe 2 clock_state unknown vendor_call
ok "and its function is named" says "nvmlDeviceGetTemperatureV answered -300 C" run/results.csv
FAKE_NVML_VALUE=clock_sm=4294967295
ok "a clock of all ones is none" probe 0 clock_state pass ""
ok "the clock is absent" sh -c '! grep -q 4294967295 run/results.csv'
"$assay" info gpu > info 2>&1
ok "and info names its function" says "nvmlDeviceGetClockInfo answered 4294967295 MHz" info
ok "a run with such telemetry goes on" expect 0 probe gemm m=16 n=16 k=16 type=bf16 search=first --engine cublaslt --target gpu0 --seconds 1s --out clock
ok "and names the function once" [ "$(grep -c 'nvmlDeviceGetClockInfo answered 4294967295 MHz as sm_clock_mhz' err)" = 1 ]
ok "the journal has no such reading" sh -c '! grep -q "4294967295" clock/journal.jsonl || ! grep "4294967295" clock/journal.jsonl | grep -q "\"telemetry\""'
FAKE_NVML_VALUE=clock_sm=0,power_instant=0
ok "a clock of zero while our load runs goes on as well" expect 0 probe gemm m=16 n=16 k=16 type=bf16 search=first --engine cublaslt --target gpu0 --seconds 1s --out zero
ok "and is named once" [ "$(grep -c 'nvmlDeviceGetClockInfo returned 0 MHz as sm_clock_mhz under load' err)" = 1 ]
ok "the window has no clock of zero" sh -c '! grep -q "clock_nvml_hz\":0" zero/journal.jsonl'
unset FAKE_NVML_VALUE

# An unreadable kernel log counts where a suite asks for judgement in words.
for require in nothing judged; do
	printf 'name: log\ncases:\n  - {probe: xid, target: gpu, require: %s}\n  - {probe: ecc, target: gpu}\n' $require > $require.yaml
done
printf 'name: log\ncases:\n  - {probe: xid, target: gpu}\n  - {probe: ecc, target: gpu}\n' > default.yaml
closed=$here/../replay/derived-log-unreadable
ok "an unreadable log: by default" expect 0 check --suite default.yaml --machine "$closed" --out default
ok "an unreadable log: not required" expect 0 check --suite nothing.yaml --machine "$closed" --out nothing
ok "an unreadable log: judgement asked for" expect 2 check --suite judged.yaml --machine "$closed" --out judged
ok "and the report says so again" expect 2 report judged
finish
