#!/bin/sh
# What is judged of each recorded machine, whole or with a fault planted: through plan, worker, journal, reading and
# rule to verdict and cause.
# usage: readings.sh ASSAY FOLDER-OF-RECORDINGS
set -u
assay=$1 recordings=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset CUDA_VISIBLE_DEVICES ASSAY_LIB_NVML
n=0 fail=0

# recording, probe, target, verdict, cause, exit code, what the site file states ("~" for a blank; none where empty)
check() {
	n=$((n + 1))
	set -- "$1" "$2" "$3" "$4" "$5" "$6" "$(echo "$7" | tr '~' ' ')"
	echo "$7" > "$tmp/site.yaml"
	"$assay" probe "$2" --target "$3" --machine "$recordings/$1" --out "$tmp/run$n" --format csv \
		${7:+--site "$tmp/site.yaml"} > "$tmp/csv" 2> "$tmp/err"
	code=$?
	found=$(sed -n 2p "$tmp/csv" | grep -o "\"$3\",\"once\",[01]*,\"[a-z]*\",\"[a-z_]*\"\|\"$3\",[^,]*,[^,]*,\"[a-z]*\",\"[a-z_]*\"" |
		sed 's/.*,"\([a-z]*\)","\([a-z_]*\)"$/\1 \2/')
	if [ "$found" = "$4 $5" ] && [ "$code" = "$6" ]; then
		echo "ok $n - $1: $2 is $4 $5${7:+, as stated: $7}"
	else
		echo "not ok $n - $1: $2 is '$found', exit $code; not '$4 $5', exit $6"
		sed 's/^/# /' "$tmp/csv" "$tmp/err"
		fail=1
	fi
}

# recording                    probe         target verdict cause              exit
while read -r recording probe target verdict cause code site; do
	case $recording in '' | '#'*) continue ;; esac
	[ "$cause" != - ] || cause=
	check "$recording" "$probe" "$target" "$verdict" "$cause" "$code" "$site"
done << 'TABLE'
# recordings of real machines
cpu-vm-2core                   gpu_count     node   skip    no_hardware         2
cpu-vm-2core                   limits        node   pass    -                   0
h100-sxm-1                     ecc           gpu0   pass    -                   0
h100-sxm-1                     pcie_state    gpu0   pass    -                   0
h100-sxm-1                     nvlink_state  gpu0   skip    unsupported         2
h200-sxm-1                     ecc           gpu0   pass    -                   0
h200-sxm-1                     remap         gpu0   pass    -                   0
h200-sxm-1                     clock_state   gpu0   pass    -                   0
h200-sxm-1                     gpu_mode      gpu0   pass    -                   0
h200-sxm-1                     gpu_count     node   pass    -                   0
# derived: whole, but larger
derived-h100-sxm-8             gpu_count     node   pass    -                   0
derived-h100-sxm-8             numa          node   pass    -                   0
derived-h100-sxm-8             nvlink_state  gpu7   pass    -                   0
derived-h200-sxm-4             gpu_count     node   pass    -                   0
derived-h200-sxm-4             numa          node   pass    -                   0
derived-h200-sxm-4             nvlink_state  gpu1   pass    -                   0
derived-llc-4                  numa          node   pass    -                   0
# the driver, and GPUs that are not there
derived-driver-missing         gpu_count     node   unknown driver_missing      2
derived-driver-missing         ecc           gpu0   unknown driver_missing      2
derived-driver-mixed           gpu_count     node   unknown version_mismatch    2
derived-driver-mixed           versions      node   fail    version_mismatch    1
derived-driver-mixed           ecc           gpu0   unknown version_mismatch    2
derived-driver-old             versions      node   warn    version_mismatch    0
derived-gpu-missing            gpu_count     node   fail    gpu_missing         1
derived-gpu-lost               gpu_count     node   error   gpu_lost            2
derived-gpu-lost               ecc           gpu0   error   gpu_lost            2
derived-not-granted            gpu_count     node   pass    -                   0
# memory
derived-ecc-errors             ecc           gpu0   fail    ecc                 1
derived-ecc-off                ecc           gpu0   warn    ecc_off             0
derived-ecc-refused            ecc           gpu0   unknown permission          2
derived-ecc-refused            remap         gpu0   unknown unsupported         2
derived-remap-pending          remap         gpu0   fail    remap_pending       1
derived-remap-failed           remap         gpu0   fail    remap_failed        1
derived-remap-failed           xid           gpu0   fail    xid                 1
# PCIe
derived-pcie-x8                pcie_state    gpu0   fail    pcie_width          1
derived-pcie-gen3              pcie_state    gpu0   warn    pcie_gen            0
derived-pcie-replays           pcie_state    gpu0   fail    pcie_errors         1
# NVLink and its fabric
derived-nvlink-12-of-18        nvlink_state  gpu0   fail    nvlink_count        1
derived-h200-sxm-4-nvlink-12   nvlink_state  gpu1   fail    nvlink_count        1
derived-h200-sxm-4-nvlink-12   nvlink_state  gpu0   pass    -                   0
derived-nvlink-down            nvlink_state  gpu6   fail    nvlink_count        1
derived-nvlink-down            nvlink_state  gpu5   pass    -                   0
derived-nvlink-down            host_state    node   warn    xid                 0
derived-nvlink-errors          nvlink_state  gpu2   warn    nvlink_errors       0
derived-fabric-stopped         nvlink_state  gpu0   fail    fabric_state        1
derived-fabric-in-progress     nvlink_state  gpu0   unknown fabric_state        2
# clocks, power, heat
derived-power-limit-lowered    clock_state   gpu0   fail    power_limit_lowered 1
derived-power-limit-lowered    clock_state   gpu0   pass    -                   0    power_limit:~500~W
derived-power-limit-lowered    clock_state   gpu0   fail    power_limit_lowered 1    power_limit:~600~W
derived-clocks-application     clock_state   gpu0   warn    low_clock           0
derived-clocks-application     clock_state   gpu0   pass    -                   0    sm_clock:~1200~MHz
derived-power-brake            clock_state   gpu0   fail    power_brake         1
derived-thermal-hw             clock_state   gpu0   fail    thermal_hw          1
derived-hot-idle               clock_state   gpu0   warn    thermal_sw          0
# modes
derived-mig-on                 gpu_mode      gpu0   warn    mig                 0
derived-persistence-off        gpu_mode      gpu0   warn    limit_low           0
derived-compute-prohibited     gpu_mode      gpu0   fail    permission          1
derived-recovery-reboot        gpu_mode      gpu0   fail    recovery_action     1
derived-profiling-restricted   gpu_mode      gpu0   pass    permission          0
# before the run
derived-xid-before             xid           gpu0   fail    xid                 1
derived-log-unreadable         xid           gpu0   unknown no_log              0
derived-log-unreadable         host_state    node   unknown no_log              0
derived-foreign-process        contamination gpu0   warn    busy                0
derived-memory-in-use          contamination gpu0   warn    busy                0
# what the system grants
derived-fabric-storage         limits        node   warn    limit_low           0
derived-fabric-port-down       limits        node   pass    -                   0
derived-fabric-roce            limits        node   pass    -                   0
derived-fabric-roce-nccl-2-27  limits        node   pass    -                   0
derived-cgroup-limits          limits        node   warn    limit_low           0
derived-numa-far               numa          node   warn    numa_far            0
derived-nccl-env               nccl_env      node   fail    nccl_env            1
derived-disk-full              limits        node   warn    disk_full           0
TABLE

# What was bought is not what is here.
expect() { # recording, what was bought, text of the report
	n=$((n + 1))
	"$assay" check quick --machine "$recordings/$1" --expect "$2" --out "$tmp/run$n" > "$tmp/text" 2> "$tmp/err"
	code=$?
	if [ "$code" = 1 ] && grep -qF -- "$3" "$tmp/run$n/REPORT.md"; then
		echo "ok $n - $1 is not $2"
	else
		echo "not ok $n - $1 against $2: exit $code, or no '$3' in the report"
		fail=1
	fi
}
expect derived-memory-half h100-sxm:1 "1 x h100-sxm stated, 0 found"
expect derived-sku-mixed h100-sxm:8 "8 x h100-sxm stated, 7 found"
expect h200-sxm-1 h100-sxm:1 "1 x h100-sxm stated, 0 found"

# Each recording is judged.
for d in "$recordings"/*/; do
	n=$((n + 1))
	if grep -q "^$(basename "$d") \|^expect $(basename "$d") " "$0"; then
		echo "ok $n - $(basename "$d") is judged"
	else
		echo "not ok $n - $(basename "$d") is judged by no row"
		fail=1
	fi
done
echo "1..$n"
exit $fail
