/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to and from text. */
#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libc keeps one static object for "C": this allocates nothing and is never freed. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

bool ew_num_int(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    const long long v = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return false;
    *out = v;
    return true;
}

bool ew_num_float(const char *text, double *out)
{
    const bool minus = *text == '-';
    if (strcmp(text + minus, "inf") == 0) {
        *out = minus ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (!*text || strspn(text, "+-.eE0123456789") != strlen(text))
        return false;
    char *end;
    const double v = strtod_l(text, &end, c_locale());
    if (*end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

int ew_num_text(double x, char out[EW_NUM_CHARS])
{
    const locale_t before = uselocale(c_locale());
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, EW_NUM_CHARS, "%.*g", digits, x);
        double back = 0;
        if (!isfinite(x) || (ew_num_float(out, &back) && memcmp(&back, &x, sizeof(x)) == 0))
            break;
    }
    uselocale(before);
    return n;
}
