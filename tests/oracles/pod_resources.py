# SPDX-License-Identifier: Apache-2.0
# Pods of GPUs over real gRPC (PyPI's grpcio), as a kubelet tells them: `assay exporter --names dcgm` with fake GPUs has them as labels.
# The message is made by hand from the kubelet's v1 API. It has 300 pods, so that it takes more than one HTTP/2 frame of 16 KB.
# usage: pod_resources.py ASSAY NVML-FAKE GPUS.json      exit code 0 if all labels are there
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import grpc


def field(number, data):
	size, length = len(data), b""
	while True:
		length += bytes([(size & 127) | (128 if size > 127 else 0)])
		size >>= 7
		if not size:
			break
	return bytes([number << 3 | 2]) + length + data


def pod(name, space, container, ids):
	devices = field(1, b"nvidia.com/gpu") + b"".join(field(2, i.encode()) for i in ids) + field(3, b"\x0a\x02\x08\x00")
	inner = field(1, container.encode()) + field(2, devices) + field(3, b"\x00\x01")
	return field(1, field(1, name.encode()) + field(2, space.encode()) + field(3, inner))


def answer(request, context):
	assert request == b"", request
	uuid = "GPU-00000000-0000-4000-8000-00000000000"
	return (
		b"".join(pod(f"filler-{i}-" + "x" * 60, "default", "c", []) for i in range(300))
		+ pod("train-0", "research", "trainer", [uuid + "1"])
		+ pod("serve-0", "prod", "server", [uuid + "2", uuid + "4"])
	)


def main():
	assay, nvml, gpus = map(os.path.realpath, sys.argv[1:4])
	folder = tempfile.mkdtemp()
	server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
	methods = {"List": grpc.unary_unary_rpc_method_handler(answer)}
	server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods),))
	server.add_insecure_port("unix:" + folder + "/kubelet.sock")
	server.start()
	environment = dict(os.environ, ASSAY_LIB_NVML=nvml, FAKE_NVML_FILE=gpus)
	words = [assay, "exporter", "--port", "0", "--names", "dcgm", "--pod-resources", folder + "/kubelet.sock"]
	exporter = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
	page = re.search(r"http://\S+/metrics", exporter.stderr.readline()).group(0)
	found = {}
	for _ in range(300):
		text = urllib.request.urlopen(page).read().decode()
		found = dict(re.findall(r'^DCGM_FI_DEV_GPU_TEMP\{.*gpu="(\d)".*(container="[^}]*pod="[^"]*",namespace="[^"]*")', text, re.M))
		if len(found) == 3:
			break
		time.sleep(0.1)
	exporter.terminate()
	exporter.wait()
	server.stop(0)
	expected = {"0": ("trainer", "train-0", "research"), "1": ("server", "serve-0", "prod"), "3": ("server", "serve-0", "prod")}
	wanted = {gpu: 'container="%s",pod="%s",namespace="%s"' % names for gpu, names in expected.items()}
	print("grpcio", grpc.__version__)
	for gpu in sorted(set(found) | set(wanted)):
		print("ok" if found.get(gpu) == wanted.get(gpu) else "not ok", "- GPU", gpu, found.get(gpu))
	return found != wanted


if __name__ == "__main__":
	sys.exit(main())
