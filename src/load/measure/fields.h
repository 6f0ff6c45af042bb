/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a load test: X(name, unit, better, help). Definitions: docs/explanation/methods/load.md. */
#ifndef LOAD_MEASURE_FIELDS_H
#define LOAD_MEASURE_FIELDS_H

/* clang-format off */
#define LOAD_INTERVAL(X, name, unit) \
	X(name##_low, unit, 0, "low end of its 95 % interval") \
	X(name##_high, unit, 0, "high end of its 95 % interval")
#define LOAD_PERCENTILE(X, name, p, what, words) \
	X(name##_##p##_s, "s", -1, what ", " words) \
	X(name##_##p##_low_s, "s", 0, "low end of its 95 % interval") \
	X(name##_##p##_high_s, "s", 0, "high end of its 95 % interval")
#define LOAD_LATENCY(X, name, what) \
	LOAD_PERCENTILE(X, name, p50, what, "median") \
	LOAD_PERCENTILE(X, name, p90, what, "90th percentile") \
	LOAD_PERCENTILE(X, name, p95, what, "95th percentile") \
	LOAD_PERCENTILE(X, name, p99, what, "99th percentile") \
	LOAD_PERCENTILE(X, name, p999, what, "99.9th percentile") \
	LOAD_PERCENTILE(X, name, mean, what, "mean") \
	X(name##_min_s, "s", 0, what ", smallest") \
	X(name##_max_s, "s", -1, what ", largest") \
	X(name##_samples, "", 0, what ": number of samples")

#define LOAD_FIELDS(X) \
	X(server_gpus, "", 0, "GPUs of the server; absent: not known") \
	X(window_s, "s", 0, "length of the measured window") \
	X(requests, "", 0, "requests due in the window") \
	X(answered, "", 0, "of these, answered completely") \
	X(failed, "", -1, "of these, ended with an error, except those that the end of the run cancelled") \
	X(error_share, "", -1, "failed / (answered + failed)") \
	X(errors_dns, "", -1, "host name not resolved") \
	X(errors_connect, "", -1, "no connection") \
	X(errors_tls, "", -1, "TLS handshake or certificate failed") \
	X(errors_timeout, "", -1, "no complete answer within the time limit") \
	X(errors_reset, "", -1, "connection lost") \
	X(errors_cut, "", -1, "answer ended before its end mark") \
	X(errors_garbage, "", -1, "answer that is no HTTP, event stream or JSON") \
	X(errors_redirect, "", -1, "status 3xx") \
	X(errors_limited, "", -1, "status 429") \
	X(errors_unavailable, "", -1, "status 503") \
	X(errors_refused, "", -1, "another status 4xx") \
	X(errors_server, "", -1, "another status 5xx, or an error event") \
	X(errors_client, "", -1, "the client had no memory, descriptor or port left") \
	X(errors_cancelled, "", 0, "not answered when the run ended") \
	X(offered_rate, "1/s", 0, "requests/s of the plan; absent in a closed loop") \
	X(due_rate, "1/s", 0, "requests due in the window / its length") \
	X(achieved_rate, "1/s", 0, "requests handed to the HTTP library in the window / its length") \
	X(completed_rate, "1/s", 1, "complete answers that ended in the window / its length") \
	X(prompt_tokens, "", 0, "tokens of the prompts of answered requests") \
	X(output_tokens, "", 0, "tokens of the answers of answered requests") \
	X(chunks, "", 0, "events with text of answered requests") \
	X(tokens_per_chunk, "", 0, "output tokens of streams / their chunks") \
	X(output_tokens_per_s, "1/s", 1, "output tokens that arrived in the window / its length") \
	LOAD_INTERVAL(X, output_tokens_per_s, "1/s") \
	X(total_tokens_per_s, "1/s", 1, "the same with the tokens of prompts, counted at the first token") \
	LOAD_INTERVAL(X, total_tokens_per_s, "1/s") \
	LOAD_LATENCY(X, ttft, "time to first token, from the schedule") \
	LOAD_LATENCY(X, ttft_send, "time to first token, from the send") \
	LOAD_LATENCY(X, tpot, "time per output token after the first, per request") \
	LOAD_LATENCY(X, itl, "time between two tokens, all requests pooled") \
	LOAD_LATENCY(X, chunk_gap, "time between two chunks, all requests pooled, if chunks are not tokens") \
	LOAD_LATENCY(X, e2e, "time of a whole answer, from the schedule") \
	LOAD_LATENCY(X, e2e_send, "time of a whole answer, from the send") \
	X(goodput, "1/s", 1, "requests/s that meet the first set of limits") \
	X(slo_share, "", 1, "share of requests that meet the first set of limits") \
	LOAD_INTERVAL(X, slo_share, "") \
	X(slo_met, "", 1, "1: the share of each set of limits is at least the attainment") \
	X(saturated_rate, "1/s", 1, "sweep: requests/s that the closed loop reached") \
	X(sweep_met_rate, "1/s", 1, "sweep: highest rate that met all sets of limits, by the shares of its requests") \
	X(sweep_sure_rate, "1/s", 1, "sweep: highest rate that met them by the low ends of the shares' 95 % intervals; 0: none") \
	X(sweep_missed_rate, "1/s", 0, "sweep: lowest rate that missed a set of limits") \
	X(in_flight_mean, "", 0, "requests between send and end, mean over the window") \
	X(in_flight_most, "", 0, "requests in flight at once, most") \
	X(in_flight_slope, "1/s", -1, "growth of the requests in flight") \
	LOAD_INTERVAL(X, in_flight_slope, "1/s") \
	X(ttft_slope, "", -1, "growth of the time to first token, seconds per second") \
	LOAD_INTERVAL(X, ttft_slope, "") \
	X(over_saturated, "", -1, "1: requests in flight and time to first token grew until the end") \
	X(client_lag_p50_s, "s", -1, "delay of sends by the client itself, median") \
	X(client_lag_p99_s, "s", -1, "delay of sends by the client itself, 99th percentile") \
	X(client_lag_max_s, "s", -1, "delay of sends by the client itself, largest") \
	X(late_sends, "", -1, "requests that the client sent more than 1 ms late") \
	X(send_deviation, "", -1, "|sends - due requests| / due requests") \
	X(client_cpu_share, "", -1, "CPU time of the busiest sender thread / wall time") \
	X(client_cpus, "", 0, "CPU time of the client process / wall time") \
	X(receive_late_p50_s, "s", -1, "bound on how late the client read bytes, median") \
	X(receive_late_p99_s, "s", -1, "bound on how late the client read bytes, 99th percentile") \
	X(parse_behind_s, "s", 0, "how late the parser thread was at most") \
	X(waited_for_connection, "", 0, "due requests that waited for the limit on connections") \
	X(dropped_turns, "", 0, "later turns that were not sent, because an answer failed") \
	X(cached_tokens, "", 0, "tokens of the prompts that the server found in its prefix cache") \
	X(cache_share, "", 0, "share of the prompts' tokens that the server found in its prefix cache") \
	X(usage_deviation, "", -1, "difference of reported and counted output tokens / counted ones") \
	X(usage_over_asked, "", -1, "answers with more reported output tokens than were asked for") \
	X(usage_under_events, "", -1, "streams with more events with text than the server reports tokens") \
	X(lost_tokens, "", -1, "streams of the full length with fewer tokens than the server reports, by their events and text") \
	X(no_done, "", -1, "complete streams without [DONE]") \
	X(no_finish, "", -1, "complete answers without finish_reason") \
	X(duplicates, "", -1, "streams with an event that came twice") \
	X(after_done, "", -1, "streams with events after [DONE]") \
	X(no_usage, "", -1, "answers without the usage that was asked for") \
	X(resent, "", 0, "requests that were sent again, because the server had closed the connection")
/* clang-format on */
#endif
