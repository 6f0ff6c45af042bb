/* SPDX-License-Identifier: Apache-2.0 */
#include "vendor/nccl.h"
#include <stdio.h>

/* OLDEST: the first version whose configuration has blocking, CTAs and a split. */
enum { OLDEST = 21800, OURS = 22800 };

static const struct lib_symbol symbols[] = {
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct nccl, field), LIB_NEED_##need},
	NCCL_FUNCTIONS(X)
#undef X
};

static const char *const sonames[] = {"libnccl.so.2", NULL};

static int version(const void *table)
{
	const struct nccl *n = table;
	int v = 0;

	return n->version(&v) == ncclSuccess ? v : 0;
}

const struct lib_spec nccl_lib = {
	.name = "nccl",
	.sonames = sonames,
	.wheel = "nvidia/nccl/lib",
	.symbols = symbols,
	.symbol_count = sizeof(symbols) / sizeof(symbols[0]),
	.table_size = sizeof(struct nccl),
	.version = version,
};

void nccl_version_text(const struct nccl *n, char *out, size_t size)
{
	int v = version(n);

	snprintf(out, size, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
}

enum status nccl_open(struct nccl *out, struct lib_fact *fact, struct error *err)
{
	enum status st = lib_open(out, &nccl_lib, NULL, fact, err);
	char found[24];

	if (st || version(out) >= OLDEST)
		return st;
	nccl_version_text(out, found, sizeof(found));
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			       "NCCL %s is too old: 2.18 or newer is needed", found);
}

enum status nccl_check(const struct nccl *n, ncclResult_t r, ncclComm_t c, const char *what,
		       struct error *err)
{
	static const struct {
		ncclResult_t result;
		enum status status;
		enum cause cause;
	} rows[] = {
#define X(name, value, status, cause) {name, STATUS_##status, CAUSE_##cause},
		NCCL_RESULTS(X)
#undef X
	};
	const char *more = n->last_error ? n->last_error(c) : NULL;
	enum status status = STATUS_VENDOR;
	enum cause cause = CAUSE_VENDOR_CALL;

	if (r == ncclSuccess || r == ncclInProgress)
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].result == r) {
			status = rows[i].status;
			cause = rows[i].cause;
		}
	}
	return error_set_cause(err, status, cause, "%s: %s%s%s", what, n->error_string(r),
			       more && *more ? ": " : "", more ? more : "");
}

ncclConfig_t nccl_config(const struct nccl *n)
{
	int found = version(n);
	ncclConfig_t c = {
		.size = sizeof(c),
		.magic = VENDOR_NCCL_MAGIC,
		.version = (unsigned)(found < OURS ? found : OURS),
		.blocking = NCCL_CONFIG_UNDEF_INT,
		.cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
		.minCTAs = NCCL_CONFIG_UNDEF_INT,
		.maxCTAs = NCCL_CONFIG_UNDEF_INT,
		.splitShare = NCCL_CONFIG_UNDEF_INT,
		.trafficClass = NCCL_CONFIG_UNDEF_INT,
		.collnetEnable = NCCL_CONFIG_UNDEF_INT,
		.CTAPolicy = NCCL_CONFIG_UNDEF_INT,
		.shrinkShare = NCCL_CONFIG_UNDEF_INT,
		.nvlsCTAs = NCCL_CONFIG_UNDEF_INT,
		.nChannelsPerNetPeer = NCCL_CONFIG_UNDEF_INT,
		.nvlinkCentricSched = NCCL_CONFIG_UNDEF_INT,
	};

	return c;
}
