# Stands in for assay in the jobs of a ladder: the rates and losses of each job as a test wants them.
# how.JOB or how.RUNG: shell words that are read before the results are written (rate=, first=, last=, exit ..).
cat > stand << 'STAND'
#!/bin/sh
cd "$(dirname "$0")" || exit 9
if [ "$1" = make-model ]; then
	for model; do :; done
	echo "$*" > made
	[ ! -e how.make-model ] || . ./how.make-model
	mkdir -p "$model"
	exit 0
fi
[ "$1" = train ] && [ "$3" = --out ] || { echo "assay: error: not a job: $*" >&2; exit 64; }
config=$2 run=$4
job=$(basename "$(dirname "$config")")
rung=${job##*-}
echo "$job" >> ran
case $rung in
baseline) rate=100 ;; batch) rate=130 ;; tf32) rate=300 ;; bf16) rate=600 ;; fused) rate=660 ;; attention) rate=900 ;;
packing) rate=1000 ;; loading) rate=1100 ;; graphs) rate=1111 ;; recompute) rate=1000 ;; fp8) rate=1400 ;; *) rate=1 ;;
esac
first=5.0 last=4.9
[ ! -e "how.$rung" ] || . "./how.$rung"
[ ! -e "how.$job" ] || . "./how.$job"
mkdir -p "$run/checkpoint-4" "$run/adapter"
# what the configuration asks for took effect, unless the test has it otherwise
in_config() { sed -n "s/^  $1: *\"\{0,1\}\([a-z0-9]*\).*/\1/p" "$config" | head -n 1; }
[ "$(in_config adapters)" = separate ] && fused=separate || fused=fused
[ "$(in_config attention)" = plain ] && by=plain || by=own
[ "$(in_config graphs)" = true ] && launches=8 || launches=0
facts="\"precision\":\"${precision:-$(in_config precision)}\",\"adapters\":\"${adapters:-$fused}\",\"attention\":\"${attention:-$by}\""
[ -z "${mute:-}" ] || facts=
echo "{\"cases\":[{\"phases\":[{\"phase\":\"load\",\"values\":{$facts}},{\"phase\":\"once\",\"values\":{\"tokens_per_s\":$rate,\"step_s\":1,\"memory_bytes\":${memory:-5e6},\"eval_loss_first\":$first,\"eval_loss\":$last,\"steady_steps\":3,\"graph_launches\":${graphs:-$launches}${more:-}}}]}]}" > "$run/results.json"
echo page > "$run/report.html"
STAND
chmod +x stand
# ladder CODE DIR ARGS..: a ladder on the CPU whose jobs are the stand-in's
ladder() {
	want=$1 dir=$2
	shift 2
	rm -f ran
	ASSAY_TEST_STAGES=$PWD/stand "$assay" ladder --device cpu --out "$dir" "$@" > out 2> err
	[ $? = "$want" ]
}
goes_on() { # CODE DIR
	rm -f ran
	ASSAY_TEST_STAGES=$PWD/stand "$assay" ladder --resume "$2" > out 2> err
	[ $? = "$1" ]
}
# in_json DIR RUNG WORDS: in the rung's object of summary.json
in_json() { tr -d '\n' < "$1/summary.json" | sed 's/{ *"rung"/\n&/g' | grep "\"rung\": \"$2\"" | sed 's/  */ /g' | grep -q -- "$3"; }
