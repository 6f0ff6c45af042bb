#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A GPU that the kernel has suspended: `assay top` leaves it alone, and the commands that wake it say so. The kernel's files are made up.
# usage: suspended.sh ASSAY NVML-FAKE ROOT
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3")
. "$root/tests/end2end/tap.sh"
scratch
export ASSAY_SYS="$tmp/sys" ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" FAKE_NVML_RATE=data_tx=1e6
device() { # ADDRESS VENDOR CLASS STATUS
	mkdir -p "sys/bus/pci/devices/$1/power"
	echo "$2" > "sys/bus/pci/devices/$1/vendor"
	echo "$3" > "sys/bus/pci/devices/$1/class"
	echo "$4" > "sys/bus/pci/devices/$1/power/runtime_status"
}
device 0000:8d:00.0 0x10de 0x030200 suspended
device 0000:8e:00.0 0x10de 0x030200 active
device 0000:8e:00.1 0x10de 0x040300 suspended # its sound device
device 0000:00:02.0 0x8086 0x030000 suspended
told='assay: the kernel has suspended GPU 0000:8d:00.0, and this command wakes it'
for words in 'info gpu' 'health --state none.json' 'top nvlink --once --interval 200ms'; do
	"$assay" $words > out 2> err
	ok "assay $words says that it wakes the GPU" [ "$(grep 'has suspended' err)" = "$told" ]
done
ok "a command that does not read GPUs says nothing" eval 'expect 0 info storage && ! says suspended err'
expect 0 info all --record recorded
ok "a recording is made from GPUs that are awake, so it is told" says "$told" err
ok "what is recorded wakes nothing" eval 'expect 0 info all --machine recorded && ! says "has suspended" err'
"$assay" top --json --count 1 > out 2> err
ok "assay top does not wake it" says '"power_state":"suspended"' out
ok ".. and says nothing else" [ ! -s err ]
echo active > sys/bus/pci/devices/0000:8d:00.0/power/runtime_status
ok "a GPU that is awake is not told" eval 'expect 0 info gpu && ! says suspended err'
finish
