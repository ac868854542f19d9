/* SPDX-License-Identifier: Apache-2.0 */
/* Constants shared by writer and reader of engine files. */
#ifndef EW_FORMAT_ENGINE_LAYOUT_H
#define EW_FORMAT_ENGINE_LAYOUT_H

#include <stdint.h>

#include "format/engine_file.h"

#define EW_ENGINE_VERSION 1

/* As in PNG: a non-ASCII byte and both line endings reveal a transfer in text mode. */
#define EW_ENGINE_MAGIC                                                                            \
    "\x89"                                                                                         \
    "EWE\r\n\x1a\n"

enum { EW_ENGINE_PLAN, EW_ENGINE_PACKED, EW_ENGINE_WEIGHTS, EW_ENGINE_SECTIONS };

struct ew_engine_section {
    int64_t offset, bytes;
    uint64_t sum;
};

/* Size of the header, without its checksum. */
#define EW_ENGINE_HEAD (8 * (4 + 3 * EW_ENGINE_SECTIONS))

static inline int64_t ew_engine_page_up(int64_t n)
{
    return (n + EW_ENGINE_PAGE - 1) / EW_ENGINE_PAGE * EW_ENGINE_PAGE;
}

/* Encodes EW_RESIZE_COVER, since numbers in the file are unsigned. */
#define EW_ENGINE_COVER (EW_RESIZE_MAX + 1)

/* From this size weights are in the WEIGHTS section. */
#define EW_ENGINE_LARGE 1024

#endif
