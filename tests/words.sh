#!/bin/sh
# Checks the language of pages, help and messages: no sentence of more than 35 words, and none that opens with a relative clause or with
# "Of" in place of its subject ("What is kept is ..", "Who waits ..", "Where a file ..", "Of two runs ..").
# Pages are README.md and docs/**/*.md; the pages of docs/reference are help and tables as the program prints them. Messages are the
# string literals of src/. Code, formulas and words in backquotes count as one word.
# usage: words.sh ROOT [FILE...]     with files: these alone
set -eu
cd "$1"
shift
# template_*.c quote the prompts of model families word for word.
[ $# -gt 0 ] || set -- README.md $(find docs -name '*.md' | LC_ALL=C sort) $(find src -name '*.[ch]' ! -name 'template_*' | LC_ALL=C sort)
awk -v most=35 '
function judge(s, where,    plain, words, n, i, count, head) {
	plain = s
	gsub(/`[^`]*`/, "code", plain)
	gsub(/[A-Za-z0-9\/.]*_[A-Za-z0-9_.:]*/, "", plain) # names of tests, files and fields
	gsub(/\]\([^)]*\)/, "", plain)
	gsub(/%[-+ #0-9.*]*(ll|l|z|h|hh|j)?[a-zA-Z]/, "value", plain)
	gsub(/[^A-Za-z0-9 '"'"'-]/, " ", plain)
	if (s ~ /[{]s:|<\/|<div|<section/) return # a form for JSON, or markup
	n = split(plain, words, /[ \t]+/)
	count = 0
	for (i = 1; i <= n; i++) if (words[i] ~ /^[A-Za-z]/) count++
	if (count < 5) return
	head = s
	gsub(/^[*_"( \t]+/, "", head)
	if (count > most) report(where, count " words", s)
	else if (count > 8 && s !~ /^ *\*\*/ && head ~ /^(Of|What (is|are|was|has|it|they|a|the|comes|came)|Who|Whose|Whoever|Where (a|an|the|no|it|one|both|nothing)) / && s !~ /\?$/)
		report(where, "opens without its subject", s)
}
function report(where, why, s) { printf "%s: %s: %.110s\n", where, why, s; bad++ }
function flush() { if (buffer != "") { sentences(buffer, start); buffer = "" } }
# A line of a literal ends a sentence, and so does an item of "name: text; name: text".
function sentences(text, where,    n, i, lines) {
	gsub(/[ \t]+/, " ", text)
	gsub(/; ([a-zA-Z-]+: |[0-9]+ )/, "\001&", text)
	n = split(text, lines, /\001/)
	for (i = 1; i <= n; i++) split_line(lines[i], where)
}
function split_line(text, where,    at) {
	gsub(/e\.g\./, "eg", text)
	gsub(/i\.e\./, "ie", text)
	while (match(text, /[A-Za-z0-9)`"%*'"'"'][.!?]["*)]* +[A-Za-z0-9`"(*|-]/)) {
		at = RSTART + 1
		judge(substr(text, 1, at), where)
		text = substr(text, at + 2)
	}
	judge(text, where)
}
FNR == 1 { flush(); fence = 0; pending = "" }
FILENAME ~ /\.md$/ {
	where = FILENAME ":" FNR
	if ($0 ~ /^ *(```|~~~)/) { flush(); fence = !fence; next }
	if (fence || $0 ~ /^    / || $0 ~ /^ *</ || $0 ~ /^!\[/) { flush(); next }
	if ($0 ~ /^ *$/) { flush(); next }
	if ($0 ~ /^ *\|/) {
		flush()
		line = $0
		gsub(/`[^`]*`/, "code", line) # a bar may stand in code
		n = split(line, cells, "|")
		for (i = 1; i <= n; i++) sentences(cells[i], where)
		next
	}
	if ($0 ~ /^ *(#|[-*+] |[0-9]+[.] |>)/) flush()
	line = $0
	sub(/^ *(#+|[-*+]|[0-9]+[.]|>) +/, "", line)
	if (buffer == "") start = where
	buffer = buffer " " line
	if ($0 ~ /^ *#/) flush()
	next
}
{ # C: literals that follow each other are one text
	line = $0
	if (line ~ /^[ \t]*#[ \t]*include/ || line ~ /^[ \t]*(\/\*|\*)/) next
	while (match(line, /"([^"\\]|\\.)*"/)) {
		before = substr(line, 1, RSTART - 1)
		text = substr(line, RSTART + 1, RLENGTH - 2)
		line = substr(line, RSTART + RLENGTH)
		if (before !~ /^[ \t]*$/ || pending == "") {
			flush()
			start = FILENAME ":" FNR
		}
		gsub(/\\n/, "\001", text)
		gsub(/\\./, "", text)
		buffer = buffer text
		pending = "literal"
	}
	if (line !~ /^[ \t]*$/) pending = ""
}
END { flush(); if (bad) { print bad " places to rewrite"; exit 1 } print "words: nothing found" }
' "$@"
