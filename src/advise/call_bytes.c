/* SPDX-License-Identifier: Apache-2.0 */
/* Memory traffic of an operator's call. */
#include "advise/call_bytes.h"

static double bytes_of(struct ew_tensor *const *list, int n)
{
    double sum = 0;
    for (int i = 0; list && i < n; i++)
        if (list[i])
            sum += (double)ew_tensor_bytes(list[i]);
    return sum;
}

double ew_call_bytes(const struct ew_call *c, int n_in)
{
    return bytes_of(c->in, n_in) + bytes_of(c->out, c->n_out) + bytes_of(c->dout, c->n_out) +
           bytes_of(c->din, n_in);
}
