/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of flow-result.so share: the module as shipped on a fake host. */
#ifndef KCAP_TESTS_REVIEWER_RIG_H
#define KCAP_TESTS_REVIEWER_RIG_H

#include "tests/support/fake-host.h"
#include "tests/unit/suite.h"

extern const struct kcap_plugin *reviewer_plugin;
extern struct fake_host *reviewer_fake;
extern void *reviewer_ctx;
extern char reviewer_state[]; /* the state directory, new for each test */

void reviewer_setup(void);
void reviewer_teardown(void);

/* The process ends here, and another begins on the same state. */
void reviewer_stop(void);
void reviewer_start(void);

void reviewer_call(const char *tool, const char *args, struct fake_call *call);

/* Text, flag and structured content say the same of the three outcomes: D(elivered), N(ot
 * delivered) or U(nknown). */
void reviewer_check_outcome(const char *name, char outcome, const struct fake_call *call);

#endif
