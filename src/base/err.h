/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and the thread's last error message.  Printing is left to the CLI. */
#ifndef EW_BASE_ERR_H
#define EW_BASE_ERR_H

#include "edgewise.h" /* ew_err, ew_error_message */

/* Stores the formatted message for this thread and returns `code`. */
ew_err ew_fail(ew_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
#ifdef __clang_analyzer__ /* tells the analyser that the result is not EW_OK */
#define ew_fail(code, ...) (ew_fail((code), __VA_ARGS__), (code))
#endif

/* Prepends "context: " to the thread's message and returns `code`, to name the file or node while
 * the error propagates.  EW_OK is returned unchanged. */
ew_err ew_fail_in(ew_err code, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Propagates a failure to the caller. */
#define EW_TRY(call)                                                                               \
    do {                                                                                           \
        const ew_err ew_try_err_ = (call);                                                         \
        if (ew_try_err_ != EW_OK)                                                                  \
            return ew_try_err_;                                                                    \
    } while (0)

/* Fails unless `cond`, with a message: for anything that a user, file or device can cause. */
#define EW_CHECK(cond, code, ...)                                                                  \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return ew_fail((code), __VA_ARGS__);                                                   \
    } while (0)

/* Checks a required pointer argument of a public function. */
#define EW_NEED(pointer)                                                                           \
    EW_CHECK((pointer) != NULL, EW_ERR_ARG, "%s: %s is NULL", __func__, #pointer)

/* For programming errors; enabled in tests and debug builds. */
#ifdef NDEBUG
#define EW_ASSERT(cond) ((void)sizeof(cond))
#else
#define EW_ASSERT(cond) ((cond) ? (void)0 : ew_assert_failed(__FILE__, __LINE__, #cond))
#endif
_Noreturn void ew_assert_failed(const char *file, int line, const char *what);

/* Calls `fn(&variable)` when the variable goes out of scope. */
#define EW_CLEANUP(fn) __attribute__((cleanup(fn)))

#endif
