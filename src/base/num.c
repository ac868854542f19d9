/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of numbers. */
#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libc has a static object for "C": nothing is allocated, or needs freeing. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t ew_locale_enter(void)
{
    return uselocale(c_locale());
}

void ew_locale_leave(const locale_t *before)
{
    uselocale(*before);
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

/* Fast path for multiples of 1e-9 below 1e6 (times, mostly), without printf and reading back.
 * Writes what "%.15g" would and returns its length; 0: not such a number. */
static int billionths_text(double x, char out[EW_NUM_CHARS])
{
    const double scaled = x * 1e9;
    if (!(scaled >= 1 && scaled < 1e15))
        return 0;
    int64_t n = (int64_t)(scaled + 0.5);
    const double back = (double)n / 1e9;
    if (back < x || back > x)
        return 0;
    char digit[16]; /* least significant first */
    int count = 0, decimals = 9, at = 0;
    for (; n % 10 == 0; n /= 10)
        decimals--;
    for (; n > 0; n /= 10)
        digit[count++] = (char)('0' + n % 10);
    const int power = count - 1 - decimals; /* of the first digit */
    const bool small = power < -4;
    const int point = small ? count - 1 : decimals; /* digits after the point */
    if (!small && power < 0)
        at += snprintf(out, EW_NUM_CHARS, "0.%.*s", -1 - power, "000");
    for (int i = count - 1; i >= 0; i--) {
        out[at++] = digit[i];
        if (i == point && i > 0)
            out[at++] = '.';
    }
    for (int i = decimals; i < 0; i++)
        out[at++] = '0';
    out[at] = '\0';
    return small ? at + snprintf(out + at, EW_NUM_CHARS - (size_t)at, "e-%02d", -power) : at;
}

int ew_num_text(double x, char out[EW_NUM_CHARS])
{
    int n = billionths_text(x, out);
    if (n)
        return n;
    EW_C_LOCALE;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, EW_NUM_CHARS, "%.*g", digits, x);
        double back = 0;
        if (!isfinite(x) || (ew_num_float(out, &back) && memcmp(&back, &x, sizeof(x)) == 0))
            break;
    }
    return n;
}

bool ew_num_ms(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"us", 1e-3}, {"ms", 1}, {"s", 1e3}};
    const size_t n = strlen(text);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        char number[32];
        const size_t k = strlen(units[i].unit);
        if (n <= k || n - k >= sizeof(number) || strcmp(text + n - k, units[i].unit) != 0)
            continue;
        memcpy(number, text, n - k);
        number[n - k] = 0;
        if (!ew_num_float(number, out) || !(*out > 0))
            return false;
        *out *= units[i].ms;
        return true;
    }
    return false;
}
