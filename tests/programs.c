/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of all test programs and fuzz targets.  They are one executable, linked once,
 * which dispatches on the name it is called by: build/dev/tests/test_plan is a link to it. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz/fuzz_main.h"

#define EW_PROGRAM(name)     int name(int argc, char **argv);
#define EW_FUZZ_TARGET(name) ew_fuzz_target name;
#include "test_programs.h"
#undef EW_PROGRAM
#undef EW_FUZZ_TARGET

struct program {
    const char *name;
    int (*main)(int argc, char **argv); /* NULL for fuzz targets */
    ew_fuzz_target *target;
};

/* clang-format off */
#define EW_PROGRAM(name)     {#name, name, NULL},
#define EW_FUZZ_TARGET(name) {#name, NULL, name},
/* clang-format on */
static const struct program programs[] = {
#include "test_programs.h"
};

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    for (size_t i = 0; i < EW_COUNT(programs); i++) {
        const struct program *p = &programs[i];
        if (strcmp(name, p->name) == 0)
            return p->main ? p->main(argc, argv) : ew_fuzz_main(argc, argv, p->target);
    }
    fprintf(stderr, "%s: call it by the name of a test program, for example test_plan\n", name);
    return 2;
}
