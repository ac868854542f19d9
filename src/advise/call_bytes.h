/* SPDX-License-Identifier: Apache-2.0 */
/* What a call of an operator moves. */
#ifndef EW_ADVISE_CALL_BYTES_H
#define EW_ADVISE_CALL_BYTES_H

#include "graph/op.h"

/* Each tensor that the call names is read or written once; of the inputs and their gradients the
 * first n_in. */
double ew_call_bytes(const struct ew_call *c, int n_in);

#endif
