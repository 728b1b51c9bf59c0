/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KCAP_LAUNCH_CODEX_ERROR_H
#define KCAP_LAUNCH_CODEX_ERROR_H

#include "lib/buf.h"

/* Appends ": " and what a program's standard error says is wrong, in one line; nothing when it
 * says nothing. Warnings and what Codex adds for its developers are left out, and so is all
 * that it quotes of the user's files, where secrets are. */
void codex_error_add(struct buf *to, const char *errors, size_t len);

#endif
