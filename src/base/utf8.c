/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8. */
#include "base/utf8.h"

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

void ew_utf8_tame(char *text)
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
