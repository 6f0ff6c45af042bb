#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The seeds of a fuzz target are one archive, corpus/NAME.tar.zst.
# usage: seeds.sh with ARCHIVE COMMAND [WORD...]   unpacks the seeds and runs COMMAND with their folder as its last word
#        seeds.sh fuzz ARCHIVE COMMAND [WORD...]   the same with a program of libFuzzer, whose inputs must differ in what they run
#        seeds.sh add ARCHIVE FILE...              adds files to the archive, or makes it
set -eu
command -v zstd > /dev/null || { echo "zstd is not installed"; exit 77; }
what=$1 archive=$2
shift 2
folder=$(mktemp -d)
said=$folder.said
trap 'rm -rf "$folder" "$said"' EXIT
[ ! -f "$archive" ] || zstd -q -d -c "$archive" | tar -xf - -C "$folder"
# A target that returns early for every input is no test. libFuzzer keeps an input only if it runs something that the inputs before it
# do not run. Such a target keeps one, or two where it leaves out inputs by their size. libFuzzer ends with 77 at a crash, which
# Meson takes for a skip.
corpus_least=4
fuzz() {
	code=0
	"$@" -error_exitcode=1 "$folder" > "$said" 2>&1 || code=$?
	cat "$said" >&2
	[ $code = 0 ] || return $code
	kept=$(sed -n 's/.* corp: \([0-9]*\).*/\1/p' "$said" | tail -n 1)
	[ "${kept:-0}" -ge $corpus_least ] || { echo "${1##*/} does nothing: it does the same with all its inputs, but ${kept:-0}" >&2 && return 1; }
}
case $what in
	with) "$@" "$folder" ;;
	fuzz) fuzz "$@" ;;
	add)
		cp "$@" "$folder/"
		tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -C "$folder" -cf - $(cd "$folder" && ls) | zstd -q --ultra -22 -f -o "$archive"
		;;
	*) sed -n '4,6s/^# //p' "$0" && exit 64 ;;
esac
