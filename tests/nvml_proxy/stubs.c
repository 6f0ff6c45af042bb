/* SPDX-License-Identifier: Apache-2.0 */
/* For each function of NVML: a symbol whose resolver dlsym calls, and a stub that passes the call on (x86-64, System V). */
#include "functions.h"

__asm__(
	".section .note.GNU-stack,\"\",@progbits\n"
	".text\n"
	".set index, 0\n"
	".macro resolver name\n"
	".globl \\name\n"
	".type \\name,@gnu_indirect_function\n"
	"\\name:\n"
	"movl $index,%edi\n"
	"jmp nvml_proxy_resolve\n"
	".size \\name,.-\\name\n"
	".set index, index + 1\n"
	".endm\n"
	".macro stub\n"
	".balign 16\n"
	"pushq $index\n"
	"jmp pass_on\n"
	".set index, index + 1\n"
	".endm\n");
#define X(name) __asm__("resolver " #name);
NVML_FUNCTIONS
#undef X
__asm__(
	".set index, 0\n"
	".balign 16\n"
	".globl nvml_proxy_stubs\n"
	".hidden nvml_proxy_stubs\n"
	"nvml_proxy_stubs:\n");
#define X(name) __asm__("stub");
NVML_FUNCTIONS
#undef X
/* All registers of arguments are kept. nvml_proxy_enter answers the real function, and may put `after` in place of the return address. */
__asm__(
	".balign 16\n"
	"pass_on:\n"
	"pushq %rdi\n"
	"pushq %rsi\n"
	"pushq %rdx\n"
	"pushq %rcx\n"
	"pushq %r8\n"
	"pushq %r9\n"
	"pushq %rax\n"
	"subq $136,%rsp\n"
	"movups %xmm0,0(%rsp)\n"
	"movups %xmm1,16(%rsp)\n"
	"movups %xmm2,32(%rsp)\n"
	"movups %xmm3,48(%rsp)\n"
	"movups %xmm4,64(%rsp)\n"
	"movups %xmm5,80(%rsp)\n"
	"movups %xmm6,96(%rsp)\n"
	"movups %xmm7,112(%rsp)\n"
	"movl 192(%rsp),%edi\n"
	"leaq 200(%rsp),%rsi\n"
	"leaq after(%rip),%rdx\n"
	"call nvml_proxy_enter\n"
	"movq %rax,%r11\n"
	"movups 0(%rsp),%xmm0\n"
	"movups 16(%rsp),%xmm1\n"
	"movups 32(%rsp),%xmm2\n"
	"movups 48(%rsp),%xmm3\n"
	"movups 64(%rsp),%xmm4\n"
	"movups 80(%rsp),%xmm5\n"
	"movups 96(%rsp),%xmm6\n"
	"movups 112(%rsp),%xmm7\n"
	"addq $136,%rsp\n"
	"popq %rax\n"
	"popq %r9\n"
	"popq %r8\n"
	"popq %rcx\n"
	"popq %rdx\n"
	"popq %rsi\n"
	"popq %rdi\n"
	"addq $8,%rsp\n"
	"jmp *%r11\n");
/* The real function returns to here. The caller's address comes from nvml_proxy_leave. */
__asm__(
	"after:\n"
	"subq $8,%rsp\n"
	"pushq %rax\n"
	"pushq %rdx\n"
	"subq $24,%rsp\n"
	"movups %xmm0,(%rsp)\n"
	"call nvml_proxy_leave\n"
	"movups (%rsp),%xmm0\n"
	"movq %rax,40(%rsp)\n"
	"addq $24,%rsp\n"
	"popq %rdx\n"
	"popq %rax\n"
	"ret\n");
