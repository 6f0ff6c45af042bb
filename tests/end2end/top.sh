#!/bin/sh
# assay top as people see it: screens of several sizes in a real terminal (tmux), keys, recordings that are cut or hostile, a reader
# that is killed, and what it leaves behind. usage: top.sh ASSAY NVML-FAKE ROOT
set -u
assay=$(realpath "$1") nvml=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
. "$here/tmux.sh"
[ -e "$(dirname "$assay")/watch/libassay-screen.so" ] || lacks "the screen module is not built (package libncurses-dev)"
rec=$root/examples/watch/three-nodes.rec

# ---- text: no terminal is needed ----
ok "once: all nodes, worst first" expect 0 top --replay "$rec" --at 39s --once
ok "the one with a lost GPU and old values is above" sh -c 'sed -n 3p out | grep -q "^gpu2  *3/4 .* 19 s  GPU 2 is lost"'
ok "a node without GPU is shown" says '^head  *0 ' out
ok "no control sequence is in a file" sh -c '! grep -q "$(printf "\033")" out'
COLUMNS=140 "$assay" top --replay "$rec" --at 39s --once --filter gpu1 > out
ok "a filter that leaves one node shows its page" says '^GPU name .*util .*memory .*power .*held by .*Xid' out
ok "with each GPU in a line" [ "$(grep -c '^[0-7] *H100 80GB HBM3 .*60.0/80.0G' out)" = 8 ]
ok "its live run" says '^train llama-1b  step 139 of 400' out
ok "its processes" says '^ *7003 alice .*python train.py --layers 32' out
"$assay" top --replay "$rec" --at 39s --once --filter gpu2 > out
ok "a lost GPU is shown as lost" says '^2  *LOST' out
ok "old values show their age" says '^0 .*19 s old' out
ok "the source that hangs is told" says '^gpu: NVML did not answer for 10 s' out
"$assay" top --replay "$rec" --at 0 --once --filter gpu2 > first
"$assay" top --replay "$rec" --at 1h --once --filter gpu2 > last
"$assay" top --replay "$rec" --once --filter gpu2 > out
ok "without a time, once shows the last moment, not the first" eval 'cmp last out && [ -s first ] && ! cmp -s first out'
ok "JSON is a line a node" expect 0 top --replay "$rec" --at 39s --once --json
ok "three of them" [ "$(grep -c '^{"node":"[a-z0-9]*","interval":1.0,' out)-$(wc -l < out)" = 3-3 ]
ok "values carry the catalogue's names, rates stand apart" \
	says '"values":{.*"assay_gpu_clock_held{reason=\\"power_cap\\"}":1.0.*"rates_per_second":{"assay_nvlink_transmit_bytes_total":20000000000.0' out
ok "a pipe gets a line per reading" expect 0 top --replay "$rec" --count 3
ok "of each node" [ "$(grep -c 'gpu1: 8 GPUs' out)-$(wc -l < out)" = 3-9 ]
"$assay" top --replay "$rec" 2> err | head -n 1 > out
ok "a reader that leaves ends it" [ "$(wc -l < out)" = 1 ]

# ---- wrong use, and recordings that are cut or hostile ----
ok "two sources at once are refused" expect 64 top --replay "$rec" --hosts gpu1
ok "with the reason" says 'replay and --hosts cannot be combined' err
ok "an unknown order is refused" expect 64 top --sort colour
ok "so is an unknown theme" expect 64 top --theme pink
ok "--machine needs a view" expect 64 top --machine "$root/tests/replay/h100-sxm-1"
ok "a file that is not there" expect 2 top --replay nowhere --once
ok "is named" says 'nowhere' err
head -c 30000 "$rec" > cut.rec
ok "a recording that is cut shows what is there" expect 0 top --replay cut.rec --once --at 1h
ok "with its nodes" says '^gpu1  *8 ' out
ok "and says that it ends early" says 'cut.rec' err
cp "$rec" live.rec
mkfifo lines
"$assay" top --replay live.rec --json --interval 0.1 > lines 2> err &
pid=$!
{
	head -n 1 > first # top waits, because a pipe holds only some lines
	truncate -s 100 live.rec
	cat > /dev/null
} < lines
wait $pid
code=$?
ok "a recording that is cut while it is read is inconclusive" [ $code = 2 ]
ok "and said once" [ "$(grep -c 'shortened the file' err)" = 1 ]
: > empty.rec
ok "an empty file is no recording" expect 64 top --replay empty.rec --once
head -c 100000 /dev/urandom > noise.rec
ok "nor is noise" expect 64 top --replay noise.rec --once
{ head -n 60 "$rec"; printf '0 1500 {"e":1,"labels":{"modelName":"a\\u001b[31m\\u009b2J\\u202e"}}\n1 x y\n7 2000 {}\n'; } > hostile.rec
"$assay" top --replay hostile.rec --once --at 1h --filter gpu1 > out 2> err
ok "a hostile recording ends with a code" [ $? -le 64 ]
ok "and steers no terminal" sh -c '! grep -q "$(printf "[\033\233]")" out err'

# ---- a terminal ----
rm -f out err # what fails from here on shows the screen
terminal 100 30
types "stty -g > before; echo before-top"
until_shown '^before-top'
types "'$assay' top --replay '$rec' --at 39s"
ok "the page of all nodes comes first" until_shown '^3 nodes, worst first'
ok "within its width" fits 100
ok "it knows its place in the recording" says 'recording [34][0-9] s of 40 s' seen
ok "a click selects" eval 'keys -l "$(printf "\033[M &\$")"; keys Enter; until_shown "^gpu1  driver"'
ok "n leads back to all nodes" eval 'keys n; until_shown "^3 nodes"'
keys Up Up
ok "Enter opens the worst node" eval 'keys Enter; until_shown "^gpu2  driver 570.86.15"'
ok "its lost GPU is lost here too" says '^2  *LOST' seen
ok "n leads back" eval 'keys n; until_shown "^3 nodes"'
ok "arrows select" eval 'keys Down Enter; until_shown "^gpu1  driver"'
ok "a graph fills the screen" eval 'keys g; until_shown "^GPU 0  utilization_ratio"'
ok "with its figures" says '^now .* least .* mean .* most .* readings' seen
ok "of any value" eval 'keys ">"; until_gone "utilization_ratio"'
ok "Escape leads back" eval 'keys Escape; until_shown "^ process user"'
ok "all values can be seen" eval 'keys m; until_shown "^  energy\|^  busy_ratio"'
ok "and filtered" eval 'keys / ; keys -l loss; until_shown "^  loss"'
ok "only those" [ "$(grep -c '^  [a-z]' seen)" = 1 ]
keys Enter
ok "help explains keys and columns" eval 'keys "?"; until_shown "^k  *end the selected process"'
ok "from the catalogue" says '^temp *Temperature of the GPU (celsius)' seen
keys q q
ok "Left seeks back" eval 'keys Home; until_shown "recording [0-3] s of 40 s"'
ok "Space pauses" eval 'keys Space; until_shown "paused at"'
keys Right # at its very beginning, nothing has been read
until_shown "paused at 1[0-9] s"
for size in "200 50" "80 24" "40 10" "20 5" "100 30"; do
	columns=${size% *} rows=${size#* }
	resize "$columns" "$rows"
	ok "at ${columns} x ${rows} it fits" eval 'sleep 0.3; until_shown "^gpu1" && fits $columns && until_shown "^0  *[0-9]*% \|^0  *H100 .*%"'
done
ok "no process of a recording can be ended" eval 'keys Tab k; until_shown "only processes of this machine can be ended"'
ok "themes change" eval 'keys c; until_shown "theme: light"'
ok "colours are the terminal's 256" eval 'coloured | grep -q "38;5;"'
keys n
until_shown '^3 nodes'
ok "q ends it" eval 'keys q; until_shown "^before-top"'
types "stty -g > after; cmp before after && echo same \"as\" before"
ok "the terminal is as it was" until_shown 'same as before'

# ended in every way, the terminal comes back
for signal in INT TERM HUP SEGV ABRT BUS XCPU SYS TRAP ALRM USR1 USR2 VTALRM IO; do
	terminal 80 24
	types "stty -g > before; trap : HUP; '$assay' top --replay '$rec'; echo ended; stty -g > after; cmp before after && echo same \"as\" before"
	until_shown '^3 nodes'
	pkill -"$signal" -f "^$assay top --replay $rec"
	ok "$signal gives the terminal back" eval 'until_shown "same as before" && ! grep -q "^3 nodes" seen'
done
terminal 80 24
types "'$assay' top --replay '$rec' --at 39s"
until_shown '^3 nodes'
keys C-z
ok "it can be stopped" until_gone '^3 nodes'
types fg
ok "and draws its screen again when it goes on" eval 'until_shown "^3 nodes" && until_shown "^gpu1  *8 "'
sed 's/python train.py/日本語 train.py/' "$rec" > wide.rec
terminal 120 30
types "'$assay' top --replay '$tmp/wide.rec' --at 39s"
until_shown '^3 nodes'
keys Down Enter
ok "wide characters have two columns" until_shown '^ *7003 alice .* 日本語 train.py --layers 32$'
keys '?'
until_shown '^k  *end the selected process'
ok "and are whole again after another page" eval 'keys q; until_shown "^ *7003 alice .* 日本語 train.py --layers 32$"'
terminal 80 24
types "NO_COLOR=1 '$assay' top --replay '$rec'"
until_shown '^3 nodes'
ok "NO_COLOR is honoured" eval '! coloured | grep -q "38;5;"'
if command -v tic > /dev/null; then # a type with direct colours, which ncurses-term has
	cat > direct.ti << 'TYPE'
xterm-direct|xterm with direct colours,
	RGB, colors#0x1000000, pairs#0x7FFF, use=xterm-256color,
	setaf=\E[%?%p1%{8}%<%t3%p1%d%e38\:2\:\:%p1%{65536}%/%d\:%p1%{256}%/%{255}%&%d\:%p1%{255}%&%d%;m,
	setab=\E[%?%p1%{8}%<%t4%p1%d%e48\:2\:\:%p1%{65536}%/%d\:%p1%{256}%/%{255}%&%d\:%p1%{255}%&%d%;m,
TYPE
	tic -x -o "$tmp/types" direct.ti
	terminal 80 24
	types "TERMINFO='$tmp/types' COLORTERM=truecolor TERM=xterm-256color '$assay' top --replay '$rec' --theme contrast"
	until_shown '^3 nodes'
	ok "a terminal with direct colours gets them" eval 'coloured | grep -q "38;2;255;255;255"'
fi
terminal 80 24
types "TERM=vt100 '$assay' top --replay '$rec' --at 20s"
ok "a terminal without colours gets attributes" eval 'until_shown "^3 nodes" && coloured | grep -q "$(printf "\033\[1m")" && ! coloured | grep -q "\[3[0-7]m"'
terminal 80 24
types "LC_ALL=C '$assay' top --replay '$rec' --at 20s"
until_shown '^3 nodes'
keys Down Enter
until_shown '^gpu1'
rm -f out err
ok "a terminal without UTF-8 gets ASCII" eval '! LC_ALL=C grep -q "[^ -~]" seen && grep -q "#" seen'
terminal 80 24
types "TERM=dumb '$assay' top --replay '$rec' --count 1"
ok "a dumb terminal gets lines" until_shown 'gpu1: 8 GPUs'
terminal 160 24
types "TERM=no-such-terminal '$assay' top --replay '$rec'"
ok "an unknown terminal is told, and what works" until_shown 'TERM=no-such-terminal is not known here; assay top --once needs no screen'
cp "$assay" lonely
types "'$tmp/lonely' top --replay '$rec'"
ok "without the module the reason is told" until_shown 'cannot load the module libassay-screen.so'

# ---- this machine, with fake GPUs ----
export ASSAY_LIB_NVML="$nvml" TOP_TEST="$tmp"
readers() { pgrep -f 'assay __watch' | while read -r p; do tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null | grep -qx "TOP_TEST=$tmp" && echo "$p"; done; }
none_left() {
	for _ in $(seq 200); do [ -n "$(readers)" ] || return 0; sleep 0.1; done
	return 1
}
sleep 600 &
sleeper=$!
sed "s/\"compute_processes\": \[0, \[\]\]/\"compute_processes\": [0, [{\"pid\": $sleeper, \"memory\": 1073741824}]]/" "$root/tests/fake/h100x4.json" > gpus.json
export FAKE_NVML_FILE="$tmp/gpus.json"
ok "once shows this machine" expect 0 top --once
ok "its GPUs" [ "$(grep -c '^[0-3]  .*%' out)" = 4 ]
ok "its host" says '^CPU .* of [0-9]* .*memory .*load' out
ok "the process on them" says "^ *$sleeper .*0,1,2,3 .*4.00G .*sleep 600" out
ok "nothing is left running" none_left
ok "GPUs alone are read if asked" expect 0 top --once --gpus-only
ok "all of them" [ "$(grep -c '^[0-3]  .*%' out)" = 4 ]
ok "with the process on them" says "^ *$sleeper .*0,1,2,3 .*4.00G .*sleep 600" out
ok "without the host" sh -c '! grep -q "^CPU\|^net" out'
ok "no other source is named" sh -c '"$0" top --once --gpus-only --json | grep -o "\"source\":\"[a-z]*\"" | sort -u > sources; [ "$(cat sources)" = "\"source\":\"gpu\"" ]' "$assay"
ok "not in a recording" expect 64 top --replay "$rec" --once --gpus-only
expect 0 top --once --pid 1
ok "--pid shows that process alone" says 'process 1 alone (--pid): it uses no GPU' out
ok "JSON has the catalogue's names" expect 0 top --once --json
ok "of every scope here" sh -c 'for s in gpu nvlink process cpu node; do grep -q "\"scope\":\"$s\"" out || exit 1; done'
ok "a recording is written" expect 0 top --record mine.rec --count 3 --interval 200ms
ok "and shows again" expect 0 top --replay mine.rec --once --at 1h
ok "with the same GPUs" [ "$(grep -c '^[0-3]  .*%' out)" = 4 ]
ok "a file that exists is not overwritten" expect 64 top --record mine.rec --count 1
ok "which is told" says 'mine.rec' err
ok "a disk that is full is told" sh -c 'ulimit -f 1; ! "$0" top --record full.rec --count 40 --interval 100ms > out 2> err' "$assay"
ok "with the file" says 'cannot write the recording full.rec' err
ok "without a driver the host is shown" env ASSAY_LIB_NVML=/nowhere "$assay" top --once
env ASSAY_LIB_NVML=/nowhere "$assay" top --once > out
ok "and the reason" says '^gpu: library nvml' out
if ! /sbin/ldconfig -p | grep -q libnvidia-ml; then
	env -u ASSAY_LIB_NVML -u LD_LIBRARY_PATH "$assay" top --once > out
	ok "a machine that has no driver at all gets a short reason" says '^gpu: no NVIDIA driver: libnvidia-ml.so.1 was not found$' out
fi
FAKE_NVML_LOST=2 FAKE_NVML_AFTER=1 "$assay" top --count 60 --interval 200ms > out 2> err
ok "a GPU that is lost is counted" says '4 GPUs, 1 lost, .*GPU 2 is lost' out
FAKE_NVML_HANG=utilization FAKE_NVML_AFTER=1 "$assay" top --count 36 --interval 250ms > out 2> err
ok "a driver that hangs leaves values with their age" says 'GPU 0: values [4-9] s old' out
ok "and the host goes on" sh -c 'tail -n 1 out | grep -q "CPU [0-9]"'

terminal 120 30
types "stty -g > before; '$assay' top --interval 200ms"
ok "the screen shows this machine's GPUs" until_shown '^3  .*%'
ok "its processes" until_shown "^ *$sleeper .*sleep 600"
rm -f out err
ok "ending one asks first" eval 'keys Tab k; until_shown "end process $sleeper of .* with TERM? y/n  (sleep 600)"'
ok "no is no" eval 'keys n; until_gone "with TERM?" && kill -0 $sleeper'
ok "yes ends it" eval 'keys k; until_shown "with TERM?"; keys y; until_shown "TERM was sent"; wait $sleeper; [ $? = 143 ]'
# shellcheck disable=SC2046
kill -KILL $(readers)
ok "readers that are killed are told" until_shown 'the reader of this machine ended with signal 9'
ok "the last values stay, with their age" until_shown '^3  .* s old'
ok "keys still work" eval 'keys "?"; until_shown "^k  *end the selected" && keys q'
ok "new readers take over" until_gone 'the reader of this machine ended'
ok "quitting ends the readers" eval 'keys q; until_shown "^ready>"; none_left'
types "stty -g > after; cmp before after && echo same \"as\" before"
ok "and gives the terminal back" until_shown 'same as before'
finish
