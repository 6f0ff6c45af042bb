#!/bin/sh
# tools/check-gpu and tools/plant with four GPUs, an assay and a clock that are not there: what is counted, what ends when.
# usage: check_gpu.sh ROOT
set -u
root=$(realpath "$1")
. "$root/tests/end2end/tap.sh"
scratch
export HOME="$tmp/home" XDG_CACHE_HOME="$tmp/home" PATH="$tmp/bin:$PATH"
unset CHECK_TOTAL CHECK_TRIALS CHECK_KINDS NCCL_TESTS
mkdir -p home bin here nccl
ln -s "$root/tools" here/tools
printf '#!/bin/sh\nfor i in 0 1 2 3; do echo "GPU $i: none"; done\n' > bin/nvidia-smi
# Its seconds are the lines of a file; each look at it adds one.
cat > bin/date << 'STUB'
#!/bin/sh
echo >> "$DATE_FILE"
case $1 in
+%s%N) echo $(($(wc -l < "$DATE_FILE") * 1000000000)) ;;
+%s) wc -l < "$DATE_FILE" ;;
*) echo 2026-11-22 ;;
esac
STUB
# A run: 100 GB/s; it takes STUB_SECONDS, and names STUB_NAMES or who was planted.
cat > here/assay << 'STUB'
#!/bin/sh
out=
while [ $# -gt 0 ]; do
	[ "$1" != --out ] || out=$2
	shift
done
i=0
while [ $i -lt "${STUB_SECONDS:-0}" ]; do echo >> "$DATE_FILE"; i=$((i + 1)); done
[ -n "$out" ] || exit 0
mkdir -p "$out"
named=${STUB_NAMES:-${ASSAY_TEST_PLANT:+gpu${ASSAY_TEST_PLANT#*:}}}
{
	echo '{"type":"plan","key":"collective op=allreduce","x":{},"gpus":["a","b","c","d"]}'
	echo '{"type":"result","values":{"link_rate":1e11}}'
	[ -z "$named" ] || echo "{\"type\":\"result\",\"values\":{\"isolated_place\":\"$named\"}}"
} > "$out/journal.jsonl"
STUB
cp bin/nvidia-smi here/busy # whoever is busy is gone at once
chmod +x bin/* here/assay here/busy
export DATE_FILE="$tmp/clock"
check() { # OUT STEP..: exit code in $code
	: > clock
	here/tools/check-gpu "$@" > out 2> err
	code=$?
}
here() { cp -RL here/tools "$tmp/here/tools.new" && rm here/tools && mv here/tools.new here/tools; }
here # the script looks for the program beside the folder that it really lies in

described() { sed -n '/^#   info /,/^# Nothing on/ s/^#   \([a-z0-9_]\{1,\}\) .*/\1/p' "$root/tools/check-gpu"; }
has_code() { described | while read -r name; do grep -q "^do_$name()" "$root/tools/check-gpu" || { echo "$name has no code"; exit 1; }; done; }
ok "every step that the tool describes has its code" eval 'has_code && [ "$(described | wc -l)" -ge 30 ]'
by_default() { sed -n 's/.*set -- info /info /p' "$root/tools/check-gpu" | tr ' ' '\n' | sort; }
left_out() { sed -n 's/^# steps (.*, all but \(.*\)):$/\1/p' "$root/tools/check-gpu" | tr -d ' ' | tr ',' '\n'; }
but_named() { left_out > left && [ -s left ] && described | grep -vxFf left | sort; }
ok "and is run by default but for those that its page names" eval 'by_default > default && but_named > named && diff default named'
check nothing there
ok "an unknown step is refused" eval '[ $code = 64 ] && says "no step .there" err'
check gate gate
ok "the gate's step runs" says '^gate-active ' gate/steps.txt
check a once
ok "a suite in time is well" [ $code = 0 ]
STUB_SECONDS=100
export STUB_SECONDS
check b once links
ok "quick in more than 90 s is missed" says 'once .* took .* ms: longer than 90 s' b/steps.txt
ok "and the links in more than 60 s" says 'links .* took .* ms: longer than 60 s' b/steps.txt
ok "which is the exit code" [ $code = 1 ]
CHECK_TOTAL=110
export CHECK_TOTAL
check c once links scaling
ok "what has no time left is not begun" says 'links .*not begun: CHECK_TOTAL=110 is over' c/steps.txt
ok "nor what comes behind it" says 'scaling .*not begun' c/steps.txt
ok "which is the exit code, too" [ $code = 1 ]
unset CHECK_TOTAL STUB_SECONDS

CHECK_TRIALS=3 CHECK_KINDS="clean busy wrong"
export CHECK_TRIALS CHECK_KINDS
check d plant
ok "planted faults that are named are well" [ $code = 0 ]
ok "three trials of each kind" [ "$(cut -d, -f 1 d/plant/trials.csv | sort | tr '\n' ' ')" = "busy busy busy clean clean clean kind wrong wrong wrong " ]
ok "each with the next GPU" [ "$(sed -n 's/^wrong,\([0-9],[0-9]\),right,gpu\([0-9]\),.*/\1 \2/p' d/plant/trials.csv | tr '\n' ' ')" = "0,0 0 1,1 1 2,2 2 " ]
STUB_NAMES=gpu1
export STUB_NAMES
check e plant
ok "who is named wrong is counted" says '^busy  *3  *1  *2  *0 ' e/plant.log
ok "and who is named without a fault" says '^clean  *3  *0  *3  *0 ' e/plant.log
ok "and missed" says 'a planted fault was not named, or a clean run named somebody' e/steps.txt
unset STUB_NAMES
STUB_SECONDS=20 CHECK_TOTAL=300
export STUB_SECONDS CHECK_TOTAL
check f plant
ok "trials end when their time does" [ "$(wc -l < f/plant/trials.csv)" -gt 2 ] && [ "$(wc -l < f/plant/trials.csv)" -lt 10 ]
ok "between two of them: the table is whole" says '^planted  *trials ' f/plant.log
unset STUB_SECONDS CHECK_TOTAL

check g small
ok "without nccl-tests its pairs are skipped" says 'small .*skipped: there is no .*/all_reduce_perf' g/steps.txt
printf '#!/bin/sh\n' > nccl/all_reduce_perf
chmod +x nccl/all_reduce_perf
printf '#!/bin/sh\necho "$@" > "$DATE_FILE.words"\n' > here/tools/peer_nccl
NCCL_TESTS="$tmp/nccl" check h small
ok "with it each way of a small all-reduce is paired" says '-o allreduce -w stream graph window .*/assay .*/nccl .*/h/small' clock.words


printf '#!/bin/sh\nexit 1\n' > bin/python3
chmod +x bin/python3
STUB_SECONDS=0 check t training
ok "training is run at seven micro-batches and levels" [ "$(grep -c '^training-b[0-9]*-[a-z]* *exit   0' t/steps.txt)" = 7 ]
ok "with rows that are longer than any pack" says 'recompute: cheap' t/training/b4-cheap.yaml
ok "no shape and rows are left" eval '[ ! -e t/training/rows.jsonl ] && [ ! -e t/training/shape ]'
ok "without rates there is no bound, which is told" says '^training-bound none: the run lacks' t/steps.txt
ok "and without a peer none is met" eval 'says "^training-peer  skipped" t/steps.txt && [ $code = 0 ]'
STUB_SECONDS=0 check u decode
ok "text is made of two shapes" [ "$(grep -c '^decode-[a-z0-9-]* *exit   0' u/steps.txt)" = 4 ]
ok "of which nothing is left" [ ! -e u/decode-model ]
ok "and without a peer that is told" says '^decode-peer *skipped' u/steps.txt
rm bin/python3

mkdir -p here/docs/tutorial here/docs/how-to
printf '<!-- run: gpus -->\n```sh\nassay probe memory\n```\n' > here/docs/tutorial/first.md
printf '<!-- run: gpu -->\n```sh\ntrue   # all is well\n```\n' > here/docs/how-to/second.md
check w pages
ok "commands of pages run on GPUs" eval '[ $code = 0 ] && says "^ok 1 - first.md:2: assay probe memory$" w/pages.log'
sed -i 's/^true/false/' here/docs/how-to/second.md
check x pages
ok "one that fails is the exit code" eval '[ $code = 1 ] && says "^not ok 2 - second.md:2: false: exit code 1" x/pages.log'

finish
