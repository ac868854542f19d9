/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and the thread's last error message.  Printing is left to the CLI. */
#ifndef EW_BASE_ERR_H
#define EW_BASE_ERR_H

#include "edgewise.h" /* ew_err, ew_error_message */

/* Stores the formatted message for this thread and returns `code`. */
ew_err ew_fail(ew_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
#ifdef __clang_analyzer__ /* which would otherwise take EW_OK for possible */
#define ew_fail(code, ...) (ew_fail((code), __VA_ARGS__), (code))
#endif

/* Puts "context: " before the thread's message and returns `code`: names the file or the node on
 * the way up.  Returns EW_OK untouched. */
ew_err ew_fail_in(ew_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Forwards a failure to the caller. */
#define EW_TRY(call)                                                                               \
    do {                                                                                           \
        const ew_err ew_try_err_ = (call);                                                         \
        if (ew_try_err_ != EW_OK)                                                                  \
            return ew_try_err_;                                                                    \
    } while (0)

/* Fails unless `cond`: for whatever a user, file or device can cause.  The message is compulsory.
 */
#define EW_CHECK(cond, code, ...)                                                                  \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return ew_fail((code), __VA_ARGS__);                                                   \
    } while (0)

/* A pointer that a function of the public headers must be given. */
#define EW_NEED(pointer)                                                                           \
    EW_CHECK((pointer) != NULL, EW_ERR_ARG, "%s: %s is NULL", __func__, #pointer)

/* "We have a bug": on in tests and debug builds. */
#ifdef NDEBUG
#define EW_ASSERT(cond) ((void)sizeof(cond))
#else
#define EW_ASSERT(cond) ((cond) ? (void)0 : ew_assert_failed(__FILE__, __LINE__, #cond))
#endif
_Noreturn void ew_assert_failed(const char *file, int line, const char *what);

/* Calls `fn(&variable)` when the variable goes out of scope. */
#define EW_CLEANUP(fn) __attribute__((cleanup(fn)))

#endif
