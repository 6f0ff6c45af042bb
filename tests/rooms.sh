#!/bin/sh
# Every include of src/ against the table in src/rooms; every list against its folder. usage: rooms.sh ROOT
set -eu
cd "$1"
fail=0
includes=$(mktemp) || exit 1
trap 'rm -f "$includes"' EXIT
say() { echo "$*"; fail=1; }
allowed() { sed -n "s/^$1: *//p" src/rooms; }
twice=$(sed -n 's/^\([a-z]*\):.*/\1/p' src/rooms | sort | uniq -d)
[ -z "$twice" ] || say "src/rooms names twice: $twice"
for room in $(sed -n 's/^\([a-z]*\):.*/\1/p' src/rooms); do
	[ "$room" = main ] || [ -d "src/$room" ] || say "src/rooms names $room, which is no folder"
done
for dir in src/*/; do
	room=$(basename "$dir")
	grep -q "^$room:" src/rooms || { say "src/$room is not in src/rooms"; continue; }
	may=$(allowed "$room")
	[ "$may" = '*' ] && continue
	grep -rnE '^[ \t]*#[ \t]*include[ \t]*"' "$dir" --include='*.c' --include='*.h' --include='*.cu' --include='*.cuh' |
		sed -E 's/^([^:]+):([0-9]+):.*"([^"]+)".*/\1 \2 \3/' > "$includes"
	while read -r file line inc; do
		target=${inc%%/*}
		[ "$target" = "$inc" ] && { say "$file:$line: include \"$inc\" is not written from src/"; continue; }
		[ "$target" = "$room" ] && continue
		case " $may " in *" $target "*) ;; *) say "$file:$line: $room may not include $target ($inc)" ;; esac
	done < "$includes"
	[ -n "$(find "$dir" -type f ! -name meson.build | head -1)" ] || say "src/$room is an empty room"
done
# probe/list.h against the files, both ways
listed=$(grep -oE '^[[:space:]]*X\([a-z0-9_]+\)' src/probe/list.h | sed 's/.*(\(.*\))/\1/')
for p in $listed; do
	[ -f "src/probe/$p.c" ] || [ -f "src/probe/$p/$p.c" ] || say "src/probe/list.h names $p, which has no file"
done
for f in $(grep -rlE '^const struct probe probe_' src/probe --include='*.c'); do
	name=$(sed -nE 's/^const struct probe probe_([a-z0-9_]+).*/\1/p' "$f")
	echo "$listed" | grep -qx "$name" || say "$f defines probe_$name, which src/probe/list.h lacks"
done
for f in $(grep -rlE '^const struct command command_' src/cmd --include='*.c'); do
	name=$(sed -nE 's/^const struct command command_([a-z0-9_]+).*/\1/p' "$f")
	grep -qE "X\($name\)" src/cmd/list.h || say "$f defines command_$name, which src/cmd/list.h lacks"
done
[ "$fail" = 0 ] && echo "rooms: every include within the table"
exit "$fail"
