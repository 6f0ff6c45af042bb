/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/nccl/variables.h"
#include <string.h>
#include "core/input/opt.h"

/* reader, name after "NCCL_", help; sorted by name */
/* clang-format off */
#define NCCL_VARIABLES(X) \
	X(NCCL, ALGO, "algorithms allowed: \"ring,tree\", \"^nvls\" for all but") \
	X(NCCL, ALLOC_P2P_NET_LL_BUFFERS, "1 allocates buffers of protocol LL for each send and receive over the network") \
	X(TORCH, ASYNC_ERROR_HANDLING, "TORCH_NCCL_ASYNC_ERROR_HANDLING since PyTorch 2.2") \
	X(TORCH, AVOID_RECORD_STREAMS, "TORCH_NCCL_AVOID_RECORD_STREAMS since PyTorch 2.2") \
	X(TORCH, BLOCKING_WAIT, "TORCH_NCCL_BLOCKING_WAIT since PyTorch 2.2") \
	X(NCCL, BUFFSIZE, "bytes of the buffer between two GPUs; default 4 MiB") \
	X(NCCL, CGA_CLUSTER_SIZE, "thread blocks of a cluster, 0 to 8; default 4 from sm_90 on") \
	X(OLD, CHECKS_DISABLE, "replaced by NCCL_CHECK_POINTERS in 2.2.12") \
	X(NCCL, CHECK_POINTERS, "1 checks every pointer given to a call") \
	X(NCCL, CHUNK_SIZE, "bytes moved at a time") \
	X(NCCL, COLLNET_ENABLE, "1 allows reduction in the network (SHARP) with a plug-in") \
	X(NCCL, COLLNET_NODE_THRESHOLD, "smallest number of nodes for reduction in the network; default 2") \
	X(NCCL, COMM_BLOCKING, "0 makes calls return before they are done") \
	X(NCCL, COMM_ID, "address and port of the first rank for applications without a launcher") \
	X(NCCL, COMM_SHRINK_SHARE_RESOURCES, "1 lets shrunk communicators share their parent's resources") \
	X(NCCL, COMM_SPLIT_SHARE_RESOURCES, "1 lets split communicators share their parent's resources") \
	X(NCCL, CONF_FILE, "a configuration file to use instead of ~/.nccl.conf") \
	X(NCCL, CONNECT_ROUND_MAX_PEERS, "peers connected in one round; default 128") \
	X(NCCL, CREATE_THREAD_CONTEXT, "") \
	X(NCCL, CROSS_NIC, "0 keeps a ring on one network card of each node, 1 lets it change, 2 decides by itself") \
	X(NCCL, CTA_POLICY, "0 optimizes speed, 1 uses few multiprocessors") \
	X(NCCL, CUMEM_ENABLE, "0 allocates without the driver's virtual memory calls") \
	X(NCCL, CUMEM_HOST_ENABLE, "1 allocates host memory with the driver's virtual memory calls") \
	X(NCCL, DEBUG, "how much is printed: VERSION, WARN, INFO, TRACE") \
	X(NCCL, DEBUG_FILE, "where to print; %h is the host, %p the process") \
	X(NCCL, DEBUG_SUBSYS, "parts that print: INIT, NET, TUNING ..") \
	X(NCCL, DEBUG_TIMESTAMP_FORMAT, "format of the time before a line, as for strftime") \
	X(NCCL, DEBUG_TIMESTAMP_LEVELS, "levels whose lines begin with the time") \
	X(TORCH, DESYNC_DEBUG, "TORCH_NCCL_DESYNC_DEBUG since PyTorch 2.2") \
	X(NCCL, DMABUF_ENABLE, "0 uses nvidia-peermem for direct memory access of network cards") \
	X(TORCH, ENABLE_TIMING, "TORCH_NCCL_ENABLE_TIMING since PyTorch 2.2") \
	X(NCCL, ENV_PLUGIN, "a plug-in that sets variables") \
	X(NCCL, GDRCOPY_ENABLE, "1 copies small control data with GDRCopy") \
	X(NCCL, GDRCOPY_FIFO_ENABLE, "") \
	X(NCCL, GDRCOPY_FLUSH_ENABLE, "") \
	X(NCCL, GDRCOPY_SYNC_ENABLE, "") \
	X(NCCL, GDR_FLUSH_DISABLE, "1 omits the read that flushes data of a network card") \
	X(NCCL, GIN_COUNTER_POOL_SIZE, "") \
	X(NCCL, GIN_ENABLE, "0 forbids network operations started by kernels") \
	X(NCCL, GIN_ERROR_QUERY_SEC, "") \
	X(NCCL, GIN_GDAKI_NIC_HANDLER, "") \
	X(NCCL, GIN_GDAKI_QP_DEPTH, "") \
	X(NCCL, GIN_IB_ALLGATHER_TAG, "") \
	X(NCCL, GIN_IB_ALLTOALL_TAG, "") \
	X(NCCL, GIN_NCONTEXTS, "") \
	X(NCCL, GIN_PROXY_QUEUE_SIZE, "") \
	X(NCCL, GIN_SIGNAL_POOL_SIZE, "") \
	X(NCCL, GIN_TYPE, "how kernels start network operations") \
	X(NCCL, GRAPH_DUMP_FILE, "file to which NCCL writes the rings and trees that it found") \
	X(NCCL, GRAPH_DUMP_FILE_RANK, "") \
	X(NCCL, GRAPH_FILE, "rings and trees to use instead of searching") \
	X(NCCL, GRAPH_HELPER_DISABLE, "1 disables the helper thread of CUDA graphs") \
	X(NCCL, GRAPH_MIXING_SUPPORT, "0 declares that graphs and plain launches never mix") \
	X(NCCL, GRAPH_REGISTER, "0 does not register the buffers of captured calls") \
	X(NCCL, GROUP_CUDA_STREAM, "") \
	X(NCCL, HOSTID, "identifies the host, instead of the boot id") \
	X(NCCL, IB_ADAPTIVE_ROUTING, "1 expects adaptive routing, 0 does not; default 1 on InfiniBand") \
	X(NCCL, IB_ADDR_FAMILY, "AF_INET or AF_INET6 of the RoCE address") \
	X(NCCL, IB_ADDR_RANGE, "RoCE addresses to choose from, as CIDR") \
	X(NCCL, IB_AR_THRESHOLD, "smallest message that may be routed adaptively, bytes; default 8192") \
	X(OLD, IB_CUDA_SUPPORT, "replaced by NCCL_NET_GDR_LEVEL in 2.4") \
	X(NCCL, IB_DATA_DIRECT, "0 forbids the direct path of newer adapters") \
	X(NCCL, IB_DISABLE, "1 forbids InfiniBand and RoCE") \
	X(NCCL, IB_ECE_ENABLE, "0 disables enhanced connection establishment") \
	X(NCCL, IB_FIFO_TC, "traffic class of control messages") \
	X(OLD, IB_GDR_LEVEL, "renamed NCCL_NET_GDR_LEVEL in 2.4") \
	X(NCCL, IB_GID_INDEX, "GID of RoCE; default: found automatically since 2.21") \
	X(NCCL, IB_HCA, "adapters and ports to use: \"mlx5\", \"=mlx5_0:1\", \"^mlx5_3\"") \
	X(NCCL, IB_MERGE_NICS, "0 does not merge the ports of one card into one adapter") \
	X(NCCL, IB_MERGE_VFS, "1 merges virtual functions of one port") \
	X(NCCL, IB_MQP_RETRY_ALL, "") \
	X(NCCL, IB_MQP_RETRY_CNT, "") \
	X(NCCL, IB_MQP_RETRY_SLEEP_MSEC, "") \
	X(NCCL, IB_PCI_RELAXED_ORDERING, "0 forbids relaxed ordering, 1 requires it, 2 uses it if available") \
	X(NCCL, IB_PKEY, "partition key") \
	X(NCCL, IB_QPS_PER_CONNECTION, "queue pairs per connection, to spread traffic over paths; default 1") \
	X(NCCL, IB_RETRY_CNT, "how often the adapter retries; default 7") \
	X(NCCL, IB_RETURN_ASYNC_EVENTS, "0 continues after a fatal event of an adapter") \
	X(NCCL, IB_ROCE_VERSION_NUM, "RoCE version; default 2") \
	X(NCCL, IB_ROUTABLE_FLID_GID_INDEX, "GID of routers between subnets") \
	X(NCCL, IB_SL, "service level; default 0") \
	X(NCCL, IB_SL_DEFAULT, "") \
	X(NCCL, IB_SPLIT_DATA_ON_QPS, "1 splits each message over all queue pairs; default 0") \
	X(NCCL, IB_TC, "traffic class; default 0") \
	X(NCCL, IB_TC_DEFAULT, "") \
	X(NCCL, IB_TIMEOUT, "how long the adapter waits, 4.096 us * 2^N; default 20") \
	X(NCCL, IB_USE_INLINE, "1 sends small messages inline") \
	X(NCCL, IB_WARN_RAIL_LOCAL, "1 warns where traffic leaves its rail") \
	X(NCCL, IGNORE_CPU_AFFINITY, "1 binds threads to the CPUs next to the GPU, even if the job may not use these CPUs") \
	X(NCCL, IGNORE_DISABLED_P2P, "1 uses another path if peer access is disabled") \
	X(NCCL, IPC_COLLECTIVE, "") \
	X(NCCL, IPC_SENDRECV, "") \
	X(NCCL, L1_SHARED_MEMORY_CARVEOUT, "share of L1 for shared memory") \
	X(NCCL, LAUNCH_MODE, "PARALLEL or GROUP: how one process launches on many GPUs") \
	X(NCCL, LAUNCH_ORDER_IMPLICIT, "1 keeps the launch order of several communicators") \
	X(NCCL, LAUNCH_RACE_FATAL, "0 continues if launch orders race") \
	X(NCCL, LEGACY_CUDA_REGISTER, "") \
	X(NCCL, LL128_BUFFSIZE, "bytes of the buffer of protocol LL128") \
	X(NCCL, LL128_C2C, "1 allows LL128 over C2C") \
	X(NCCL, LL128_NTHREADS, "threads per block of protocol LL128") \
	X(NCCL, LL_BUFFSIZE, "bytes of the buffer of protocol LL") \
	X(OLD, LL_THRESHOLD, "replaced by NCCL_PROTO in 2.5") \
	X(NCCL, LOCAL_REGISTER, "0 does not register buffers although the application asked") \
	X(NCCL, MAX_CTAS, "maximum number of thread blocks of a collective") \
	X(NCCL, MAX_NCHANNELS, "maximum number of channels, and so of multiprocessors") \
	X(NCCL, MAX_NRINGS, "older name of NCCL_MAX_NCHANNELS") \
	X(NCCL, MAX_P2P_NCHANNELS, "maximum number of channels for sends and receives") \
	X(NCCL, MEM_SYNC_DOMAIN, "memory synchronization domain of the kernels") \
	X(NCCL, MIN_CTAS, "minimum number of thread blocks of a collective") \
	X(NCCL, MIN_NCHANNELS, "minimum number of channels, and so of multiprocessors") \
	X(NCCL, MIN_NRINGS, "older name of NCCL_MIN_NCHANNELS") \
	X(NCCL, MIN_P2P_NCHANNELS, "minimum number of channels for sends and receives") \
	X(NCCL, MNNVL_CLIQUE_ID, "clique of the multi-node NVLink domain") \
	X(NCCL, MNNVL_ENABLE, "0 forbids NVLink between nodes") \
	X(NCCL, MNNVL_RAIL_PER_HOST, "") \
	X(NCCL, MNNVL_SCATTER_NETS_ENABLE, "") \
	X(NCCL, MNNVL_UUID, "cluster of the multi-node NVLink domain") \
	X(NCCL, NCHANNELS_PER_NET_PEER, "channels to each peer over the network") \
	X(NCCL, NET, "network to use: IB, Socket or the name of a plug-in") \
	X(NCCL, NETDEVS_POLICY, "how network cards are assigned to GPUs") \
	X(NCCL, NET_DISABLE_INTRA, "1 does not use the network inside a node") \
	X(NCCL, NET_FORCE_FLUSH, "1 flushes although the path does not need it") \
	X(NCCL, NET_FORCE_MERGE, "") \
	X(NCCL, NET_GDR_C2C, "0 forbids direct memory access through C2C") \
	X(NCCL, NET_GDR_LEVEL, "greatest distance between GPU and network card for direct memory access: LOC (never) PIX " \
		"PXB PHB SYS") \
	X(NCCL, NET_GDR_READ, "0 sends through host memory, 1 reads the GPU directly") \
	X(NCCL, NET_MERGE_LEVEL, "how far apart ports may be to be merged") \
	X(NCCL, NET_OPTIONAL_RECV_COMPLETION, "0 waits for each receive of protocol LL") \
	X(NCCL, NET_OVERHEAD, "assumed cost of a network operation, ns") \
	X(NCCL, NET_PLUGIN, "network plug-in: a name, a library or none") \
	X(NCCL, NET_PLUGIN_REF_COUNT, "") \
	X(NCCL, NET_SHARED_BUFFERS, "0 gives each connection its own buffers") \
	X(NCCL, NET_SHARED_COMMS, "0 gives each channel its own connections") \
	X(NCCL, NSOCKS_PERTHREAD, "sockets of each helper thread") \
	X(NCCL, NTHREADS, "threads per block: 64, 128, 256, 512") \
	X(NCCL, NVB_DISABLE, "1 forbids the path over a third GPU's NVLinks") \
	X(NCCL, NVB_PRECONNECT, "1 connects paths over a third GPU at the start") \
	X(NCCL, NVLINK_UTIL_CENTRIC_SCHED_ENABLE, "1 schedules send and receive to fill NVLinks") \
	X(NCCL, NVLSTREE_MAX_CHUNKSIZE, "bytes moved at a time by algorithm NVLS tree") \
	X(NCCL, NVLS_CHUNKSIZE, "bytes moved at a time by algorithm NVLS") \
	X(NCCL, NVLS_ENABLE, "0 forbids reduction in the NVLink switch, 1 requires it, 2 uses it if available") \
	X(NCCL, NVLS_NCHANNELS, "channels of reduction in the switch") \
	X(NCCL, NVTX_DISABLE, "1 omits NVTX marks for profilers") \
	X(NCCL, OOB_NET_ENABLE, "1 sends start-up messages over the network plug-in") \
	X(NCCL, OOB_NET_IFNAME, "interfaces of start-up messages") \
	X(NCCL, P2P_DIRECT_DISABLE, "1 forbids direct access between GPUs of one process") \
	X(NCCL, P2P_DISABLE, "1 forbids NVLink and PCIe peers") \
	X(NCCL, P2P_LEVEL, "how far apart peers may be: LOC (never) NVL PIX PXB PHB SYS") \
	X(NCCL, P2P_LL_THRESHOLD, "largest send that uses protocol LL, bytes; default 16384") \
	X(NCCL, P2P_NET_CHUNKSIZE, "bytes of a send over the network at a time; default 131072") \
	X(NCCL, P2P_NVL_CHUNKSIZE, "bytes of a send over NVLink at a time") \
	X(NCCL, P2P_PCI_CHUNKSIZE, "bytes of a send over PCIe at a time") \
	X(NCCL, P2P_PXN_LEVEL, "use of another GPU's network card for sends: 0, 1, 2") \
	X(NCCL, P2P_READ_ENABLE, "1 lets receivers read, instead of senders write") \
	X(NCCL, P2P_SCHEDULE_GROUP_SIZE, "") \
	X(NCCL, P2P_USE_CUDA_MEMCPY, "1 copies with the copy engines") \
	X(NCCL, PAT_ENABLE, "0 forbids algorithm PAT") \
	X(NCCL, PROFILER_PLUGIN, "a plug-in that is called for each operation") \
	X(NCCL, PROGRESS_APPENDOP_FREQ, "") \
	X(NCCL, PROTO, "protocols allowed: LL, LL128, Simple; \"^LL128\" for all but") \
	X(NCCL, PROXY_APPEND_BATCH_SIZE, "") \
	X(NCCL, PROXY_CPUSET, "CPUs of the helper threads") \
	X(NCCL, PROXY_DUMP_SIGNAL, "") \
	X(NCCL, PXN_C2C, "1 uses another GPU's network card through C2C") \
	X(NCCL, PXN_DISABLE, "1 forbids the use of another GPU's network card") \
	X(NCCL, RAS_ADDR, "address of the reliability service") \
	X(NCCL, RAS_ENABLE, "0 disables the reliability service") \
	X(NCCL, RAS_TIMEOUT_FACTOR, "multiplies the timeouts of the reliability service") \
	X(NCCL, REPORT_CONNECT_PROGRESS, "") \
	X(OLD, RINGS, "replaced by NCCL_GRAPH_FILE in 2.5") \
	X(NCCL, RUNTIME_CONNECT, "0 connects everything at the start") \
	X(NCCL, SET_CPU_STACK_SIZE, "0 does not change the stack size of helper threads") \
	X(NCCL, SET_STACK_SIZE, "1 sets the kernels' stack size at the start, not later") \
	X(NCCL, SET_THREAD_NAME, "1 names the helper threads") \
	X(NCCL, SHM_DISABLE, "1 forbids shared memory between processes") \
	X(NCCL, SHM_LOCALITY, "1 keeps shared memory at the sender, 2 at the receiver") \
	X(NCCL, SHM_MEMCPY_MODE, "side (sender or receiver) that copies with the copy engines") \
	X(NCCL, SHM_USE_CUDA_MEMCPY, "1 copies shared memory with the copy engines") \
	X(NCCL, SINGLE_PROC_MEM_REG_ENABLE, "1 registers buffers where one process has several GPUs") \
	X(OLD, SINGLE_RING_THRESHOLD, "removed in 2.3") \
	X(NCCL, SOCKET_FAMILY, "AF_INET or AF_INET6") \
	X(NCCL, SOCKET_IFNAME, "interfaces of sockets: \"eth\", \"=eth0,eth1\", \"^docker\"") \
	X(NCCL, SOCKET_INLINE, "") \
	X(NCCL, SOCKET_MIN_TASKSIZE, "") \
	X(NCCL, SOCKET_NTHREADS, "helper threads per connection over sockets") \
	X(NCCL, SOCKET_RCVBUF, "") \
	X(NCCL, SOCKET_RETRY_CNT, "how often a connection is tried; default 34") \
	X(NCCL, SOCKET_RETRY_SLEEP_MSEC, "ms between tries; default 100") \
	X(NCCL, SOCKET_SNDBUF, "") \
	X(NCCL, SYM_CTAS, "thread blocks of the kernels on symmetric memory") \
	X(NCCL, SYM_KERNEL, "kernel on symmetric memory") \
	X(NCCL, THREAD_THRESHOLDS, "bytes per thread above which more threads are used") \
	X(TORCH, TIMEOUT, "read by some training scripts") \
	X(NCCL, TOPO_DUMP_FILE, "file to which NCCL writes the topology that it found") \
	X(NCCL, TOPO_DUMP_FILE_RANK, "") \
	X(NCCL, TOPO_FILE, "a topology file to load before detection") \
	X(OLD, TREE_THRESHOLD, "replaced by NCCL_ALGO in 2.5") \
	X(PLUGIN, TUNER_CONFIG_FILE, "cost table of NVIDIA's example tuner") \
	X(NCCL, TUNER_PLUGIN, "a plug-in that chooses algorithms") \
	X(NCCL, UID_STAGGER_RATE, "") \
	X(NCCL, UID_STAGGER_THRESHOLD, "") \
	X(NCCL, UNPACK_DOUBLE_NCHANNELS, "") \
	X(IMAGE, VERSION, "") \
	X(NCCL, WARN_ENABLE_DEBUG_INFO, "") \
	X(NCCL, WIN_ENABLE, "0 forbids memory windows") \
	X(NCCL, WIN_STRIDE, "bytes between the windows of two ranks") \
	X(NCCL, WORK_ARGS_BYTES, "") \
	X(NCCL, WORK_FIFO_BYTES, "bytes of the queue of operations")
/* clang-format on */

#define X(reader, name, help) {"NCCL_" #name, NCCL_READER_##reader, help},
static const struct nccl_variable names[] = {NCCL_VARIABLES(X)};
#undef X
/* Prefixes of names that plug-ins read. */
static const struct nccl_variable families[] = {
	{"NCCL_FASTRAK_", NCCL_READER_PLUGIN, "Google's network plug-in"},
	{"NCCL_GPUDIRECTTCPX_", NCCL_READER_PLUGIN, "Google's network plug-in"},
	{"NCCL_IBEXT_", NCCL_READER_PLUGIN, "NVIDIA's network plug-in"},
	{"NCCL_INSPECTOR_", NCCL_READER_PLUGIN, "NVIDIA's inspector of operations"},
	{"NCCL_SHARP_", NCCL_READER_PLUGIN, "NVIDIA's plug-in for reduction in the network"},
	{"NCCL_TESTS_", NCCL_READER_PLUGIN, "nccl-tests"},
	{"NCCL_UCX_", NCCL_READER_PLUGIN, "NVIDIA's network plug-in"},
};
enum { NAMES = sizeof(names) / sizeof(names[0]), FAMILIES = sizeof(families) / sizeof(families[0]) };

const struct nccl_variable *nccl_variable_at(size_t index)
{
	return index < NAMES ? &names[index] : NULL;
}

const struct nccl_variable *nccl_variable_find(const char *name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (!strcmp(names[i].name, name))
			return &names[i];
	for (size_t i = 0; i < FAMILIES; i++)
		if (!strncmp(families[i].name, name, strlen(families[i].name)))
			return &families[i];
	return NULL;
}

const char *nccl_variable_nearest(const char *name)
{
	const char *known[NAMES], *near;

	if (strncmp(name, "NCCL_", 5))
		return NULL;
	for (size_t i = 0; i < NAMES; i++)
		known[i] = names[i].name + 5; /* without the prefix "NCCL_", which all names share */
	near = opt_nearest(name + 5, known, NAMES);
	return near ? near - 5 : NULL;
}

const char *nccl_reader_word(enum nccl_reader reader)
{
#define X(name, word, text) [NCCL_READER_##name] = (word),
	static const char *const words[] = {NCCL_READERS(X)};
#undef X

	return words[reader];
}

const char *nccl_reader_text(enum nccl_reader reader)
{
#define X(name, word, text) [NCCL_READER_##name] = (text),
	static const char *const texts[] = {NCCL_READERS(X)};
#undef X

	return texts[reader];
}
