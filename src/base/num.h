/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to and from text, whatever the locale of the program that embeds us. */
#ifndef EW_BASE_NUM_H
#define EW_BASE_NUM_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The whole of `text` as a decimal number: no blanks, nothing after it.  False where it is not one
 * or does not fit. */
bool ew_num_int(const char *text, int64_t *out);

/* As above; digits, point and exponent, or "inf", "-inf".  No nan, no hexadecimal; what is too
 * large for a double is refused, what is too small becomes 0. */
bool ew_num_float(const char *text, double *out);

/* A time with its unit, "16.7ms", "20us" or "1s", in milliseconds; above 0. */
bool ew_num_ms(const char *text, double *out);

#define EW_NUM_CHARS 32 /* enough for what ew_num_text writes */

/* printf and its kin write a comma for the point in many locales, which readers of our files and
 * attributes refuse.  A public function that makes or reads texts begins with EW_C_LOCALE: until it
 * returns this thread has the C locale, whatever the host has chosen.  Threads of our own begin
 * with ew_locale_enter() and keep it. */
#define EW_C_LOCALE                                                                                \
    __attribute__((unused)) EW_CLEANUP(ew_locale_leave) const locale_t host_locale =               \
        ew_locale_enter()

locale_t ew_locale_enter(void); /* the one before */
void ew_locale_leave(const locale_t *before);

/* A short decimal text that reads back as the same double; "inf", "-inf", "nan".  Returns its
 * length. */
int ew_num_text(double x, char out[EW_NUM_CHARS]);

#endif
