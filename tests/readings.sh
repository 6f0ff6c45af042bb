#!/bin/sh
# Faults planted in recorded machines, through plan, worker, journal, reading and rule to verdict and cause.
# usage: readings.sh ASSAY FOLDER-OF-RECORDINGS
set -u
assay=$1 recordings=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset CUDA_VISIBLE_DEVICES ASSAY_LIB_NVML
n=0 fail=0

# recording, probe, target, verdict, cause, exit code
check() {
	n=$((n + 1))
	"$assay" probe "$2" --target "$3" --machine "$recordings/$1" --out "$tmp/run$n" --format csv \
		> "$tmp/csv" 2> "$tmp/err"
	code=$?
	found=$(sed -n 2p "$tmp/csv" | grep -o "\"$3\",\"once\",[01]*,\"[a-z]*\",\"[a-z_]*\"\|\"$3\",[^,]*,[^,]*,\"[a-z]*\",\"[a-z_]*\"" |
		sed 's/.*,"\([a-z]*\)","\([a-z_]*\)"$/\1 \2/')
	if [ "$found" = "$4 $5" ] && [ "$code" = "$6" ]; then
		echo "ok $n - $1: $2 is $4 $5"
	else
		echo "not ok $n - $1: $2 is '$found', exit $code; not '$4 $5', exit $6"
		sed 's/^/# /' "$tmp/csv" "$tmp/err"
		fail=1
	fi
}

check derived-ecc-errors ecc gpu0 fail ecc 1
check derived-remap-pending remap gpu0 fail remap_pending 1
check derived-pcie-x8 pcie_state gpu0 fail pcie_width 1
check derived-power-limit-lowered clock_state gpu0 fail power_limit_lowered 1
check derived-nvlink-12-of-18 nvlink_state gpu0 fail nvlink_count 1
check derived-foreign-process contamination gpu0 warn busy 0
check derived-gpu-missing gpu_count node fail gpu_missing 1
check derived-gpu-lost gpu_count node error gpu_lost 2
check derived-gpu-lost ecc gpu0 error gpu_lost 2
check derived-driver-missing gpu_count node unknown driver_missing 2
check derived-driver-missing ecc gpu0 unknown driver_missing 2
check cpu-vm-2core gpu_count node skip no_hardware 2
check h100-sxm-1 nvlink_state gpu0 skip unsupported 2
check h100-sxm-1 ecc gpu0 pass "" 0
check derived-h100-sxm-8 gpu_count node pass "" 0
check derived-h100-sxm-8 numa node pass "" 0
echo "1..$n"
exit $fail
