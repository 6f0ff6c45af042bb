# The requests of a run beside the stub's truth: one line for each, by the length of its prompt, which must be its own.
# usage: awk -v epoch=NS -f join.awk requests.jsonl TRUTH     epoch: the begin of the run on CLOCK_MONOTONIC, from the journal
# Columns, times in ms, - for what is absent:
# 1 prompt  2 fault  3 error  4 flags  5 status  6 tokens sent  7 events sent  8 tokens lost  9 usage sent  10 usage read  11 chunks read
# 12 scheduled  13 from the send to the stub's receipt  TTFT from the send: 14 true  15 read  TTFT from the schedule: 16 true
# first to last token: 17 true  18 read  end from the send: 19 true  20 read  21 how late a token was read, the earliest  22 the latest
# 23 gaps, true, with commas between  24 gaps, read  25 first byte from the send
function text(name) { return match($0, "\"" name "\":\"[^\"]*\"") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : "-" }
function number(name) { return match($0, "\"" name "\":-?[0-9.]+") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : "-" }
function list(name) { return match($0, "\"" name "\":\\[[^]]*\\]") ? substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : "" }
function since(end, begin) { return end == "-" || begin == "-" ? "-" : sprintf("%.6f", (end - begin) / 1e6) }
FNR == NR {
	record[++records] = $0
	if (number("sent_ns") != "-" && (!first_sent || number("sent_ns") + epoch < first_sent))
		first_sent = number("sent_ns") + epoch
	next
}
number("received_ns") >= first_sent { # those before asked whether the server is ready
	key = number("prompt_tokens")
	if (key in received) {
		print "two requests have " key " prompt tokens"
		failed = 1
		exit 1
	}
	received[key] = number("received_ns"); fault[key] = text("fault"); sent[key] = number("sent"); events[key] = number("events")
	lost[key] = number("lost"); usage[key] = number("completion_tokens"); times[key] = list("token_ns")
}
END {
	for (r = 1; r <= records && !failed; r++) {
		$0 = record[r]
		join()
	}
}
function join() {
	key = number("prompt_asked"); begin = number("sent_ns"); first = number("first_token_ns"); last = number("last_token_ns")
	begin = begin == "-" ? "-" : begin + epoch; first = first == "-" ? "-" : first + epoch; last = last == "-" ? "-" : last + epoch
	end = number("end_ns") == "-" ? "-" : number("end_ns") + epoch
	due = number("scheduled_ns") + epoch
	# Tokens of one event were sent at one time.
	count = split(times[key], at, ",")
	true_first = true_last = "-"; true_gaps = gaps = ""; n = 0
	for (i = 1; i <= count; i++) {
		if (at[i] == "null" || (n && at[i] == event[n]))
			continue
		event[++n] = at[i]
		if (n > 1)
			true_gaps = true_gaps (n > 2 ? "," : "") sprintf("%.6f", (event[n] - event[n - 1]) / 1e6)
	}
	if (n) { true_first = event[1]; true_last = event[n] }
	earliest = latest = "-"
	many = split(list("gaps_us"), gap, ",")
	for (i = 1; i <= many; i++)
		gaps = gaps (i > 1 ? "," : "") sprintf("%.6f", gap[i] / 1e3)
	if (first != "-" && n == many + 1) {
		read = first
		for (i = 1; i <= n; i++) {
			late = (read - event[i]) / 1e6
			if (earliest == "-" || late < earliest) earliest = late
			if (latest == "-" || late > latest) latest = late
			read += 1e3 * gap[i]
		}
	}
	print key, fault[key] == "" ? "-" : fault[key], text("error"), list("flags") == "" ? "-" : list("flags"), number("status"), \
		sent[key] == "" ? "-" : sent[key], events[key] == "" ? "-" : events[key], lost[key] == "" ? "-" : lost[key], \
		usage[key] == "" ? "-" : usage[key], number("output_usage"), number("chunks"), since(due, epoch), since(received[key], begin), \
		since(true_first, begin), since(first, begin), since(true_first, due), since(true_last, true_first), since(last, first), \
		since(true_last, begin), since(end, begin), earliest, latest, true_gaps == "" ? "-" : true_gaps, gaps == "" ? "-" : gaps, \
		since(number("first_byte_ns") == "-" ? "-" : number("first_byte_ns") + epoch, begin)
}
