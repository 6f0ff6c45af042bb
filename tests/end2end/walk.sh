# Runs of a small suite by several ranks, and the walks of docs/HOWTO.md, for the scripts beside it, which take it in with `.`
# after tap.sh; $here is their folder.
small_suite() { # a reading, and a case of all ranks together
	printf 'name: small\ncases:\n  - {probe: limits}\n' > small.yaml
	printf '  - {probe: "null", target: team, phases: burst, require: nothing, options: {time: 1ms}}\n' >> small.yaml
}
# proved RANKS NODES: the run told of in err has each node whole, a case of all ranks, a journal of each rank, and a report.
proved() {
	run=$(sed -n 's|.*report: \(.*\)/report.html.*|\1|p' err out | head -n 1)
	[ -s "$run/report.html" ] && grep -q "\"ranks\":$1[,}]" "$run/journal.jsonl" &&
		[ "$(grep -c '| whole |' "$run/REPORT.md")" = "$2" ] &&
		[ "$(ls -d "$run"/nodes/*/rank-* | wc -l)" = $(($1 - 1)) ]
}
# walk HEADING: the section's commands, one a line, as written; but the small suite instead of quick, which tests/mpi/check.sh has, and
# without mpirun's own ranks of this node, which need an MPI.
walk() {
	awk -v heading="## $1" '/^## / { inside = $0 == heading; next } /^```/ { code = !code; next } inside && code' \
		"$here/../../docs/HOWTO.md" | sed '/--how mpirun -- check/d; s/check quick/check --suite small.yaml/'
}
# walks HEADING RANKS NODES: each command does what it says: all ranks are in the report, or something is shown.
walks() {
	small_suite
	walk "$1" > walk
	[ -s walk ] || echo 'false # HOWTO has no such section' > walk
	while read -r line; do
		ok "HOWTO, $1: ${line%%  *}" walk_line "$line" "$2" "$3"
	done < walk
}
walk_line() {
	sh -c "$1" > out 2> err < /dev/null || return 1
	case $1 in
	*--print*) sh -n out && grep -q '^#!/bin/sh' out ;;
	*--exports*) sh -n out && grep -q '^# OMP_NUM_THREADS' out ;;
	*--\ info*) says '^Team' out && [ "$(grep -Ec ' whole +[0-9]+ from rank ' out)" = "$3" ] ;;
	*--ranks-per-node\ [0-9]*) each=${1#*--ranks-per-node } && proved "${each%% *}" "$3" ;;
	*--nodes*--wait* | *--hosts* | *--hostfile* | mpirun* | torchrun*) proved "$2" "$3" ;;
	*--nodes*) grep -qx '[0-9][0-9]*' out ;; # the job's number
	*) [ -s err ] && grep -q report.html err ;;
	esac
}
