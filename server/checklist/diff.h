/* SPDX-License-Identifier: Apache-2.0 */
/* What git says changed: files, and lines of them. Fills the list of a struct change. */
#ifndef KCAP_CHECKLIST_DIFF_H
#define KCAP_CHECKLIST_DIFF_H

#include "server/checklist/change.h"

/* Return 0 or negative with git->error. */
int diff_files(struct change *change);      /* between left and right */
int diff_lines(struct change *change);      /* which lines of those are new */
int diff_untracked(struct change *change);  /* files of the working tree git does not know */
int diff_attributes(struct change *change); /* what .gitattributes and core.whitespace want */

#endif
