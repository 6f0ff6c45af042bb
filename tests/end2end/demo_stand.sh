# A stand-in of assay for the scripts of assay demo, which take it in with `.` after tap.sh and scratch; $assay is the program. It does the
# steps whose time or verdict depends on the machine.
export CUDA_VISIBLE_DEVICES= # the CPU, where there is a GPU too
"$assay" make-model --out tiny > out 2> err || lacks "no model can be made: $(cat err)"
"$assay" tokens tiny x > out 2> err || {
	grep -q 'built without tokenizers' err || cat err
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
}

# A small suite: a reading, and a case of a millisecond.
printf 'name: small\ncases:\n  - {probe: limits}\n  - {probe: "null", phases: burst, require: nothing, options: {time: 1ms}}\n' > small.yaml
# The stand-in: a file how.COMMAND is shell code that runs instead; its $dir is the run directory.
cat > stand << 'END'
#!/bin/sh
dir=. before= plan=no
for word; do
	[ "$before" = --out ] && dir=$word
	[ "$word" = --plan ] && plan=yes
	before=$word
done
if [ "$1" = check ] && [ $plan = yes ]; then
	echo '{"seconds_expected": 3}'
	exit 0
fi
echo "$1" >> "$HERE/ran"
[ -e "$HERE/how.$1" ] && . "$HERE/how.$1"
case $1 in
check) exec "$ASSAY" check --suite "$HERE/small.yaml" --out "$dir" ;;
make-model) # every model is the smallest one
	for out; do :; done
	exec "$ASSAY" make-model --out "$out" ;;
load)
	printf '{"headline": "measured: 9 of 9 requests answered", "cases": [{"probe": "load", "phases": [{"phase": "once", "values": %s}]}]}\n' \
		'{"requests": 9, "answered": 9, "ttft_p50_s": 0.05, "completed_rate": 0.25, "output_tokens_per_s": 4.5}' > "$dir/results.json"
	echo '<!doctype html><title>report</title>' > "$dir/report.html" ;;
*) exec "$ASSAY" "$@" ;;
esac
END
chmod +x stand
HERE=$PWD ASSAY=$assay
export HERE ASSAY
tour() { # CODE DIR ARGS..: a tour with the stand-in
	want=$1 dir=$2
	shift 2
	rm -f ran
	ASSAY_TEST_STAGES=$PWD/stand "$assay" demo "$@" --out "$dir" > out 2> err < /dev/null
	code=$?
	[ "$code" = "$want" ] || { echo "exit code $code"; return 1; }
}
is() { # STEP VERDICT [WORDS]: the row of the summary that was printed
	grep -E "^ +[0-9]+ $1 +$2" out > row || { grep -E "^ +[0-9]+ $1 " out; return 1; }
	[ -z "${3:-}" ] || says "$3" row
}
