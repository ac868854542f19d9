/* SPDX-License-Identifier: Apache-2.0 */
/* Undefined behaviour traps in sanitizer builds (cmake/warnings.cmake): the address sanitizer then
 * prints where. */

__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "handle_sigill=1";
}
