#!/bin/sh
# assay itself under mpirun: four ranks run check quick and CPU collectives, each rank keeps its journal, rank 0 reports; wrong results, a
# rank that dies or hangs inside MPI, a plug-in that is not there, no mpirun at all.
# usage: check.sh ASSAY MODULE FAKE     MODULE: libassay-mpi.so; FAKE: a plug-in with a fault
. "$(dirname "$0")/mpirun.sh"
. "$here/../end2end/walk.sh"
only_open_mpi
assay=$program

cat > suite.yaml << 'SUITE'
name: ranks
cases:
  - {probe: collective, engine: mpi, target: team, phases: burst, require: measured, limit: 60s, options: {type: fp32, size: [8, 64KiB]}}
  - {probe: "null", phases: burst, require: measured, options: {time: 1ms}}
  - {probe: collective, engine: mpi, target: node, phases: burst, require: measured, limit: 60s, options: {op: alltoall, type: int32, size: 64KiB}}
SUITE
# team CODE DIR ARGS..: four ranks
team() {
	want=$1 dir=$2
	shift 2
	started 4 "$assay" "$@" --out "$dir" > out 2> err
	code=$?
	[ "$want" = any ] || [ "$code" = "$want" ]
}
# ends DIR RANKS WORDS: so many cases of all journals ended like that
ends() { [ "$(cat "$1"/journal.jsonl "$1"/nodes/*/rank-*/journal.jsonl | grep '"type":"end"' | grep -c -- "$3")" = "$2" ]; }

turns_told() { # of more ranks than CPUs, and of no others
	told=no
	! says 'ranks 0 to 3, sharing' quick/REPORT.md || told=yes
	[ "$told" = "$([ "$(nproc --all)" -lt 4 ] && echo yes || echo no)" ]
}
whole_quick() {
	patience=0 # a quarter of a minute where nobody else is; meson's own limit holds
	ok "mpirun -n 4 assay check quick" team any quick check quick
	patience=600
	ok "each case came to its end, and its verdict follows from its figure" sound "$code" quick
	ok "it says whether ranks took turns" turns_told
	ok "MPI's collectives are in it, and right" \
		[ "$(grep -cE '"all-reduce (8 B|1 MiB), fp32, MPI","passed","success",.*"burst"' quick/results.csv)" = 2 ]
}
if [ "${ASSAY_WALKS:-small}" = written ]; then
	whole_quick
else
	echo "# four times quick, a minute of CPU time, is left to builds without a sanitizer"
fi
ok "mpirun -n 4 assay check, where each is required" team any good check --suite suite.yaml
ok "holds it" sound "$code" good
ok "each collective on each rank, and what is of one rank once" ends good 13 '"status":"ok"'
ok "all through one worker a rank, though another case stands between" \
	[ "$(grep -h '"probe":"collective"\|"type":"begin"' good/nodes/*/rank-1/journal.jsonl | grep '"type":"begin"' | sed 's/.*"pid":\([0-9]*\).*/\1/' | sort -u | wc -l)" = 1 ]
ok "with iterations timed one by one" says '"phase":"burst","values":{.*"iteration_ns_p99":[0-9.]*,"iteration_ns_max":' good/journal.jsonl
ok "which the report shows" says '^| all-reduce 8 B, fp32, MPI | [0-9]' good/REPORT.md
ok "with MPI's version" says '"mpi_version":"Open MPI v' good/journal.jsonl
ok "in one report" says 'all-to-all 64 KiB' out
ok "which has the journals of all" [ "$(find good/nodes -name journal.jsonl | wc -l)" = 3 ]
ok "nothing is left of the launcher's" [ -z "$(find "$TMPDIR" -name 'assay-mpi-*')" ]
ok "assay probe too, with a type that MPI has where none is named" \
	team any probed probe collective --engine mpi --target team size=8KiB --seconds 0.1
ok "on each rank" ends probed 4 '"status":"ok"'
ok "bf16 is none of MPI's" team 2 none probe collective --engine mpi --target team type=bf16
ok "which says what is" says 'engine mpi does not support type=bf16; use type=fp32, fp64, int8 or int32' out
ok "a part of the ranks is refused" team 2 part probe collective --engine mpi --target team:0-1 type=fp32
ok "with why" says 'engine mpi starts on all 4 launched ranks together' out

ok "one process is told how" expect 2 probe collective --engine mpi --target team type=fp32 --out alone
ok "by launch with mpirun" says 'engine mpi needs several: assay launch --how mpirun -- check quick starts them' alone/REPORT.md

without_plugin() (
	export ASSAY_LIB_MPI_PLUGIN=/none/libassay-mpi.so
	team 2 lacks check --suite suite.yaml
)
ok "without the plug-in it is open" without_plugin
ok "and says what is missing" says '/none/libassay-mpi.so does not exist' lacks/REPORT.md

ASSAY_LIB_MPI_PLUGIN=$fake FAKE_MPI_REAL=$module
export ASSAY_LIB_MPI_PLUGIN FAKE_MPI_REAL FAKE_MPI
found() { # DIR FIELD: of the search
	sed -n "s/.*\"phase\":\"isolated\".*\"isolated$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1/journal.jsonl" | tail -n 1
}
FAKE_MPI=lost
ok "a rank whose share is lost fails" team 1 lost check --suite suite.yaml
ok "and is named in rank 0's journal" says "rank 1's share is missing" lost/journal.jsonl
ok "the parts of an all-gather show whose it is" \
	sh -c 'echo "$1" | grep -q "^member wrong rank 1 on "' - "$(found lost '') $(found lost _fault) $(found lost _place)"
ok "which is said, with how it is known" says 'rank 1 on [^ ]* is wrong: its part of an all-gather is wrong on 4 of 4 members' lost/results.csv
ok "in the workers that MPI has begun in" \
	[ "$(grep -h '"probe":"collective"\|"type":"begin"' lost/nodes/*/rank-1/journal.jsonl | grep '"type":"begin"' | sed 's/.*"pid":\([0-9]*\).*/\1/' | sort -u | wc -l)" = 1 ]
sed -i 's/limit: 60s/limit: 10s/' suite.yaml
FAKE_MPI=die=3
ok "a worker that dies inside MPI is inconclusive" team 2 died check --suite suite.yaml
ok "its own rank says how" says '"ending":"crashed".*signal 9' died/nodes/*/rank-1/journal.jsonl
ok "the others whose it was" ends died 3 '"ending":"cancelled".*another rank.s worker died'
ok "what comes later is not run, and why" ends died 8 'mpi can start only once per launched rank, and a rank.s worker died in case 0'
ok "the rank's other cases are" ends died 1 '"status":"ok"'
ok "rank 0 reports" [ -s died/report.html ]
FAKE_MPI=hang=3
ok "one that hangs inside MPI too" team 2 hung check --suite suite.yaml
ok "all were in MPI" ends hung 4 '"ending":"timed_out".*waited [0-9.]* s in an MPI call'
ok "rank 0 reports" [ -s hung/report.html ]
finish
