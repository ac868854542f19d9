/* SPDX-License-Identifier: Apache-2.0 */
/* The test framework: assertions that print both values, guarded buffers, temporary folders,
 * skipping.
 *
 *   static void adds(void)
 *   {
 *       EW_EXPECT_INT(1 + 1, 2);
 *   }
 *
 *   EW_TEST_MAIN(EW_TEST(adds))
 *
 * A program prints one line per case (`ok NAME`, `FAIL NAME`, `skip NAME: why`) and exits with 0,
 * with 1 if a case failed, with 77 if all were skipped; with EW_TEST_TIMES=1 it also prints CPU
 * seconds.  Arguments select the cases whose names contain one of them.  A failed check is counted
 * and the case continues; each check is an expression with its result, so `if (!EW_EXPECT(p))
 * return;` stops. */
#ifndef EW_TEST_H
#define EW_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "edgewise.h"

/* ---- Cases ----------------------------------------------------------------------------------- */

struct ew_test {
    const char *name;
    void (*run)(void);
};

/* clang-format off */
#define EW_TEST(fn) {#fn, fn}
/* clang-format on */

#define EW_TEST_MAIN(...)                                                                          \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct ew_test tests[] = {__VA_ARGS__};                                       \
        return ew_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));                  \
    }

int ew_test_main(int argc, char **argv, const struct ew_test *tests, size_t n);

/* For table-driven programs: begin a case, check, end it, which prints its line.  The main function
 * then returns ew_test_status(). */
void ew_test_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void ew_test_end(void);
int ew_test_status(void);

/* True if large parameter sweeps should be sampled: under an emulator, which is some twenty times
 * slower, and under sanitizers, which find the same in a sample (EW_TEST_QUICK, set by the
 * build). */
bool ew_test_quick(void);

/* CPU seconds since the program began, which do not depend on the machine's load. */
double ew_test_used_s(void);

/* Marks the current case as skipped, with the reason. */
void ew_test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Skips the case and returns from its function. */
#define EW_SKIP(...)                                                                               \
    do {                                                                                           \
        ew_test_skip(__VA_ARGS__);                                                                 \
        return;                                                                                    \
    } while (0)

/* ---- Checks ---------------------------------------------------------------------------------- */

#define EW_EXPECT(cond) ew_expect((cond) ? true : false, #cond, __FILE__, __LINE__)
#ifdef __clang_analyzer__ /* since it does not look into ew_expect */
#undef EW_EXPECT
#define EW_EXPECT(cond) ((cond) ? true : false)
#endif
#define EW_EXPECT_INT(a, b)                                                                        \
    ew_expect_int((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__)
#define EW_EXPECT_STR(a, b)  ew_expect_str((a), (b), #a " == " #b, __FILE__, __LINE__)
#define EW_EXPECT_HAS(a, b)  ew_expect_has((a), (b), #a " contains " #b, __FILE__, __LINE__)
#define EW_EXPECT_SAME(a, b) ew_expect_same((a), (b), #a " is " #b, __FILE__, __LINE__)
#define EW_EXPECT_NEAR(a, b, tol)                                                                  \
    ew_expect_near((double)(a), (double)(b), (tol), #a " ~ " #b, __FILE__, __LINE__)
/* The call must return EW_OK; else its message is shown. */
#define EW_EXPECT_OK(call) ew_expect_err((call), EW_OK, NULL, #call, __FILE__, __LINE__)
/* The call must fail with this code and a message that contains `text`. */
#define EW_EXPECT_ERR(call, code, text)                                                            \
    ew_expect_err((call), (code), (text), #call, __FILE__, __LINE__)
/* |a[i] - b[i]| <= atol + rtol * |b[i]| for all i < n, and nan only where both are nan; float or
 * double arrays.  Shows the number of mismatches and the worst one. */
#define EW_EXPECT_CLOSE(a, b, n, rtol, atol)                                                       \
    _Generic((a), float *: ew_expect_close_f32, const float *: ew_expect_close_f32,                \
             double *: ew_expect_close_f64, const double *: ew_expect_close_f64)(                  \
        (a), (b), (n), (const double[]){(rtol), (atol)},                                           \
        &(const struct ew_where){#a " ~ " #b, __FILE__, __LINE__})

struct ew_where {
    const char *what, *file;
    int line;
};

/* Records a failure found by other means; `fmt` describes it. */
void ew_test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define EW_FAIL(...) ew_test_fail(__FILE__, __LINE__, __VA_ARGS__)

bool ew_expect(bool ok, const char *what, const char *file, int line);
bool ew_expect_int(int64_t a, int64_t b, const char *what, const char *file, int line);
bool ew_expect_str(const char *a, const char *b, const char *what, const char *file, int line);
bool ew_expect_has(const char *a, const char *b, const char *what, const char *file, int line);
bool ew_expect_same(const void *a, const void *b, const char *what, const char *file, int line);
bool ew_expect_near(double a, double b, double tol, const char *what, const char *file, int line);
bool ew_expect_err(ew_err got, ew_err want, const char *text, const char *what, const char *file,
                   int line);
bool ew_expect_close_f32(const float *a, const float *b, size_t n, const double tol[2],
                         const struct ew_where *at);
bool ew_expect_close_f64(const double *a, const double *b, size_t n, const double tol[2],
                         const struct ew_where *at);

/* ---- The log --------------------------------------------------------------------------------- */

/* Listens to the library's log, from an empty one on. */
void ew_test_listen(void);
/* The number of lines that were logged since then and contain `text`. */
int ew_test_heard(const char *text);

/* ---- Guarded buffers --------------------------------------------------------------------------
 * Buffers between inaccessible pages: reading or writing beyond them faults.
 *
 *   ew_guard_end:    | none |  canary.. buffer | none |    an over-read faults
 *   ew_guard_start:  | none | buffer ..canary  | none |    an under-read faults
 *
 * With `align` (a power of two; 0: 1) a few bytes may remain between the end of the buffer and its
 * page boundary; these and the rest of the page are a canary that ew_guard_free checks.  The
 * initial contents are 0xa5. */
void *ew_guard_end(size_t bytes, size_t align);
void *ew_guard_start(size_t bytes);
void ew_guard_free(void *p); /* p may be NULL; a damaged canary fails the case */

/* ---- Files ----------------------------------------------------------------------------------- */

/* The program's temporary folder, created at the first call, removed at exit. */
const char *ew_test_dir(void);

/* "DIR/name" in that folder; the last 8 results are valid. */
const char *ew_test_path(const char *name);

/* Writes a file into that folder and returns its path. */
const char *ew_test_file(const char *name, const void *data, size_t size);

#endif
