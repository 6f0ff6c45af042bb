# Teams of three ranks of which one is struck at a random moment, again and again, for the scripts that take it in with `.`. They
# say how a team begins: start TRIAL, in the background, writes out, err, pid and code of each rank R to tTRIAL/NAME.R and lets rank 0
# keep its run in tTRIAL/run, of three cases. And $trials, $together (teams at once), $ranks, $limit (seconds after which a trial counts as hung: far above what a busy machine takes).
# Another rank's is with rank 0 once that has all of it.
journal() {
	own=t$1/run.rank-$2
	[ "$2" = 0 ] && own=t$1/run
	[ -d "$own" ] || own=$(ls -d "t$1"/run/nodes/*/rank-"$2" 2> /dev/null | head -n 1)
	echo "$own/journal.jsonl"
}
over() { for r in $ranks; do [ -s "t$1/code.$r" ] || return 1; done; }
all_over() { for t in "$@"; do over "$t" || return 1; done; }
strike() { # TRIAL WHAT RANK AFTER(ms): kills, by SIGKILL
	sleep "$(printf '%d.%03d' $(($4 / 1000)) $(($4 % 1000)))"
	pid=$(cat "t$1/pid.$3")
	if [ "$2" = worker ]; then # the next that is there
		of=$pid pid=
		for _ in $(seq 40); do
			pid=$(ps -o pid=,args= --ppid "$of" | awk '/__worker/ { print $1; exit }')
			[ -z "$pid" ] || break
			sleep 0.05
		done
	fi
	echo "$2 of rank $3 after $4 ms: pid ${pid:-none}" > "t$1/deed"
	[ -n "$pid" ] && kill -KILL "$pid" && echo "$2 $3" > "t$1/struck"
} 2> /dev/null
# What a survivor's journal says, its exit code says too.
true_of() { # TRIAL RANK
	j=$(journal "$1" "$2") code=$(cat "t$1/code.$2")
	[ "$code" -le 2 ] || { echo "rank $2: exit code $code"; return 1; }
	if [ ! -s "$j" ]; then # it never came to begin
		[ "$code" != 0 ] && [ -s "t$1/err.$2" ] && return 0
		echo "rank $2: no journal, exit code $code"
		return 1
	fi
	tail -n 1 "$j" | grep -q '"type":"close"' || { echo "rank $2: its journal is open"; return 1; }
	begun=$(grep -c '"type":"begin"' "$j") ended=$(grep -c '"type":"end"' "$j")
	good=$(grep '"type":"end"' "$j" | grep -c '"ending":"done","status":"ok"')
	[ "$ended" = 3 ] && [ "$begun" -le 3 ] || { echo "rank $2: $begun begun, $ended ended of 3"; return 1; }
	if [ "$code" = 0 ]; then # a busy machine may leave figures that nobody trusts
		[ "$good" = 3 ]
	else
		# one killed after its last case leaves rank 0 without that rank's record
		[ "$good" -lt 3 ] || grep -q 'team has ended\|untrusted\|no complete files from rank' "t$1/err.$2" "t$1/out.$2"
	fi ||
		{ echo "rank $2: exit code $code with $good of 3 cases"; return 1; }
}
judge() { # TRIAL
	dead=$(sed -n 's/^supervisor //p' "t$1/struck" 2> /dev/null)
	for r in $ranks; do
		[ "$r" = "${dead:-none}" ] || true_of "$1" "$r" || return 1
	done
	[ "${dead:-1}" = 0 ] || [ ! -s "t$1/run/journal.jsonl" ] || "$assay" report t"$1"/run > "t$1/report" 2>&1 || [ $? -le 2 ]
}
tell() { # TRIAL
	cat "t$1/deed"
	for r in $ranks; do
		echo "rank $r: $(cat "t$1/code.$r" 2> /dev/null) $(tail -n 3 "t$1/err.$r")"
		grep '"type":"end"' "$(journal "$1" "$r")" 2> /dev/null | cut -c 1-300
	done
}

since=$(date +%s%N)
start 0
for _ in $(seq $((limit * 10))); do over 0 && break; sleep 0.1; done
whole=$((($(date +%s%N) - since) / 1000000))
clean() {
	over 0 && judge 0 || return 1
	for r in $ranks; do
		[ "$(grep '"type":"end"' "$(journal 0 "$r")" | grep -c '"ending":"done","status":"ok"')" = 3 ] || return 1
	done
}
ok "a team that nobody harms ends well, in $whole ms" clean
over 0 || { tell 0; finish; }

begun() { for r in $ranks; do [ ! -s "t$1/pid.$r" ] || return 0; done; return 1; }
hung=0 lies=0 struck=0
for first in $(seq 1 $together "$trials"); do
	batch=$(seq "$first" $((first + together - 1 < trials ? first + together - 1 : trials)))
	for t in $batch; do
		start "$t"
		strike "$t" "$([ $((RANDOM % 2)) = 0 ] && echo worker || echo supervisor)" $((RANDOM % 3)) $((RANDOM % whole + 50)) &
	done
	# shellcheck disable=SC2086
	for _ in $(seq $((limit * 10))); do all_over $batch && break; sleep 0.1; done
	for t in $batch; do
		if ! begun "$t"; then # what launches them did not: no team of ours
			echo "# trial $t did not begin: $(tail -n 3 "t$t/mpirun" 2> /dev/null | tr '\n' '|')"
		elif ! over "$t"; then
			hung=$((hung + 1))
			echo "# trial $t hangs: $(tell "$t" | tr '\n' '|')"
			for r in $ranks; do kill -KILL "$(cat "t$t/pid.$r")" 2> /dev/null; done
		elif ! judge "$t" > why; then
			lies=$((lies + 1))
			echo "# trial $t: $(cat why) $(tell "$t" | tr '\n' '|')"
		fi
		[ ! -s "t$t/struck" ] || struck=$((struck + 1))
	done
done
ok "of $trials teams none hangs" [ "$hung" = 0 ]
ok "every survivor's journal is whole, and its exit code true" [ "$lies" = 0 ]
ok "some were struck while they ran: $struck" [ "$struck" -ge 1 ] # how many is a matter of how busy the machine is
finish
