#!/bin/bash
# Ranks that die at a random moment: a worker or a supervisor of a team of three is killed, again and again. Never a hang, every
# survivor's journal is whole and says what was, and nobody who lost a case ends with 0.
# usage: team_kill.sh ASSAY [TRIALS [SEED]]
set -u
assay=$(realpath "$1") trials=${2:-50} RANDOM=${3:-4711} here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET ASSAY_SIZE=3 ASSAY_LOCAL_SIZE=3 ASSAY_HOST=127.0.0.1
limit=400 together=4 ranks="0 1 2"
cat > suite.yaml << 'EOF'
name: three
cases:
  - {probe: "null", engine: ranks, target: team, phases: burst, seconds: 100ms, limit: 8s, require: measured, options: {time: 2ms, slot: [1, 2, 3]}}
EOF
start() { # TRIAL
	mkdir -p "t$1"
	for r in $ranks; do
		(
			ASSAY_RANK=$r ASSAY_LOCAL_RANK=$r ASSAY_PORT=$((20000 + $1 * 8)) ASSAY_JOB=trial$1 \
				"$assay" check --suite suite.yaml --join "$([ "$1" = 0 ] && echo 120s || echo 10s)" --no-telemetry --out "t$1/run" > "t$1/out.$r" 2> "t$1/err.$r" &
			echo $! > "t$1/pid.$r"
			wait $!
			echo $? > "t$1/code.$r"
		) 2> /dev/null &
	done
}
. "$here/kills.sh"
