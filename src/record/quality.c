/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the qualities of values. */
#include "record/quality.h"

#include <stddef.h>

const char *const ew_quality_names[] = {
#define EW_QUALITY_NAME(id, name) name,
    EW_QUALITY_MAP(EW_QUALITY_NAME)
#undef EW_QUALITY_NAME
        NULL};

const char *ew_quality_name(enum ew_quality q)
{
    return ew_quality_names[q];
}
