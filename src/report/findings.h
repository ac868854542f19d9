/* SPDX-License-Identifier: Apache-2.0 */
/* Summary of a database in at most five sentences with numbers: what was measured, on which
 * machine, which configuration is best, where the time goes, what to change. */
#ifndef EW_REPORT_FINDINGS_H
#define EW_REPORT_FINDINGS_H

#include "report/run_data.h"

#define EW_FINDINGS      5
#define EW_FINDING_CHARS 320

/* Fills text[]; returns how many sentences the data allows. */
int ew_findings(const struct ew_results *r, char text[EW_FINDINGS][EW_FINDING_CHARS]);

#endif
