/* SPDX-License-Identifier: Apache-2.0 */
/* In sanitizer builds undefined behaviour traps (cmake/warnings.cmake); the address sanitizer then
 * prints the position. */

__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "handle_sigill=1";
}
