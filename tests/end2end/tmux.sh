# A terminal for the scripts beside it, which take it in with `.` after tap.sh and scratch: tmux with a server of the test's own.
command -v tmux > /dev/null || lacks "tmux is not installed (package tmux)"
LC_ALL=C.UTF-8
export LC_ALL
unset TMUX NO_COLOR COLORTERM
terminals=0 # each has a server of its own: one that ends may still hold its socket
term() { tmux -S "$tmp/tmux.$terminals" -f /dev/null "$@"; }
# What still runs in it is killed first: under ASan, a program that a hangup ends looks for leaks, and may wait without end for a thread that the next
# hangup has ended.
close_terminal() {
	shell=$(term display-message -p '#{pane_pid}' 2> /dev/null) && [ -n "$shell" ] && pkill -KILL -s "$shell"
	term kill-server 2> /dev/null
}
trap 'close_terminal; rm -rf "$tmp"' EXIT
# terminal COLUMNS ROWS: a new terminal with a shell, in place of the one before
terminal() {
	close_terminal
	terminals=$((terminals + 1))
	term new-session -d -x "$1" -y "$2" "PS1='ready> ' ENV= exec sh -i" && until_shown 'ready>' && return
	echo "Bail out! tmux does not start a terminal"
	exit 1
}
shown() { term capture-pane -p; } # the screen as text
coloured() { term capture-pane -e -p; }
keys() { term send-keys "$@"; }
types() { term send-keys -l "$1" && term send-keys Enter; }
# until_shown PATTERN: true once the screen has a line with it, within 20 s; the screen is then in seen
until_shown() {
	for _ in $(seq 200); do
		shown > seen || return 1
		if grep -q -- "$1" seen; then return 0; fi
		sleep 0.1
	done
	cp seen out # what failed shows the screen
	return 1
}
# until_gone PATTERN: true once no line of the screen has it
until_gone() {
	for _ in $(seq 200); do
		shown > seen || return 1
		if ! grep -q -- "$1" seen; then return 0; fi
		sleep 0.1
	done
	cp seen out # what failed shows the screen
	return 1
}
resize() { term resize-window -x "$1" -y "$2"; }
# No line of the screen in seen is wider than COLUMNS.
fits() { [ "$(wc -L < seen)" -le "$1" ]; }
