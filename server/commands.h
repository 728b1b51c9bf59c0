/* SPDX-License-Identifier: Apache-2.0 */
/* kcap-flowd status, list, show, tail, stop, backup. */
#ifndef KCAP_SERVER_COMMANDS_H
#define KCAP_SERVER_COMMANDS_H

#include <stdbool.h>

/* Whether word is one of them. */
bool commands_has(const char *word);
/* Runs it; returns the exit status. */
int commands_run(int argc, char **argv);

#endif
