#!/bin/sh
# assay demo start, attach and kill: without tmux, and with a real one where it is installed. A stand-in of assay does the training.
# usage: demo_tmux.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # the CPU, where there is a GPU too
HERE=$PWD ASSAY=$assay
export HERE ASSAY
cat > stand << 'END'
#!/bin/sh
[ "$1" = train ] || exec "$ASSAY" "$@"
trap "exit 2" TERM
printf "step 3/8 loss 2.5\n" >&2
echo > "$HERE/begun"
while :; do sleep 0.05; done
END
chmod +x stand
wait_for() { for _ in $(seq 600); do [ -e "$1" ] && return 0; sleep 0.05; done; return 1; }

# -- without tmux --
mkdir bare
for program in sh env; do ln -s "$(command -v $program)" bare/; done
ok "without tmux, start runs the tour here" eval 'PATH=$PWD/bare expect 0 demo start quick --steps machine --out here && says "^ *1 machine  *passed" out'
ok "and says so" says "tmux is not installed, so the tour runs in this terminal" err
ok "attach has nothing to attach to" eval 'PATH=$PWD/bare expect 2 demo attach && says "tmux is not installed" err'
ok "kill has nothing to end" eval 'PATH=$PWD/bare expect 2 demo kill && says "tmux is not installed" err'

# -- with tmux --
if command -v tmux > /dev/null 2>&1; then
	TMUX_TMPDIR=$PWD/t
	export TMUX_TMPDIR
	unset TMUX
	mkdir t
	trap 'tmux -L assay-demo kill-server > /dev/null 2>&1; rm -rf "$tmp"' EXIT
	pane() { tmux -L assay-demo capture-pane -p -J -t "demo:0.$1"; }
	shows() { for _ in $(seq 600); do pane "$1" 2> /dev/null | grep -q -- "$2" && return 0; sleep 0.05; done; pane "$1"; return 1; }
	ok "no demo runs yet" eval 'expect 2 demo attach && says "no demo runs in tmux" err'
	ok "start makes a session" eval 'ASSAY_TEST_STAGES=$PWD/stand expect 0 demo start quick --steps train --train-steps 3 --out "$PWD/a b" --detach'
	ok "with four panes" [ "$(tmux -L assay-demo list-panes -t demo | wc -l)" = 4 ]
	ok "the tour runs in one" eval 'shows 1 "Teach the model three sentences" && wait_for begun'
	ok "with the given options, also a folder with a space" shows 1 "assay train 'a b/learn.json'\|a b/learn.json"
	ok "the machine is in another" shows 0 "assay\|GPU"
	ok "messages are in the third" shows 2 "train: step 3/8 loss 2.5"
	ok "the loss is in the fourth" shows 3 "loss 2.5"
	ok "a second start is refused" eval 'expect 2 demo start quick && says "a demo is running" err'
	ok "and leaves no folder" [ ! -e assay-runs ]
	ok "attach needs a terminal" eval '"$assay" demo attach < /dev/null > out 2> err; [ $? = 2 ] && says "needs a terminal" err'
	ok "kill ends it" expect 0 demo kill
	ok "what was done stays readable" wait_for "a b/demo.html"
	ok "nothing of it is left" eval 'expect 2 demo kill && says "no demo runs" err'
	if script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
		# a terminal: start shows the panes at once
		script -qec '"$ASSAY" demo start quick --steps machine --out shown' /dev/null > typed 2>&1 < /dev/null &
		attached() { for _ in $(seq 600); do tmux -L assay-demo list-clients 2> /dev/null | grep -q . && return 0; sleep 0.05; done; return 1; }
		ok "on a terminal, start shows the panes" attached
		ok "which kill takes away" expect 0 demo kill
		wait
	fi
else
	ok "a session # SKIP tmux is not installed" [ "${ASSAY_TEST_DAEMONS:-no}" != yes ]
fi
finish
