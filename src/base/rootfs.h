/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a board's files below a root folder: "/", or a captured board in tests.
 *
 * Paths are relative to the root, with or without a leading '/'.  Symbolic links are resolved
 * inside the root, as by chroot; no path leaves it. */
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

/* Reads a small file into buf, NUL-terminated, without trailing white space.  EW_ERR_NOT_FOUND, or
 * EW_ERR_LIMIT if it does not fit. */
ew_err ew_root_read(const struct ew_root *r, const char *path, char *buf, size_t size);

/* Reads a file that contains one integer. */
ew_err ew_root_read_int(const struct ew_root *r, const char *path, int64_t *out);

/* Opens a file with these flags (O_RDONLY, O_WRONLY
 * O_TRUNC, ...), which the caller closes; never creates one.  On failure errno is preserved. */
ew_err ew_root_open_file(const struct ew_root *r, const char *path, int flags, int *fd);

/* True if the file or folder exists. */
bool ew_root_has(const struct ew_root *r, const char *path);

/* The names in a folder, sorted, without "." and ".."; from the arena, NULL-terminated. */
ew_err ew_root_list(const struct ew_root *r, const char *path, struct ew_arena *a,
                    const char *const **names, int *n);

#endif
