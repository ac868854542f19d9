/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a board's files through a root: "/" in life, a captured folder in tests.
 *
 * Paths are taken from the root, with or without a leading '/'.  Links are followed as the board
 * would follow them: an absolute one starts again at the root, and no path leaves it. */
#ifndef EW_BASE_ROOTFS_H
#define EW_BASE_ROOTFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct ew_root {
    int fd;
    const char *path; /* as opened, for messages; borrowed */
};

ew_err ew_root_open(const char *path, struct ew_root *out);
void ew_root_close(struct ew_root *r); /* fine for EW_CLEANUP */

/* Reads a small file into buf, NUL-terminated, white space at its end cut off.  EW_ERR_NOT_FOUND
 * where there is none, EW_ERR_LIMIT where it does not fit. */
ew_err ew_root_read(const struct ew_root *r, const char *path, char *buf, size_t size);

/* Reads a file that holds one whole number. */
ew_err ew_root_read_int(const struct ew_root *r, const char *path, int64_t *out);

/* Opens a file for the caller with these flags (O_RDONLY, O_WRONLY | O_TRUNC, ...) to close; never
 * creates one.  On failure errno is left as the system set it. */
ew_err ew_root_open_file(const struct ew_root *r, const char *path, int flags, int *fd);

/* There is a file or folder of this name. */
bool ew_root_has(const struct ew_root *r, const char *path);

/* The names in a folder, sorted, without "." and ".."; from the arena, NULL-terminated. */
ew_err ew_root_list(const struct ew_root *r, const char *path, struct ew_arena *a,
                    const char *const **names, int *n);

#endif
