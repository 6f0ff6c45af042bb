#!/bin/bash
# Ranks that die at a random moment, in MPI or on their way there: a worker or a supervisor of three is killed. Never a hang, every
# survivor's journal is whole and says what was. usage: kill.sh ASSAY MODULE FAKE [TRIALS [SEED]]
. "$(dirname "$0")/mpirun.sh"
only_open_mpi
assay=$program trials=${4:-6} RANDOM=${5:-4711} limit=400 together=2 ranks="0 1 2"
export assay
cat > suite.yaml << 'EOF'
name: three
cases:
  - {probe: collective, engine: mpi, target: team, phases: burst, seconds: 200ms, limit: 8s, require: measured, options: {type: fp32, size: [8, 4KiB, 64KiB]}}
EOF
# One rank. mpirun would end all others with the first that ends badly, so each waits for all, and none does.
cat > rank.sh << 'EOF'
t=$1 r=$OMPI_COMM_WORLD_RANK
"$assay" check --suite suite.yaml --join "$([ "$t" = t0 ] && echo 120s || echo 20s)" --no-telemetry --out "$t/run" > "$t/out.$r" 2> "$t/err.$r" &
echo $! > "$t/pid.$r"
wait $!
echo $? > "$t/code.$r"
for _ in $(seq 3500); do
	[ -s "$t/code.0" ] && [ -s "$t/code.1" ] && [ -s "$t/code.2" ] && break
	sleep 0.1
done
exit 0
EOF
start() { # TRIAL
	mkdir -p "t$1"
	started 3 sh rank.sh "t$1" > "t$1/mpirun" 2>&1 &
}
. "$here/../end2end/kills.sh"
