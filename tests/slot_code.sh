#!/bin/sh
# No kernel gives a slot of shared memory back while its loads from there are still on their way to registers: nothing but a
# wait for their results orders them before the copy engine, which fills the slot again. Of each arrival at a barrier: which
# loads nothing has waited for, by the scoreboards that the instructions' own control bits name.
# usage: slot_code.sh FATBIN..
set -u
tool=
for name in cuobjdump /usr/local/cuda/bin/cuobjdump; do
	if command -v $name > /dev/null 2>&1; then tool=$name; fi
done
[ -n "$tool" ] || { echo "cuobjdump is not here"; exit 77; }

# Two lines an instruction: its words from below, of which the upper one holds the scoreboard that a load sets (bits 46 to 48; 7: none)
# and those that are waited for (52 to 57).
early() {
	awk '
		function digit(word, bit) { return index("0123456789abcdef", substr(word, 16 - int(bit / 4), 1)) - 1 }
		/Function : / { name = $3; split("", open) }
		/^[ \t]*\/\*[0-9a-f]+\*\/ .*;/ {
			text = $0; sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, "", text); sub(/;.*/, "", text); sub(/^@!?U?P[0-9T]+[ \t]+/, "", text)
			getline; match($0, /0x[0-9a-f]+/); word = substr($0, RSTART + 2, 16)
			sets = int(digit(word, 46) / 4) + 4 * (digit(word, 48) % 2)
			waits = digit(word, 52) + 16 * (digit(word, 56) % 4)
			for (board in open) if (int(waits / 2 ^ board) % 2) delete open[board]
			if (text ~ /^SYNCS.*ARRIVE/) { arrivals++; for (board in open) { print name ": " text ", behind " open[board]; found = 1; break } }
			if (text ~ /^LDSM?\./ || text ~ /^LDS /) { loads++; if (sets < 7) open[sets] = text }
		}
		END { print "# " arrivals + 0 " arrivals, " loads + 0 " loads"; exit found }'
}

# A load that sets scoreboard 2, then an arrival that waits for none: it must be seen; and one that waits for it passes.
planted() { # THE ARRIVAL'S UPPER WORD
	printf '\t\tFunction : planted\n /*0850*/ LDSM.16.M88.4 R132, [R8+0x20000] ; /* 0x020000000884783b */\n /* 0x000ea20000000200 */\n'
	printf ' /*0930*/ @!P1 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR9+0x28490], RZ ; /* 0x028490ffffff99a7 */\n /* 0x%s */\n' "$1"
}
planted 000fe20008100009 | early > /dev/null && { echo "an early arrival is not seen"; exit 1; }
planted 004fe20008100009 | early > /dev/null || { echo "an arrival that waited is taken for an early one"; exit 1; }

code=$(mktemp) || exit 1
trap 'rm -f "$code"' EXIT
bad=0
for file; do
	"$tool" -sass "$file" > "$code" 2> /dev/null || { echo "$file: cuobjdump cannot read it"; exit 1; }
	grep -q SYNCS "$code" || { echo "$file: no barrier in it"; exit 1; }
	early < "$code" || { bad=1; echo "$file: a slot is given back too early"; }
done
exit $bad
