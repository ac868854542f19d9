/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries opened on demand: the message if one is missing. */
#include "base/library.h"

#include "ew_test.h"

static void missing_library_names_its_package(void)
{
    void *library = NULL;
    const struct ew_symbol none[] = {{0}};
    const ew_err e = ew_library_open("libnosuch.so.7", none, &library);
#ifdef EW_STATIC
    EW_EXPECT_INT(e, EW_ERR_UNSUPPORTED);
#else
    EW_EXPECT_ERR(e, EW_ERR_UNSUPPORTED,
                  "libnosuch.so.7 is not installed; Debian's package of it is libnosuch7");
#endif
}

static void missing_module_is_not_installed(void)
{
    void *module = NULL;
    EW_EXPECT_ERR(ew_module_open("libedgewise-nosuch.so", "EDGEWISE_NOSUCH_MODULE", &module),
                  EW_ERR_UNSUPPORTED, "libedgewise-nosuch.so is not installed");
}

EW_TEST_MAIN(EW_TEST(missing_library_names_its_package), EW_TEST(missing_module_is_not_installed))
