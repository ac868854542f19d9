/* SPDX-License-Identifier: Apache-2.0 */
/* Rights that a process gives up for good, so that a fault in what reads strangers' bytes reaches
 * no further: by seccomp (programs, sockets) and Landlock (files), where the kernel has them. */
#ifndef EW_BASE_SANDBOX_H
#define EW_BASE_SANDBOX_H

#include <stdbool.h>

/* From here on no thread of this process starts a program, opens or connects a socket, traces a
 * process, mounts, or loads anything into the kernel: EPERM.  False: the kernel has no seccomp. */
bool ew_sandbox_no_programs(void);

/* From here on no thread of this process does anything but compute: it reads and writes what is
 * open already, takes and gives back memory that cannot be run, and ends; all else is EPERM. False:
 * as above. */
bool ew_sandbox_compute_only(void);

/* From here on this thread, and those that it starts, reach no file but those below the paths of
 * `read` and, to read, write, create and remove, below those of `write`; both end with NULL.  A
 * path that does not exist grants nothing.  What is open already stays so.  False: the kernel has
 * no Landlock. */
bool ew_sandbox_files(const char *const *read, const char *const *write);

#endif
