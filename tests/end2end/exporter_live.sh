#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay exporter on this machine, with four fake GPUs, and without any: what it reads, a GPU that is lost, a driver that hangs, readers
# that are killed, a wall clock that jumps, and what it leaves behind. usage: exporter_live.sh BUILD NVML-FAKE ROOT CLOCK-STEPS [SANITIZER]
set -u
build=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") clock_steps=$(realpath "$4") sanitizer=${5:-none} assay=$(realpath "$1")/src/assay
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
exporter=
trap '[ -z "$exporter" ] || kill "$exporter"; rm -rf "$tmp"' EXIT
export ASSAY_LIB_NVML="$nvml" FAKE_NVML_FILE="$root/tests/fake/h100x4.json" EXPORTER_TEST="$tmp"
readers() { pgrep -f 'assay __watch' | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -qx "EXPORTER_TEST=$tmp" && echo "$p"; done; }
none_left() {
	for _ in $(seq 200); do [ -n "$(readers)" ] || return 0; sleep 0.1; done
	return 1
}
up() {
	: > exporter.out # what the one before said is not this one's
	LD_PRELOAD=${preload-} "$assay" exporter --port 0 --names both --interval 200ms "$@" > exporter.out 2>&1 < /dev/null &
	exporter=$!
	for _ in $(seq 300); do grep -q '/metrics' exporter.out && break; kill -0 "$exporter" 2> /dev/null || break; sleep 0.05; done
	port=$(sed -n 's,.*:\([0-9]*\)/metrics.*,\1,p' exporter.out)
	[ "$port" ]
}
down() {
	kill "$exporter"
	wait "$exporter"
	code=$?
	exporter=
	[ "$code" = 0 ] && none_left
}
page() { curl -s --max-time 20 "http://127.0.0.1:$port/metrics" > out; }
shown() { for _ in $(seq 300); do page; grep -q -- "$1" out && return 0; sleep 0.1; done; return 1; }
gone() { for _ in $(seq 300); do page; [ -s out ] && ! grep -q -- "$1" out && return 0; sleep 0.1; done; return 1; }

export FAKE_NVML_RET=power_limit=4
ok "it starts" up
ok "four GPUs answer" shown '^assay_gpu_up{gpu="3"} 1'
ok "with power" shown '^assay_gpu_power_watts{gpu="3"} [0-9]'
ok "energy" shown '^assay_gpu_energy_joules_total{gpu="0"} [0-9]'
ok "links" shown '^assay_nvlink_up{.*gpu="2".*} 1'
ok "GPM" shown '^assay_gpu_sm_active_ratio{gpu="0"} '
ok "and dcgm-exporter's names and labels" shown '^DCGM_FI_DEV_FB_USED{pci_bus_id="00000000:8D:00.0",gpu="0",.*modelName="NVIDIA H100 80GB HBM3"'
ok "the host" shown '^assay_memory_bytes [0-9]'
ok "each source is up" sh -c '[ "$(grep -c "^assay_source_up{.*} 1" out)" = 4 ]'
ok "identity is on one series a GPU" sh -c '[ "$(grep -c "^assay_gpu_info{.*UUID=" out)" = 4 ]'
ok "a value that was refused is absent" sh -c '! grep -q "^assay_gpu_power_limit_watts" out'
ok "and the page for people gives its reason" sh -c "curl -s http://127.0.0.1:$port/ | grep -q '<td>assay_gpu_power_limit_watts</td><td>gpu 1</td><td>permission denied</td>'"
if command -v promtool > /dev/null; then
	grep -v 'DCGM_FI' out > ours
	ok "promtool has nothing to say about our names" sh -c 'promtool check metrics < ours'
fi
[ "$sanitizer" != none ] || ok "memory stays below 25 MB" [ "$(awk '/^VmHWM/ { print $2 }' "/proc/$exporter/status")" -lt 25000 ]
ok "killed readers" sh -c "kill -KILL $(readers | tr '\n' ' ')"
ok "are told" shown '^assay_exporter_reader_up 0'
ok "and it goes on without them" shown '^assay_exporter_series '
ok "new ones take over" shown '^assay_gpu_power_watts{gpu="3"} [0-9]'
ok "it ends, and leaves nothing running" down
unset FAKE_NVML_RET

# Files of Slurm's prolog, as for dcgm-exporter.
mkdir jobs
echo 4711 > jobs/2
ok "it starts with the files of a prolog" up --job-files jobs
ok "a GPU has the job of its file" shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="2".*hpc_job="4711"'
ok "and the others have none" sh -c '[ "$(grep "hpc_job=" out | grep -vc "gpu=\"2\"")" = 0 ]'
echo 4712 > jobs/2
ok "the next job takes its place" shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="2".*hpc_job="4712"'
ok "it ends" down
ok "a folder that is not there" expect 2 exporter --port 0 --job-files nowhere
ok "is named" says 'job-files nowhere: No such file' err

# The pods of GPUs, as a kubelet tells them.
kubelet=
kubelet_up() {
	kubelet_down
	"$build/tests/watch/kubelet" "$tmp/kubelet.sock" "$1" &
	kubelet=$!
	for _ in $(seq 100); do [ -S kubelet.sock ] && break; sleep 0.05; done
}
kubelet_down() {
	[ -z "$kubelet" ] || { kill "$kubelet"; wait "$kubelet"; } 2> /dev/null
	kubelet=
	rm -f kubelet.sock
}
trap 'kubelet_down; [ -z "$exporter" ] || kill "$exporter"; rm -rf "$tmp"' EXIT
index_says() { for _ in $(seq 900); do curl -s --max-time 20 "http://127.0.0.1:$port/" > index; grep -q -- "$1" index && return 0; sleep 0.1; done; return 1; }
why() { # KIND WORDS: a kubelet of this kind gives no pods, and the page for people says why
	kubelet_up "$1"
	up --pod-resources kubelet.sock && index_says "<code>pod</code> and <code>namespace</code> are absent: .*$2" && shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="0"' &&
		! grep -q '[{,]pod=' out && down
}
ok "a socket that is not there" expect 2 exporter --port 0 --pod-resources nowhere
ok "is named" says 'pod-resources nowhere: No such file' err
if [ -e "$build/src/watch/pods/pods.pb-c.h" ]; then
	kubelet_up pods
	ok "it starts with a kubelet" up --pod-resources kubelet.sock
	ok "a GPU has its pod" shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="0".*container="trainer".*pod="train-0".*namespace="research"'
	ok "one that two containers share has both" shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="1".*container="trainer,server".*pod="train-0,serve-\\"0\\"".*namespace="research,prod"'
	ok "one that the plugin names by number" shown '^DCGM_FI_DEV_GPU_TEMP{.*gpu="3".*pod="serve-'
	ok "and one without a pod has none" eval '[ "$(grep "^DCGM_FI_DEV_GPU_TEMP.*gpu=\"2\"" out | grep -c "pod=")" = 0 ] && grep -q "^DCGM_FI_DEV_GPU_TEMP.*gpu=\"2\"" out'
	ok "our series have it once a GPU" [ "$(grep -c '^assay_.*[{,]pod=' out)" = 3 ]
	if command -v promtool > /dev/null; then
		grep -v 'DCGM_FI' out > ours
		ok "promtool has nothing to say about them" sh -c 'promtool check metrics < ours'
	fi
	ok "the page for people has nothing to explain" eval 'index_says "<td>gpu</td>" && ! grep -q "<code>pod</code>" index'
	kubelet_down
	ok "without the kubelet, the labels go" gone '[{,]pod='
	ok "and the reason is told" index_says 'the socket is gone\|kubelet.sock'
	ok "it ends with that" down
	ok "a kubelet that refuses" why refused 'gRPC status 7: planted refusal'
	ok "one that sends garbage" why garbage 'is not a list of pods'
	ok "one whose message has another length" why short 'is not one message of gRPC'
	ok "one that compresses" why compressed 'is compressed'
	ok "one that has no such service" why http 'HTTP status 404'
	ok "one that closes" why close 'kubelet.sock: '
	ok "one that hangs" why hang 'imeout'
	kubelet_down
	: > kubelet.sock
	ok "a file that is no socket" up --pod-resources kubelet.sock
	ok "is told" index_says 'kubelet.sock: Connection refused'
	ok "it ends then" down
else
	n=$((n + 1)) && echo "ok $n - pods of Kubernetes # SKIP built without protobuf-c"
fi
rm -f kubelet.sock

# The wall clock jumps by hours each time it is read. Ages and limits are of the monotonic clock. A sanitizer's library must come first.
if [ "$sanitizer" = none ]; then
	preload=$clock_steps
	ok "while the wall clock jumps, it starts" up
	ok "four GPUs answer to it" shown '^assay_gpu_power_watts{gpu="3"} [0-9]'
	all_sources() { # a source that reads slowly comes later than the GPUs
		for _ in $(seq 300); do
			page
			[ "$(grep -c '^assay_source_up{.*} 1' out)" = 4 ] && return 0
			sleep 0.2
		done
		return 1
	}
	ok "and each source" all_sources
	steady() { # no reading is hours old or from the future; five pages after another have all GPUs and sources, however slow the machine is
		good=0
		for _ in $(seq 300); do
			page
			awk '/^assay_source_age_seconds/ { n++; if ($2 < 0 || $2 > 3600) exit 1 } END { exit !n }' out || return 1
			if [ "$(grep -c '^assay_gpu_up{.*} 1' out)" = 4 ] && [ "$(grep -c '^assay_source_up{.*} 1' out)" = 4 ]; then good=$((good + 1)); else good=0; fi
			[ $good -lt 5 ] || return 0
			sleep 0.1
		done
		return 1
	}
	ok "no value grows old" steady
	ok "it ends after the jumps" down
	preload=''
fi

export FAKE_NVML_LOST=2 FAKE_NVML_AFTER=2
ok "with a GPU that is lost" up
ok "it is down" shown '^assay_gpu_up{gpu="2"} 0'
ok "without values" gone '^assay_gpu_power_watts{gpu="2"}'
ok "the others are up" shown '^assay_gpu_up{gpu="1"} 1'
ok "it ends" down
unset FAKE_NVML_LOST

export FAKE_NVML_HANG=utilization FAKE_NVML_AFTER=2
ok "with a driver that hangs" up
ok "the source is down" shown '^assay_source_up{source="gpu"} 0'
ok "its values go" gone '^assay_gpu_power_watts'
ok "the host goes on" shown '^assay_source_up{source="host"} 1'
ok "with new values" shown '^assay_cpu_busy_ratio '
ok "the GPU is down" shown '^assay_gpu_up{gpu="0"} 0'
ok "the page for people gives the reason" sh -c "for _ in \$(seq 300); do
	curl -s http://127.0.0.1:$port/ | grep -q 'NVML did not answer' && exit 0; sleep 0.1; done; exit 1"
kill "$exporter"
wait "$exporter"
ok "it ends while the driver hangs" [ $? = 0 ]
exporter=
unset FAKE_NVML_HANG FAKE_NVML_AFTER

export ASSAY_LIB_NVML=/nowhere
ok "without a driver" up
ok "the host is there" shown '^assay_memory_bytes [0-9]'
ok "no GPU is made up" sh -c '! grep -q "^assay_gpu_\|^DCGM" out'
ok "it ends once more" down
"$assay" check health --out runs/health > check.out 2>&1
ok "it starts with the folder of a finished check" up --runs runs
ok "the verdict of the check is shown" shown '^assay_check_verdict{suite="health",[^}]*} 1$'
ok "with its time" shown '^assay_check_end_time_seconds{suite="health"[^}]*} [1-9]'
ok "it ends" down
finish
