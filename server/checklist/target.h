/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver names as the target of its review, as something git can be asked for. */
#ifndef KCAP_CHECKLIST_TARGET_H
#define KCAP_CHECKLIST_TARGET_H

#include "lib/buf.h"
#include "server/checklist/change.h"

/* Fills *ret with what kind and ref mean; it borrows ref. Whatever is not known for certain is
 * refused with a line for people in error: a review of something else would look like one of
 * what was meant. Returns 0 or -EINVAL. */
int target_read(const char *kind, const char *ref, struct target *ret, struct buf *error);

#endif
