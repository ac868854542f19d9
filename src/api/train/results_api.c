/* SPDX-License-Identifier: Apache-2.0 */
/* Results for programs (edgewise_results.h), over store/. */
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "edgewise_results.h"
#include "store/store.h"

struct ew_result_list {
    struct ew_store *store;
    struct ew_rows *rows;
};

EW_API ew_err ew_result_list_open(const char *db, const char *where, const char *order,
                                  struct ew_result_list **out)
{
    EW_C_LOCALE;
    EW_NEED(out);
    *out = NULL;
    EW_NEED(db);
    struct ew_result_list *l = calloc(1, sizeof(*l));
    EW_CHECK(l, EW_ERR_MEMORY, "no memory for results");
    ew_err e = ew_store_open(db, &(struct ew_store_opts){.read_only = true}, &l->store);
    if (e == EW_OK)
        e = ew_store_results(l->store, where, order, &l->rows);
    if (e != EW_OK) {
        ew_store_close(l->store);
        free(l);
        return e;
    }
    *out = l;
    return EW_OK;
}

EW_API ew_err ew_result_list_close(struct ew_result_list *l)
{
    if (!l)
        return EW_OK;
    const ew_err e = ew_rows_free(l->rows);
    ew_store_close(l->store);
    free(l);
    return e;
}

EW_API int ew_result_list_next(struct ew_result_list *l)
{
    EW_C_LOCALE;
    if (!l)
        return 0;
    return ew_rows_next(l->rows);
}

EW_API int ew_result_list_columns(const struct ew_result_list *l)
{
    if (!l)
        return 0;
    return ew_rows_columns(l->rows);
}

EW_API const char *ew_result_list_name(const struct ew_result_list *l, int column)
{
    if (!l)
        return NULL;
    return ew_rows_name(l->rows, column);
}

EW_API int ew_result_list_find(const struct ew_result_list *l, const char *name)
{
    if (!l || !name)
        return -1;
    return ew_rows_find(l->rows, name);
}

EW_API double ew_result_list_number(const struct ew_result_list *l, int column)
{
    if (!l)
        return NAN;
    return ew_rows_num(l->rows, column);
}

EW_API const char *ew_result_list_text(const struct ew_result_list *l, int column)
{
    if (!l)
        return NULL;
    return ew_rows_text(l->rows, column);
}
