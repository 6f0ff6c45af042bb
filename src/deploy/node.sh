# SPDX-License-Identifier: Apache-2.0
# The part of `assay deploy` that runs on a node (docs/explanation/design/deploy.md). A POSIX shell reads it.
# usage: sh node.sh STEP ROOT RUN [WORD...]
#   look                          machine, free space, files that are here, what arrived of a copy, state of the run
#   receive SIZE SHA256 HEADER    the rest of a copy on stdin, SIZE bytes in all; unpacks it and starts the run
#   follow OUT ERR                state and new bytes of out and err, from these offsets on, until the run has ended
#   fetch                         all files of the run, but those of "SHA256 NAME" lines on stdin
#   stop                          ends the run
#   clean KEEP                    removes the run's folder; with "no" also the bundle, if no other run is here
# Each answer is one line of words. "file" and "bytes" are followed by as many bytes as they say.
set -u
umask 077
LC_ALL=C
export LC_ALL

say() { printf '%s\n' "$*"; }
fail() { # WORD TEXT
	say "fail $*"
	say end
	exit 1
}
sum_of() {
	sum=$(sha256sum < "$1") && sum=${sum%% *}
}
size_of() {
	size=$(wc -c < "$1") && size=$((size))
}
# Start time of process $1 in clock ticks after the boot; not set if there is no such process.
started_at() {
	started=
	read -r stat 2> /dev/null < "/proc/$1/stat" || return 1
	# shellcheck disable=SC2086 # the words of a line
	set -- ${stat##*) }
	[ $# -ge 20 ] || return 1
	shift 19
	started=$1
}
same_process() { # PID START
	started_at "$1" && [ "$started" = "$2" ]
}
# True while the supervisor or its program lives. Process ids are used again, so start time and boot are compared.
alive() {
	boot=$(cat /proc/sys/kernel/random/boot_id 2> /dev/null)
	while read -r pid start of_boot; do
		[ "$of_boot" != "$boot" ] || ! same_process "$pid" "$start" || return 0
	done 2> /dev/null < "$here/pid"
	return 1
}
# One of: none, running, ended CODE, gone.
run_state() {
	state=none
	[ -s "$here/exit" ] || return 0
	read -r word code < "$here/exit"
	[ "$word" = ended ] || {
		state=running
		alive && return
		state=gone # unless it ended between the two looks
		read -r word code < "$here/exit"
	}
	[ "$word" != ended ] || state="ended ${code%% *}"
}

look() {
	say "arch $(uname -m)"
	for tool in cat chmod dd df head kill ln mkdir mv rm rmdir sha256sum sleep tail uname wc; do
		command -v "$tool" > /dev/null 2>&1 || say "lacks $tool"
	done
	# shellcheck disable=SC2046 # the words of the last line
	set -- $(df -Pk "$root" 2> /dev/null | tail -n 1)
	[ $# -lt 4 ] || say "free $4"
	run_state
	say "run $state"
	[ ! -f "$here/incoming" ] || {
		size_of "$here/incoming"
		say "part $size"
	}
	for file in "$root"/files/*; do
		[ -f "$file" ] || continue
		sum_of "$file" || continue
		if [ "$sum" = "${file##*/}" ]; then say "have $sum"; else rm -f "$file"; fi # a damaged file
	done
	say end
}

# One file of the copy: its bytes begin at a block of 4096.
unpack_file() { # SHA256 BLOCK SIZE
	new=$root/files/.$1.$run
	dd if="$here/incoming" bs=4096 skip="$2" count=$((($3 + 4095) / 4096)) 2> /dev/null | head -c "$3" > "$new" &&
		sum_of "$new" && [ "$sum" = "$1" ] && mv -f "$new" "$root/files/$1" && return
	rm -f "$new"
	fail unpack "cannot write $root/files/$1"
}
# One name of the run's tree. The run may write to what is below work/, so that is a copy.
unpack_name() { # MODE SHA256 NAME
	to=$here/$3
	mkdir -p "${to%/*}" || fail unpack "cannot make ${to%/*}"
	rm -f "$to"
	case $3 in
	work/* | command) cat "$root/files/$2" > "$to" ;;
	*) ln "$root/files/$2" "$to" 2> /dev/null || cat "$root/files/$2" > "$to" ;;
	esac || fail missing "$3 cannot be made from $root/files/$2"
	chmod "$1" "$to" || fail unpack "cannot set the mode of $to"
}
unpack() { # BLOCKS-OF-HEADER
	mkdir -p "$root/files" "$here/work" || fail unpack "cannot make $root/files"
	dd if="$here/incoming" bs=4096 count="$1" 2> /dev/null > "$here/list" || fail unpack "cannot write $here/list"
	whole=no
	while read -r kind a b c; do
		case $kind in
		file) unpack_file "$a" "$b" "$c" ;;
		name) unpack_name "$a" "$b" "$c" ;;
		whole) whole=yes && break ;;
		esac
	done < "$here/list"
	[ $whole = yes ] || fail unpack "$here/list is cut"
	rm -f "$here/incoming" "$here/list"
}
receive() { # SIZE SHA256 HEADER
	run_state
	[ "$state" = none ] || { # an earlier connection broke after the start
		say "run $state"
		say end
		return
	}
	mkdir -p "$here" && cat >> "$here/incoming" || {
		rm -f "$here/incoming"
		fail write "cannot write $here/incoming"
	}
	size_of "$here/incoming"
	say "part $size"
	[ "$size" -ge "$1" ] || {
		say end
		return
	}
	sum_of "$here/incoming"
	[ "$size" = "$1" ] && [ "$sum" = "$2" ] || {
		rm -f "$here/incoming"
		fail damaged "the copy arrived with another checksum"
	}
	unpack "$3"
	told=$("$here/bundle/assay" --version 2>&1) || fail program "$(say "$told" | head -n 1)"
	start
	run_state
	say "run $state"
	say end
}

start() {
	rm -f "$here/pid"
	# Its place is written now, so that the exit code can be written to a full disk.
	printf '%-24s\n' running > "$here/exit" && : > "$here/out" && : > "$here/err" || {
		rm -f "$here/exit"
		fail write "cannot write $here/exit"
	}
	if command -v setsid > /dev/null 2>&1; then
		setsid sh "$here/node.sh" supervise "$root" "$run" < /dev/null > /dev/null 2>&1 &
	else
		sh "$here/node.sh" supervise "$root" "$run" < /dev/null > /dev/null 2>&1 &
	fi
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ ! -s "$here/pid" ] || return 0
		sleep 1
	done
	rm -f "$here/exit"
	fail start "the run did not start within ten seconds"
}
# Runs without a connection, until the program has ended.
supervise() {
	trap '' HUP
	boot=$(cat /proc/sys/kernel/random/boot_id 2> /dev/null)
	cd "$here/work" || exit 1
	sh "$here/command" < /dev/null >> "$here/out" 2>> "$here/err" &
	child=$!
	trap 'kill -TERM "$child" 2> /dev/null' TERM INT
	started_at "$child"
	of_child="$child $started $boot"
	started_at $$
	say "$$ $started $boot
$of_child" > "$here/pid.new" && mv "$here/pid.new" "$here/pid"
	wait "$child"
	code=$?
	while kill -0 "$child" 2> /dev/null; do # the wait ended because of a signal
		wait "$child"
		code=$?
	done
	printf '%-24s\n' "ended $code" 1<> "$here/exit"
}

new_bytes() { # NAME OFFSET: says them; sets $offset
	offset=$2
	size_of "$here/$1"
	n=$((size - offset))
	[ $n -gt 0 ] || return 0
	[ $n -le 65536 ] || n=65536
	say "bytes $1 $n"
	tail -c "+$((offset + 1))" "$here/$1" | head -c $n
	offset=$((offset + n))
}
follow() { # OUT ERR
	out=$1 err=$2
	while :; do
		run_state
		before="$out $err"
		new_bytes out "$out" && out=$offset
		new_bytes err "$err" && err=$offset
		if [ "$before" = "$out $err" ]; then
			say "run $state"
			[ "$state" = running ] || break
			sleep 1
		fi
	done
	say end
}

one_file() { # NAME, from the run's folder on
	case $1 in *[!A-Za-z0-9._@:+=,/-]*) say skip && return ;; esac
	sum_of "$1" && size_of "$1" || return
	case $have in
	*"
$sum $1
"*) say "same $1" ;;
	*)
		say "file $size $sum $1"
		head -c "$size" < "$1"
		;;
	esac
}
walk() { # FOLDER: no links
	for entry in "$1"/* "$1"/.[!.]*; do
		if [ -L "$entry" ]; then
			say skip
		elif [ -d "$entry" ]; then
			walk "$entry"
		elif [ -f "$entry" ]; then
			one_file "$entry"
		fi
	done
}
fetch() {
	run_state
	case $state in running | none) fail state "the run is $state" ;; esac
	have="
$(cat)
"
	cd "$here" || fail state "there is no folder $here"
	one_file out
	one_file err
	walk work
	say end
}

stop() {
	while read -r pid start of_boot; do
		! same_process "$pid" "$start" || kill -TERM "$pid"
		break # the supervisor passes the signal on
	done 2> /dev/null < "$here/pid"
	run_state
	say "run $state"
	say end
}
# The text runs from memory, because the file is among what is removed.
clean() { # KEEP
	run_state
	[ "$state" != running ] || fail state "the run is running"
	exec sh -c "$(cat "$here/node.sh")" sh cleaning "$root" "$run" "$1"
}
cleaning() {
	cd "$root" || fail state "there is no folder $root"
	rm -rf "runs/$run" || fail write "cannot remove $here"
	if [ "$1" = no ] && rmdir runs 2> /dev/null; then
		rm -rf files
		cd / && rmdir "$root" 2> /dev/null
	fi
	say cleaned
	say end
}

main() {
	step=$1 root=$2 run=$3
	here=$root/runs/$run
	shift 3
	say begin
	case $step in
	look | receive | follow | fetch | stop | clean | cleaning) "$step" "$@" ;;
	*) fail step "$step is unknown" ;;
	esac
}
# The whole text has arrived if this line has.
if [ "$1" = supervise ]; then
	root=$2 run=$3
	here=$root/runs/$run
	supervise
else
	main "$@"
fi
