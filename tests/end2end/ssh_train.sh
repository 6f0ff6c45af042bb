#!/bin/bash
# Training on two hosts, which are network and UTS namespaces of this machine with a real sshd each: CPU ranks by mpirun with two host names,
# and GPU ranks over ssh with the fake driver and the fake NCCL. Losses equal those of one rank.
# usage: ssh_train.sh ASSAY FAKES ROOT [MODULE]     MODULE: libassay-mpi.so
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") module=${4:-} here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
all_libraries
. "$here/ports.sh"
. "$here/ssh_hosts.sh"
. "$here/train_bed.sh"
ssh_is_here
[ "${5:-}" = inside ] || hosts_inside "$assay" "$fakes" "$root" "$module"
[ "${5:-}" = inside ] || lacks "no network namespaces here, so there are no two hosts"
hosts_begin inside
client "$first" "$one" user
client "$second" "$two" user
for name in "$first" "$second"; do echo "$name $(cut -d ' ' -f 1,2 host.pub)"; done > known_hosts
hosts_serve
train_inputs
mkdir -p bin mpi
printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" > bin/ssh && chmod +x bin/ssh
PATH=$tmp/bin:$PATH
hosts() { # RUN: the hosts of its other ranks
	ls -d "$1"/nodes/*/rank-* | sed 's|.*/nodes/||' | tr '\n' ' '
}

# -- mpirun --
more=()
by_mpirun() {
	HOME=$tmp CUDA_VISIBLE_DEVICES='' TMPDIR=$tmp/mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 \
		OMPI_MCA_btl=tcp,self OMPI_MCA_mpi_yield_when_idle=1 ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 \
		expect 0 launch --how mpirun --hosts "$first,$second" --gpus-per-node 0 --ranks-per-node 2 "${more[@]}" -- train "$@"
}
# The second host falls while it writes its shards of the second checkpoint: all of its processes are killed at once, its sshd too.
cat > fall << SCRIPT
kill -KILL \$(ls -l /proc/[0-9]*/ns/net | awk -v net="\$(readlink /proc/$other/ns/net)" -v self=\$\$ '\$NF == net { split(\$(NF - 2), at, "/"); if (at[3] != $other && at[3] != self) print at[3] }')
SCRIPT
falls="LD_PRELOAD=$fakes/strike.so STRIKE_RANK=3 STRIKE_CALL=open STRIKE_PATH=*checkpoint-4.new* STRIKE_RUN=$tmp/fall"
goes_on_without() { # RUN: rank 0's words are in err
	ok ".. which is told" eval 'says "warning: gpu2 does not answer; the run continues without it" err && says "warning: restart 1 of 1" err'
	ok ".. from the newest checkpoint" says "resumes from .*$1/checkpoint-2\$" err
}
mpi=
lost_host() {
	[ -n "$mpi" ] || return 0
	train_config lost.yaml cpu "deterministic: true" "max_steps: 6" "save_steps: 2"
	ok "one rank trains for comparison" env CUDA_VISIBLE_DEVICES= "$assay" train lost.yaml --out lost.1
	more=(--restarts 1 --env "$falls")
	ok "a run that loses a host goes on without it" by_mpirun lost.yaml --out lost
	more=()
	goes_on_without lost
	ok ".. with the bits of one rank" cmp lost.1/adapter/adapter_model.safetensors lost/adapter/adapter_model.safetensors
}
train_config cpu.yaml cpu "max_steps: 4"
ok "one rank trains on a CPU" expect 0 train cpu.yaml --out cpu.1
journal_losses cpu.1 > one
case $([ -z "$module" ] || mpirun --version 2> /dev/null) in
*"Open MPI"* | *OpenRTE*)
	ok "mpirun: four CPU ranks on two hosts train" by_mpirun cpu.yaml --out cpu.4 --real-names
	journal_losses cpu.4 > four
	ok ".. with the losses of one" near one four 4 1e-4
	ok ".. two on each host" [ "$(hosts cpu.4)" = "gpu1/rank-1 gpu2/rank-2 gpu2/rank-3 " ]
	mpi=yes
	;;
*) untested "mpirun: four CPU ranks on two hosts train" "no Open MPI, or this build has no MPI" ;;
esac

# -- ssh, with GPUs that are not there --
if ! says '^train_rows ' "$root/src/kernel/list" || ! "$assay" list kernels | grep -q train_rows; then
	untested "ssh: GPU ranks on two hosts train" "this build has no kernels"
	lost_host
	finish
fi
mkdir nccl
gpu="LD_LIBRARY_PATH=$fakes FAKE_NVML_FILE=$root/tests/fake/h100x4.json FAKE_CUDA=devices=4 FAKE_NCCL_MEET=$tmp/nccl XDG_CACHE_HOME=/dev/null/assay"
train_config gpu.yaml gpu "max_steps: 4"
ok "one GPU trains" env $gpu "$assay" train gpu.yaml --out gpu.1 --no-telemetry
journal_losses gpu.1 > one
over_ssh() {
	expect 0 launch --hosts "$first,$second" --gpus-per-node 2 --ssh-config "$tmp/ssh_config" --env "$gpu" -- train "$@"
}
ok "ssh: four GPU ranks on two hosts train" over_ssh gpu.yaml --out gpu.4 --real-names --no-telemetry
journal_losses gpu.4 > four
ok ".. with the losses of one" near one four 4 1e-3
ok ".. two on each host" [ "$(hosts gpu.4)" = "gpu1/rank-1 gpu2/rank-2 gpu2/rank-3 " ]
# A host that is lost: its ranks and its sshd end. The two ranks of the other host go on.
train_config lost_gpu.yaml gpu "max_steps: 6" "save_steps: 2"
ok "one GPU trains for comparison" env $gpu "$assay" train lost_gpu.yaml --out lost_gpu.1 --no-telemetry
journal_losses lost_gpu.1 > one
over_ssh_falling() {
	expect 0 launch --hosts "$first,$second" --gpus-per-node 2 --ssh-config "$tmp/ssh_config" --restarts 1 --env "$gpu $falls" -- train "$@"
}
ok "ssh: a run of GPU ranks that loses a host goes on without it" over_ssh_falling lost_gpu.yaml --out lost_gpu --no-telemetry
goes_on_without lost_gpu
journal_losses lost_gpu | tail -n 2 > two
ok ".. with the losses of one GPU" near <(tail -n 2 one) two 2 1e-3
ok ".. on two ranks" [ "$(sed -n 's/.*"ranks":\([0-9]*\).*/\1/p' lost_gpu/journal.jsonl | tail -n 1)" = 2 ]
host_two_serves
lost_host
finish
