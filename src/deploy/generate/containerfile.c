/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe of a container image with the bundle. */
#include "deploy/generate/generate.h"

static void line(struct text *t, const char *reason, const char *text)
{
	generate_reason(t, 0, reason);
	text_addf(t, "%s\n", text);
}

void generate_containerfile(struct text *t, const struct generate_plan *p)
{
	generate_reason(t, 0,
			"An image with assay. Build the bundle, then the image in the folder of the bundle:\n"
			"  meson compile -C build bundle; podman build -f FILE -t NAME build/bundle");
	generate_reason(
		t, 0,
		p->image
			? "from --image"
			: "any image with glibc 2.34 or newer and a shell; this one has 30 MB. For GEMMs on a GPU name one\n"
			  "with cuBLAS in --image");
	text_addf(t, "FROM %s\n", p->image ? p->image : "docker.io/library/debian:12-slim");
	generate_reason(t, 0, "program and libraries, nothing else is installed");
	text_addf(t, "COPY assay-%s-%s/ /opt/assay/\n", ASSAY_VERSION, p->arch);
	line(t,
	     "the driver comes from the host: compute for CUDA, utility for NVML; graphics and video are not needed",
	     "ENV PATH=/opt/assay:$PATH NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility");
	line(t, "run directories go here", "WORKDIR /results");
	line(t, "the user below can write there", "RUN chown 65532:65532 /results");
	line(t, "assay needs no root", "USER 65532:65532");
	line(t, "arguments of the container are arguments of assay", "ENTRYPOINT [\"/opt/assay/assay\"]");
	generate_reason(t, 0, "without arguments");
	text_add(t, "CMD [");
	for (size_t i = 0; i < p->words.count; i++) {
		text_add(t, i ? ", " : "");
		generate_quoted(t, p->words.word[i]);
	}
	text_add(t, "]\n");
}
