/* SPDX-License-Identifier: Apache-2.0 */
/* Memory traffic of an operator's call. */
#ifndef EW_ADVISE_CALL_BYTES_H
#define EW_ADVISE_CALL_BYTES_H

#include "graph/op.h"

/* Bytes if each tensor of the call is read or written once; only the first n_in inputs and their
 * gradients count. */
double ew_call_bytes(const struct ew_call *c, int n_in);

#endif
