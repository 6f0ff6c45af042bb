#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The seeds of a fuzz target are one archive, corpus/NAME.tar.zst.
# usage: seeds.sh with ARCHIVE COMMAND [WORD...]   unpacks the seeds and runs COMMAND with their folder as its last word
#        seeds.sh add ARCHIVE FILE...              adds files to the archive, or makes it
set -eu
command -v zstd > /dev/null || { echo "zstd is not installed"; exit 77; }
what=$1 archive=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ ! -f "$archive" ] || zstd -q -d -c "$archive" | tar -xf - -C "$folder"
case $what in
	with) "$@" "$folder" ;;
	add)
		cp "$@" "$folder/"
		tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -C "$folder" -cf - $(cd "$folder" && ls) | zstd -q --ultra -22 -f -o "$archive"
		;;
	*) sed -n '4,5s/^# //p' "$0" && exit 64 ;;
esac
