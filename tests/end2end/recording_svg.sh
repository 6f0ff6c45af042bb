#!/bin/sh
# The picture of README follows from its recording, byte for byte; and recordings with every kind of line, cut ones, and none.
# usage: recording_svg.sh PROGRAM ROOT
set -u
program=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
images=$root/docs/images
picture() { # CODE ARGS..
	want=$1
	shift
	"$program" "$@" > out 2> err
	[ $? = "$want" ]
}
ok "the recording of README gives its picture" eval 'picture 0 "$images/demo.typescript" "$images/demo.timing" 4 && cmp out "$images/demo.svg"'
ok "which is below 200 KB" [ "$(wc -c < "$images/demo.svg")" -lt 200000 ]
ok "and has neither script nor font nor address" sh -c '! grep -qE "<script|@font-face|href=|@import|url\(" "$0"' "$images/demo.svg"
ok "the recording names no path of the machine" sh -c '! grep -qE "(^|[ =\"])/(home|root|tmp|work|usr)" "$0"' "$images/demo.typescript"

# -- lines of every kind --
printf 'Script started on a day\none <b> & "two"\r\n\033[1mbold\033[0m plain\r\n10 %%\r\033[K\033[1;32mdone\033[0m\r\n' > rec
bytes=$(($(wc -c < rec) - 24))
split() { # DELAY BYTES, DELAY BYTES ..
	printf '%s %s\n' "$@" > time
}
split 0.5 18 1 24 1 6 1 $((bytes - 48))
ok "a recording is played" picture 0 rec time
ok "letters that mean something in SVG are escaped" says 'one &lt;b&gt; &amp; &quot;two&quot;' out
ok "colours are classes" says '<tspan class="b">bold</tspan> plain' out
ok "a line that was drawn over has both versions" eval 'says ">10 %</text>" out && says "<tspan class=\"g\">done" out'
ok "and the first one ends" says 'opacity:1}[0-9.]*%{opacity:0}' out
ok "a long pause is cut" eval 'cp out long && split 0.5 18 1 24 1 6 900 $((bytes - 48)) && picture 0 rec time && cmp out long'
i=0
while [ $i -lt 60 ]; do printf 'line %s\r\n' $i; i=$((i + 1)); done > rec
split 1 "$(wc -c < rec)"
ok "more lines than rows scroll" eval 'picture 0 rec time && says "translateY(-558px)" out'
i=0
while [ $i -lt 250 ]; do printf x; i=$((i + 1)); done > rec
split 1 250
ok "a line that is too long goes on in the next one" eval 'picture 0 rec time && [ "$(grep -o "<text" out | wc -l)" = 3 ]'
printf 'cut \033[' > rec
split 1 6
ok "a sequence that is cut is left out" eval 'picture 0 rec time && says ">cut</text>" out'

# -- what is refused --
split 1 7
ok "a timing with too many bytes" eval 'picture 2 rec time && says "more bytes" err'
echo words > time
ok "a timing that is none" eval 'picture 2 rec time && says "a line that is none: words" err'
ok "a recording that does not exist" eval 'picture 2 nowhere time && says "nowhere" err'
ok "a speed of 0" picture 2 rec time 0
ok "no words" picture 2
finish
