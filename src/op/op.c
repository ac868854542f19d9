/* SPDX-License-Identifier: Apache-2.0 */
/* The operator registry, from the build's list of op_*.c. */
#include "graph/op.h"

#include <string.h>

#define EW_OP(name) extern const struct ew_op ew_op_##name;
#include "op_list.h"
#undef EW_OP

static const struct ew_op *const table[] = {
#define EW_OP(name) &ew_op_##name,
#include "op_list.h"
#undef EW_OP
    NULL, /* not empty even without operators */
};

int ew_op_count(void)
{
    return (int)EW_COUNT(table) - 1;
}

const struct ew_op *ew_op_at(int i)
{
    return table[i];
}

const struct ew_op *ew_op_find(const char *name)
{
    for (int i = 0; i < ew_op_count(); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

/* Default domain: NULL, "" and "ai.onnx" are the same. */
static bool same_domain(const char *a, const char *b)
{
    const char *x = a && strcmp(a, "ai.onnx") != 0 ? a : "";
    const char *y = b && strcmp(b, "ai.onnx") != 0 ? b : "";
    return strcmp(x, y) == 0;
}

/* `name` is "domain:Type". */
static bool is_qualified(const char *name, const char *type, const char *domain)
{
    const size_t n = domain ? strlen(domain) : 0;
    return n && strncmp(name, domain, n) == 0 && name[n] == ':' && strcmp(name + n + 1, type) == 0;
}

static bool takes(const struct ew_onnx_map *m, const char *type, const char *domain)
{
    const bool same = same_domain(m->domain, domain);
    if (same && m->type && strcmp(m->type, type) == 0)
        return true;
    for (const char *const *p = m->also; p && *p; p++)
        if ((same && strcmp(*p, type) == 0) || is_qualified(*p, type, domain))
            return true;
    return false;
}

const struct ew_op *ew_op_find_onnx(const char *type, const char *domain)
{
    for (int i = 0; i < ew_op_count(); i++)
        if (takes(&table[i]->onnx, type, domain))
            return table[i];
    return NULL;
}
