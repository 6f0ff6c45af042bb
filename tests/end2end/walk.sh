# Runs of a small suite by several ranks, and the commands of documentation pages, for the scripts in this folder, which take it in with `.`
# after tap.sh; $here is their folder.
small_suite() { # a reading, and a case of all ranks together
	printf 'name: small\ncases:\n  - {probe: limits}\n' > small.yaml
	printf '  - {probe: "null", target: team, phases: burst, require: nothing, options: {time: 1ms}}\n' >> small.yaml
}
# whole RANKS NODES: the run told of in err has each node whole, a journal of each rank, and a report.
whole() {
	run=$(sed -n 's|.*report: \(.*\)/report.html.*|\1|p' err out | head -n 1)
	[ -s "$run/report.html" ] && [ "$(grep -c '| whole |' "$run/REPORT.md")" = "$2" ] &&
		[ "$(ls -d "$run"/nodes/*/rank-* | wc -l)" = $(($1 - 1)) ]
}
# proved RANKS NODES: and a case of all ranks.
proved() { whole "$1" "$2" && grep -q "\"ranks\":$1[,}]" "$run/journal.jsonl"; }
# sound CODE RUN: the run came to its end, no case erred, every verdict is one that follows from how fast and how busy a machine is, and
# the exit code is none that its record does not ask for. How fast this machine is, is no matter. A case over its limit is excused where the
# record says that other work took the CPUs, and a crash where the kernel killed processes for want of memory meanwhile: two nodes of one
# small machine may want more than it has.
slow='"fail","below_ceiling"|"untrusted","(cpu_contended|above_bound|telemetry_gap|unsettled|wide_spread)"|"unknown","no_reference"'
killed() { sed -n 's/^oom_kill //p' /proc/vmstat 2> /dev/null; } # by the kernel, for want of memory, since it was started
killed_before=$(killed)
sound() {
	grep -oE '"(pass|measured|warn|fail|unknown|skip|untrusted|error)","[a-z_]*"' "$2/results.csv" | sort | uniq -c > verdicts
	[ -s verdicts ] || return 1
	excused=$slow
	! grep -q cpu_contended verdicts || excused="$slow|\"error\",\"timed_out\""
	[ "$(killed)" = "$killed_before" ] || grep '"error","crashed"' "$2/results.csv" | grep -qv 'signal 9 (Killed)' ||
		excused="$excused|\"error\",\"crashed\"" # every crash was by KILL
	if grep -Ev '"(pass|measured|warn|skip)"|'"$excused" verdicts; then return 1; fi
	grep -q '"type":"close","ending":"done"' "$2/journal.jsonl" || return 1
	"$assay" report "$2" > judged 2>&1
	asked=$?
	[ "$1" -le 2 ] && [ $asked -le 2 ] && { [ "$1" != 0 ] || [ $asked = 0 ]; }
}
# commands PAGE..: the commands, one per line, of each block that is marked for this script (tools/run-pages says how). A command that occurs
# twice is printed once. PAGE is a path below docs/.
commands() {
	for page; do
		awk -v marker="<!-- run: tests/end2end/$(basename "$0") -->" '
			/^```/ { inside = !inside && $0 == "```sh" && before == marker }
			!/^```/ && inside { key = $0; sub(/  *# .*/, "", key); if (!done[key]++) print }
			{ before = $0 }' "$here/../../docs/$page"
	done | awk '{ key = $0; sub(/  *# .*/, "", key) } !done[key]++'
}
# walk PAGE..: its commands. The small suite replaces the suite quick, which takes half a minute of CPU time for each rank. With
# ASSAY_WALKS=written, as in ./quickstart test --long, the first command that runs quick keeps it. `launch --how mpirun` on one node is left
# out, because it needs an MPI.
walk() {
	commands "$@" | sed '/--how mpirun -- check/d' |
		awk -v again="$([ "${ASSAY_WALKS:-small}" = written ] || echo 1)" '!/--print/ && /check quick/ { if (again) sub(/check quick/, "check --suite small.yaml"); again = 1 } { print }'
}
# walks RANKS NODES PAGE..: each command does what it says: all ranks are in the report, or something is shown.
walks() {
	small_suite
	ranks=$1 nodes=$2
	shift 2
	walk "$@" > walk
	[ -s walk ] || echo "false # no block of $* is marked for this script" > walk
	while read -r line; do
		ok "$1: ${line%%  *}" walk_line "$line" "$ranks" "$nodes"
	done < walk
}
walk_line() {
	code=0
	sh -c "$1" > out 2> err < /dev/null || code=$?
	case $1 in
	*--print*) [ $code = 0 ] && sh -n out && grep -q '^#!/bin/sh' out && return ;;
	*check\ quick*) whole "$2" "$3" && sound $code "$run" && return ;;
	esac
	[ $code = 0 ] || return 1
	case $1 in
	*--exports*) sh -n out && grep -q '^# OMP_NUM_THREADS' out ;;
	*--\ info*) says '^Team' out && [ "$(grep -Ec ' whole +(rank [0-9]+|ranks [0-9]+ to [0-9]+)[ ,]' out)" = "$3" ] ;;
	*--ranks-per-node\ [0-9]*) each=${1#*--ranks-per-node } && proved "${each%% *}" "$3" ;;
	*--nodes*--wait* | *--hosts* | *--hostfile* | mpirun* | torchrun*) proved "$2" "$3" ;;
	*--nodes*) grep -qx '[0-9][0-9]*' out ;; # the job's number
	*) [ -s err ] && grep -q report.html err ;;
	esac
}
