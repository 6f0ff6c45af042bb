#!/bin/sh
# assay health as HealthCheckProgram, prolog and epilog of a real Slurm, by the scripts of docs/how-to/gate-a-node.md: a planted fault of a fake GPU
# drains its node with the reason, and its repair returns the node. usage: slurm_gate.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/slurm_cluster.sh"
cluster_programs
[ "${3:-}" = inside ] || { unshare -m true 2> /dev/null && exec unshare -m "$script" "$assay" "$root" inside; }

# block N: the N-th block of the page that is marked for this script, with our places for those of a real cluster
block() {
	awk -v marker="<!-- run: tests/end2end/slurm_gate.sh -->" -v wanted="$1" '
		/^```/ { inside = !inside && $0 == "```sh" && before == marker; n += inside; before = $0; next }
		inside && n == wanted { print }
		{ before = $0 }' "$root/docs/how-to/gate-a-node.md" |
		sed "s,/usr/local/bin/assay,$tmp/etc/assay,; s,/etc/slurm,$tmp/etc,g; s,/usr/bin/scontrol,$(command -v scontrol),; s,/usr/bin/sinfo,$(command -v sinfo),"
}
fakes=$(dirname "$assay")/../tests/fake
cluster_more() {
	mkdir -p etc gate/proof1 gate/proof2
	# Each node has its own GPUs and its own state, as on two machines. Slurm gives a prolog no PATH, and our settings neither.
	cat > etc/assay <<- WRAPPER
		#!/bin/sh
		node=\${SLURMD_NODENAME:-none}
		echo "\$node \$*" >> $tmp/called
		export SLURM_CONF=$tmp/slurm.conf ASSAY_LIB_NVML=$fakes/libnvidia-ml.so.1 ASSAY_LIB_CUDA=$fakes/libcuda.so.1
		export FAKE_CUDA=devices=4 FAKE_NVML_FILE=$tmp/gate/\$node/nvml.json ASSAY_FACTS_LIMIT_MS=20000
		$assay "\$@" --state $tmp/gate/\$node/health.json >> $tmp/gate/\$node/said 2>&1
		code=\$?
		echo "\$code \$node" >> $tmp/codes
		exit \$code
	WRAPPER
	block 1 > etc/assay-health
	block 2 > etc/assay-resume
	block 3 > etc/assay-healthcheck
	sed 's/slurm-healthcheck/slurm-prolog/' etc/assay-healthcheck > etc/assay-prolog
	sed 's/slurm-healthcheck/slurm-epilog/' etc/assay-healthcheck > etc/assay-epilog
	chmod 755 etc/*
	healthy proof1
	healthy proof2
	printf 'HealthCheckProgram=%s\nHealthCheckInterval=2\nHealthCheckNodeState=ANY\n' "$tmp/etc/assay-healthcheck"
	printf 'Prolog=%s\nEpilog=%s\nPrologFlags=Alloc\n' "$tmp/etc/assay-prolog" "$tmp/etc/assay-epilog"
}
put() { mv "gate/$1/nvml.new" "gate/$1/nvml.json"; } # at once: somebody may be reading
healthy() { cp "$root/tests/fake/h100x4.json" "gate/$1/nvml.new" && put "$1"; }
broken() {
	sed '0,/"remapped_rows": \[0, \[0, 0, 0, 0\]\]/s//"remapped_rows": [0, [0, 0, 1, 0]]/' "$root/tests/fake/h100x4.json" > "gate/$1/nvml.new"
	put "$1"
}
state() { sinfo -h -N -n "$1" -o %T | head -n 1; }
reason() { sinfo -h -N -n "$1" -o %E | head -n 1; }
is() { # NODE PATTERN: of its state
	state "$1" | grep -qE "$2"
}
looked() { # NODE MODE: it was called since
	grep -q "^$1 health --for $2" called
}
cluster_begin "${3:-}"

ok "the page has three scripts" [ "$(head -n 1 etc/assay-health etc/assay-resume etc/assay-healthcheck | grep -c '^#!/bin/sh')" = 3 ]
ok "Slurm calls the health check on both nodes" comes sh -c 'grep -q "^proof1 health --for slurm-healthcheck" called && grep -q "^proof2 " called'
ok "healthy nodes stay" comes sh -c 'grep -q "^pass" gate/proof1/said && grep -q "^pass" gate/proof2/said'
ok "a job runs, after its prolog" srun -w proof1 true
ok ".. which looked" looked proof1 slurm-prolog
ok ".. and its epilog too" comes looked proof1 slurm-epilog
ok "no node is drained" is proof1 'idle|completing|allocated|mixed'

broken proof1
ok "a planted fault drains its node" comes is proof1 'drain'
ok ".. with the reason" comes sh -c 'sinfo -h -N -n proof1 -o %E | grep -q "^assay health: fail: 0000:8d:00.0: remap_pending: a row remap waits for a reset"'
ok ".. seen twice" [ "$(grep -c '^fail: 0000:8d:00.0: remap_pending' gate/proof1/said)" -ge 2 ]
ok ".. and said in the log" says 'drained node proof1: assay health: fail' gate/proof1/said
ok "the other node works on" srun -w proof2 true
ok "the exit codes were all 0" sh -c '! grep -v "^0 " codes'

healthy proof1
ok "its repair returns the node" comes is proof1 '^idle'
ok ".. after two passes" comes says 'resumed node proof1: assay health: fail' gate/proof1/said
ok "a job runs on it again" srun -w proof1 true

# An administrator drains a node that assay had drained, for a reason of their own.
broken proof1
ok "a second fault drains again" comes is proof1 'drain'
scontrol update nodename=proof1 state=resume
scontrol update nodename=proof1 state=drain reason='new power supply'
healthy proof1
: > called
passes() { [ "$(grep -c '^proof1 health' called)" -ge 5 ]; }
ok "after the repair, five looks later" comes passes
ok ".. the administrator's drain stays" is proof1 'drain'
ok ".. with its reason" [ "$(reason proof1)" = 'new power supply' ]
scontrol update nodename=proof1 state=resume
ok "the administrator returns it" comes is proof1 '^idle'

# What assay cannot know drains nothing.
printf 'no JSON' > gate/proof2/nvml.new
put proof2
: > gate/proof2/said
ok "an unknown verdict" comes says '^unknown' gate/proof2/said
: > called
looks() { [ "$(grep -c '^proof2 health' called)" -ge 4 ]; }
ok ".. seen again and again" comes looks
ok ".. drains nothing" is proof2 '^idle'
ok ".. and no exit code was other than 0" sh -c '! grep -v "^0 " codes'
[ "$fail" = 0 ] || tail -n 8 log/* gate/*/said codes | sed 's/^/# /'
finish
