/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds what moved into libc with glibc 2.32 to 2.34 to the versions that every glibc has, so that a library
 * built on a new system loads on an old one. On arm64 nothing is older than 2.17. Included by whoever calls
 * them; tests/inject_symbols.sh looks at the result.
 */
#ifndef PROFILE_INJECT_GLIBC_COMPAT_H
#define PROFILE_INJECT_GLIBC_COMPAT_H
#if defined(__x86_64__)
#define COMPAT(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#else
#define COMPAT(name) _Static_assert(1, "the oldest there is")
#endif
#endif
