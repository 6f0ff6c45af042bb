# Launched ranks on this host, with a GPU each of four that are not there, for the scripts beside it, which take it in with `.` after
# gpus.sh.
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET FAKE_NCCL_MEET=$tmp FAKE_CUDA=devices=4
unset NCCL_ALGO NCCL_PROTO NCCL_PROFILER_PLUGIN CUDA_VISIBLE_DEVICES SLURM_STEP_GPUS
. "$here/ports.sh"
ports 600
declare -A own=() # by rank: variables of its own
start() { # RANKS ARGS..: a run that begins anew; words are in out.R and err.R, exit codes in code.R
	ranks=$1
	port=$((port + 10))
	shift
	rm -rf run run.* code.* out.* err.*
	for ((r = 0; r < ranks; r++)); do
		(
			env ASSAY_SIZE="$ranks" ASSAY_LOCAL_SIZE="$ranks" ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port ASSAY_JOB=job$port \
				ASSAY_RANK="$r" ASSAY_LOCAL_RANK="$r" ${own[$r]:-} \
				timeout 60 "$assay" check --no-telemetry --out run "$@" > "out.$r" 2> "err.$r"
			echo $? > "code.$r"
		) 2> /dev/null & # the shell's own words on who was killed
	done
}
team() { # RANKS ARGS..: the same, to its end
	start "$@"
	wait
	own=()
}
codes() {
	for ((r = 0; r < ranks; r++)); do cat "code.$r"; done | tr '\n' ' ' > codes
	[ "$(cat codes)" = "$1 " ] || { cat codes err.*; return 1; }
}
of_rank() { # where its journal is: beside the run, and with rank 0 once that has all of it
	at=run.rank-$1
	[ "$1" = 0 ] && at=run
	[ -d "$at" ] || at=$(ls -d run/nodes/*/rank-"$1" 2> /dev/null | head -n 1)
	echo "$at"
}
journal() { echo "$(of_rank "$1")/journal.jsonl"; }
end() { # RANK CASE WORDS: how the case ended there
	grep '"type":"end"' "$(journal "$1")" | grep "\"case\":$2," > end.of
	grep -q -- "$3" end.of || { cat end.of; return 1; }
}
all_end() { # CASE WORDS
	for ((r = 0; r < ranks; r++)); do end "$r" "$1" "$2" || return 1; done
}
waits() { # FILE: the steps of a training run waited for collectives, within their time
	grep '"type":"step"' "$1" | awk '
		function field(name) { return match($0, "\"" name "\":[-0-9.e+]*") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : -1 }
		{ n++
		  if (!(field("comm_s") > 0) || field("comm_s") + field("forward_s") + field("backward_s") + field("optimiser_s") > field("step_s") * 1.001) bad = 1 }
		END { exit bad || !n }'
}
