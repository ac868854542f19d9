/* SPDX-License-Identifier: Apache-2.0 */
/* A list of texts embedded by the build, as the table `embedded`.  No guard: define EW_EMBED_LIST
 * ("boards_embed.h", made by cmake/embed.cmake), then include this once. */
#include <stddef.h>

#define EW_EMBED(id, file, ...) static const unsigned char embedded_##id[] = {__VA_ARGS__};
#include EW_EMBED_LIST
#undef EW_EMBED

static const struct {
    const char *file, *text; /* NUL-terminated */
    size_t size;             /* including the NUL */
} embedded[] = {
#define EW_EMBED(id, file, ...) {file, (const char *)embedded_##id, sizeof(embedded_##id)},
#include EW_EMBED_LIST
#undef EW_EMBED
};
#undef EW_EMBED_LIST
