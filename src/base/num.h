/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of numbers, independent of the host program's locale. */
#ifndef EW_BASE_NUM_H
#define EW_BASE_NUM_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Parses all of `text` as a decimal integer, without blanks; false if malformed or out of range. */
bool ew_num_int(const char *text, int64_t *out);

/* Parses a decimal with point and exponent, or "inf", "-inf"; not nan or hexadecimal.  Overflow is
 * an error, underflow gives 0. */
bool ew_num_float(const char *text, double *out);

/* Parses a positive time with unit, "16.7ms", "20us" or "1s", in milliseconds. */
bool ew_num_ms(const char *text, double *out);

#define EW_NUM_CHARS 32 /* for ew_num_text */

/* printf uses a decimal comma in many locales.  Public functions that read or write text begin with
 * EW_C_LOCALE, which sets the thread's C locale until they return; Edgewise's own threads call
 * ew_locale_enter() once. */
#define EW_C_LOCALE                                                                                \
    __attribute__((unused)) EW_CLEANUP(ew_locale_leave) const locale_t host_locale =               \
        ew_locale_enter()

locale_t ew_locale_enter(void); /* returns the previous locale */
void ew_locale_leave(const locale_t *before);

/* A short decimal that reads back as the same double; "inf", "-inf", "nan".  Returns its length. */
int ew_num_text(double x, char out[EW_NUM_CHARS]);

#endif
