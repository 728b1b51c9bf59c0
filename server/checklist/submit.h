/* SPDX-License-Identifier: Apache-2.0 */
/* Delivering a result the way every reviewer does: through kcap-host --plugin flow-result. */
#ifndef KCAP_CHECKLIST_SUBMIT_H
#define KCAP_CHECKLIST_SUBMIT_H

#include "lib/buf.h"

/* findings NULL: clean. Returns 0 or negative with a line for people in error. */
int submit_result(const char *round_token, const char *findings, struct buf *error);

#endif
