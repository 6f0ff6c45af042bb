# The walks of docs/HOWTO.md for the scripts beside it, which take it in with `.` after tap.sh; $here is their folder.
# walk HEADING: the section's commands, one a line, as written; but what the ranks run is a team that does nothing.
walk() {
	awk -v heading="## $1" '/^## / { inside = $0 == heading; next } /^```/ { code = !code; next } inside && code' \
		"$here/../../docs/HOWTO.md" | sed 's/check quick/__team/'
}
# walks HEADING: each command does what it says: ranks meet and part, or something is shown.
walks() {
	walk "$1" > walk
	[ -s walk ] || echo 'false # HOWTO has no such section' > walk
	while read -r line; do
		ok "HOWTO, $1: ${line%%  *}" walk_line "$line"
	done < walk
}
walk_line() {
	sh -c "$1" > out 2> err < /dev/null || return 1
	case $1 in
	*--print*) sh -n out && grep -q '^#!/bin/sh' out ;;
	*--exports*) sh -n out && grep -q '^# OMP_NUM_THREADS' out ;;
	*--wait* | *__team*) walk_met ;;
	esac
}
# As many ranks as the team says met and parted. A job that nobody waits for says its number.
walk_met() {
	size=$(sed -n 's/.*"size":\([0-9]*\).*/\1/p' out | head -n 1)
	if [ -z "$size" ]; then
		grep -qx '[0-9][0-9]*' out
	else
		[ "$(grep -c "\"size\":$size.*\"ending\":\"done\"" out)" = "$size" ] && [ "$size" -gt 1 ]
	fi
}
