/* SPDX-License-Identifier: Apache-2.0 */
/* What a store answers before any figure: what was measured, on what, what is best, where the time
 * goes, what to do.  Sentences, each with its figure, made from the runs alone. */
#ifndef EW_REPORT_FINDINGS_H
#define EW_REPORT_FINDINGS_H

#include "report/run_data.h"

#define EW_FINDINGS      5
#define EW_FINDING_CHARS 320

/* Fills text[]; returns how many sentences the data allows. */
int ew_findings(const struct ew_results *r, char text[EW_FINDINGS][EW_FINDING_CHARS]);

#endif
