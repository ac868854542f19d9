/* SPDX-License-Identifier: Apache-2.0 */
/* `edgewise info FILE.onnx`: the summary of the file, before it is imported. */
#ifndef EW_CLI_INFO_ONNX_H
#define EW_CLI_INFO_ONNX_H

#include "base/json.h"
#include "format/onnx_summary.h"

void ew_info_onnx_print(const struct ew_onnx_summary *s);
/* Writes "onnx": {...} inside an open object. */
void ew_info_onnx_json(struct ew_json *j, const struct ew_onnx_summary *s);

/* Fails if operators are not supported, with their number. */
ew_err ew_info_onnx_check(const struct ew_onnx_summary *s, const char *path);

#endif
