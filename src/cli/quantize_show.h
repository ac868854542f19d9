/* SPDX-License-Identifier: Apache-2.0 */
/* Output of `edgewise quantize` as a table and as JSON. */
#ifndef EW_CLI_QUANTIZE_SHOW_H
#define EW_CLI_QUANTIZE_SHOW_H

#include "quant/quant_run.h"

ew_err ew_quant_print(const struct ew_quant_result *r, const char *file, int64_t bytes);
ew_err ew_quant_print_json(const struct ew_quant_result *r, const char *file, int64_t bytes);

#endif
