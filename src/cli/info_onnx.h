/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise info FILE.onnx`: what the file says of itself, before anything is made of it. */
#ifndef EW_CLI_INFO_ONNX_H
#define EW_CLI_INFO_ONNX_H

#include "base/json.h"
#include "format/onnx_summary.h"

void ew_info_onnx_print(const struct ew_onnx_summary *s);
/* "onnx": {...} inside an open object. */
void ew_info_onnx_json(struct ew_json *j, const struct ew_onnx_summary *s);

/* Fails where operators are missing, naming how many. */
ew_err ew_info_onnx_check(const struct ew_onnx_summary *s, const char *path);

#endif
