/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that begin with their size. */
#include "base/sized.h"

#include <string.h>

#define LEAST (2 * sizeof(size_t)) /* the size and one field */
#define MOST  ((size_t)4096)       /* larger ones are not initialised */

static size_t size_of(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof(size));
    return size;
}

ew_err ew_sized_check(const void *result)
{
    const size_t size = size_of(result);
    EW_CHECK(size >= LEAST && size <= MOST && size % sizeof(size) == 0, EW_ERR_ARG,
             "a struct's size is %zu bytes: set it to sizeof(the struct)", size);
    return EW_OK;
}

ew_err ew_sized_import(const void *options, void *to, size_t size)
{
    memset(to, 0, size);
    if (options) {
        EW_TRY(ew_sized_check(options));
        const size_t given = size_of(options);
        const unsigned char *bytes = options;
        for (size_t i = size; i < given; i++)
            EW_CHECK(bytes[i] == 0, EW_ERR_UNSUPPORTED,
                     "the options have a field that this library (%s) does not know: byte %zu of "
                     "%zu is set, it knows %zu",
                     EW_VERSION, i, given, size);
        memcpy(to, options, given < size ? given : size);
    }
    memcpy(to, &size, sizeof(size));
    return EW_OK;
}

void ew_sized_export(const void *from, size_t size, void *result)
{
    const size_t room = size_of(result);
    memcpy((char *)result + sizeof(room), (const char *)from + sizeof(size),
           (room < size ? room : size) - sizeof(room));
    if (room > size)
        memset((char *)result + size, 0, room - size);
}
