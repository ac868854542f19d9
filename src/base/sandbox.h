/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxing of processes that parse untrusted data, irrevocably: by seccomp (programs, sockets)
 * and Landlock (files), if the kernel supports them. */
#ifndef EW_BASE_SANDBOX_H
#define EW_BASE_SANDBOX_H

#include <stdbool.h>

/* Makes these fail with EPERM on all threads: starting programs, opening or connecting sockets,
 * tracing, mounting, loading kernel code.  False: no seccomp. */
bool ew_sandbox_no_programs(void);

/* Allows all threads only to read and write open descriptors, to allocate and free non-executable
 * memory, and to exit; all else fails with EPERM.  False: no seccomp. */
bool ew_sandbox_compute_only(void);

/* Restricts this thread and those it creates to files below the paths of `read` and, for reading,
 * writing, creating and removing, of `write` (both NULL-terminated).  A path that does not exist
 * grants nothing; open files stay open.  False: no Landlock. */
bool ew_sandbox_files(const char *const *read, const char *const *write);

#endif
