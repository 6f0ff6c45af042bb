#!/bin/sh
# tools/front-rate with a few short streams: its table is that of its runs. The figures themselves are not judged. usage: front_rate.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
rate=$root/tools/front-rate
# fails CODE WORDS ARG..
fails() {
	want=$1 words=$2
	shift 2
	"$rate" "$@" > out 2> err
	[ $? = "$want" ] && cat out >> err && says "$words" err
}
# figure ROW COLUMN: the median in the table
figure() { sed -n "s/^| $1[^|]*//p" front/README.md | cut -d '|' -f "$2" | sed 's/^ //;s/ .*//'; }
ok "no folder" fails 64 'usage: front-rate' "$build"
ok "a number that is none" fails 64 'x is no number' "$build" front x
ok "a build without its parts" fails 2 'serve_front is not built' "$tmp" front
cores_few() { mkdir -p few && printf '#!/bin/sh\necho 4\n' > few/nproc && chmod +x few/nproc; }
ok "processes apart on too few cores" eval 'cores_few && PATH=$PWD/few:$PATH APART=yes fails 2 "APART needs six cores, and there are 4" "$build" front'
ok "none of these leaves a folder" [ ! -e front ]
ok "three runs of each load" eval '"$rate" "$build" front 8 20 3 > out 2> err && [ "$(grep -c "^paced 8 done" front/runs.txt)" = 3 ] && [ "$(grep -c "^unpaced 8 done" front/runs.txt)" = 3 ]'
ok "the paced rate is at most the engine's" eval 'f=$(figure "a step every" 2); [ "$f" -gt 0 ] && [ "$f" -le 900 ]'
ok "the other load has a rate, too" [ "$(figure "steps without" 2)" -gt 0 ]
ok "its gap is the middle one of the runs" eval '[ "$(figure "a step every" 5)" = "$(sed -n "s/^paced .* \([0-9.]*\) ms engine .*/\1/p" front/runs.txt | sort -n | sed -n 2p | sed "s/\.\{0,1\}0*\$//")" ]'
# 8 streams of 20 tokens, and the events of role and end
ok "each token makes an event" eval '[ "$(awk "{ print \$4 }" front/runs.txt | sort -u)" = "$(((20 + 2) * 8))" ]'
ok "the engine's gaps are those of its steps" eval 'f=$(figure "a step every" 6); awk "BEGIN { exit !($f >= 10 && $f < 1000) }"'
ok "the added time is the difference" eval 'awk "\$1 == \"paced\" { printf \"%.10g\\n\", \$12 - \$16 }" front/runs.txt | grep -qx -- "$(figure "a step every" 9)"'
# Six cores that are not there, and a taskset that notes who would have which.
cores_many() {
	mkdir -p many && printf '#!/bin/sh\necho 6\n' > many/nproc && chmod +x many/nproc &&
		printf '#!/bin/sh\necho "$2 $3" >> %s/cores\nshift 2\nexec "$@"\n' "$PWD" > many/taskset && chmod +x many/taskset
}
ok "processes apart" eval 'cores_many && PATH=$PWD/many:$PATH APART=yes "$rate" "$build" apart 8 20 1 > out 2> err && grep -q "^paced 8 done" apart/runs.txt'
ok "front end, client and engine have other cores" eval 'grep -q "^0,1 .*serve_front$" cores && grep -q "^2,3 .*serve_streams$" cores && grep -q "^4,5 .*stand_in_engine$" cores'
ok "an existing folder stays as it is" eval 'cp front/README.md before && fails 64 "front" "$build" front && cmp before front/README.md'
finish
