/* SPDX-License-Identifier: Apache-2.0 */
/* Binds functions that moved into libc with glibc 2.32 to 2.34 to versions that every glibc has. So a library
 * built on a new system loads on an old one. On arm64 the oldest version is 2.17. Include it in files that
 * call these functions; tests/inject_symbols.sh checks the result. */
#ifndef PROFILE_INJECT_GLIBC_COMPAT_H
#define PROFILE_INJECT_GLIBC_COMPAT_H
#if defined(__x86_64__)
#define COMPAT(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#else
#define COMPAT(name) _Static_assert(1, "already the oldest version")
#endif
#endif
