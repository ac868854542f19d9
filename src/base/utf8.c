/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8. */
#include "base/utf8.h"

#include <limits.h>
#include <stdint.h>

int ew_utf8_length(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    const int want = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (int i = 1; i < want; i++) {
        if ((size_t)i >= n)
            return -1;
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        if (i > 1)
            continue;
        const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
        const bool surrogate = s[0] == 0xed && s[1] > 0x9f;
        const bool beyond = s[0] == 0xf4 && s[1] > 0x8f;
        if (overlong || surrogate || beyond)
            return 0;
    }
    return want;
}

bool ew_utf8_is_control(const unsigned char *s, int length)
{
    if (length == 1)
        return (s[0] < 0x20 && s[0] != '\n' && s[0] != '\t') || s[0] == 0x7f;
    if (length == 2)
        return s[0] == 0xc2 && s[1] < 0xa0; /* U+0080 to U+009F */
    if (length != 3 || s[0] != 0xe2)
        return false;
    const int low = (s[1] & 0x3f) << 6 | (s[2] & 0x3f); /* U+2000 + low */
    return low == 0x0e || low == 0x0f || (low >= 0x28 && low <= 0x2e) ||
           (low >= 0x66 && low <= 0x69);
}

static uint32_t code_point(const unsigned char *s, int length)
{
    static const unsigned char lead[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & lead[length];
    for (int i = 1; i < length; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

struct range {
    uint32_t first, last;
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

/* The main blocks of UAX #11 (East Asian Width) and of combining marks (general category Mn): whole
 * blocks, since a wrong column in a rare script is harmless. */
static int point_width(uint32_t c)
{
    static const struct range none[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
                                        {0x064b, 0x065f}, {0x200b, 0x200d}, {0x20d0, 0x20f0},
                                        {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
    static const struct range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                        {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                                        {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                                        {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
    if (c < 0x0300)
        return 1;
    if (in_ranges(none, sizeof(none) / sizeof(none[0]), c))
        return 0;
    return in_ranges(wide, sizeof(wide) / sizeof(wide[0]), c) ? 2 : 1;
}

/* Width of the longest prefix that fits; *bytes is its length. */
static int measure(const char *text, int columns, size_t *bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    int width = 0;
    while (*s) {
        const int n = ew_utf8_length(s, 4); /* the zero at the end stops it */
        const bool shown = n > 0 && !ew_utf8_is_control(s, n);
        const int k = n > 0 ? n : 1, w = shown ? point_width(code_point(s, n)) : 4 * k;
        if (w > columns - width)
            break;
        width += w;
        s += k;
    }
    *bytes = (size_t)(s - (const unsigned char *)text);
    return width;
}

int ew_utf8_width(const char *text)
{
    size_t bytes;
    return measure(text, INT_MAX, &bytes);
}

size_t ew_utf8_fit(const char *text, int columns)
{
    size_t bytes;
    measure(text, columns, &bytes);
    return bytes;
}

void ew_utf8_sanitize(char *text)
{
    for (unsigned char *s = (unsigned char *)text; *s;) {
        const int n = ew_utf8_length(s, 4); /* the zero at the end stops it */
        const int k = n > 0 ? n : 1;
        if (n <= 0 || *s < 0x20 || ew_utf8_is_control(s, n))
            for (int i = 0; i < k; i++)
                s[i] = '?';
        s += k;
    }
}
