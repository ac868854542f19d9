/* SPDX-License-Identifier: Apache-2.0 */
/* String helpers. */
#ifndef EW_BASE_TEXT_H
#define EW_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

#define EW_BYTE_ORDER_MARK "\xef\xbb\xbf" /* what some editors write first into a file */

/* "net.onnx" ends in ".onnx"; ".onnx" alone does, too. */
static inline bool ew_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && memcmp(text + n - k, end, k) == 0;
}

/* True for "photo.JPG" and a list that has ".jpg" and ends with NULL. */
bool ew_has_extension(const char *name, const char *const *extensions);

/* Appends to the string in `text`, a buffer of `size` bytes; truncates. */
void ew_text_add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
