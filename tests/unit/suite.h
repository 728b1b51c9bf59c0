/* SPDX-License-Identifier: Apache-2.0 */
/* What every Check suite here has in common: one case, run from main. */
#ifndef KCAP_TESTS_SUITE_H
#define KCAP_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs one suite; the tests are added to the case by add. Returns main's status. */
static inline int
suite_run(const char *name, void (*add)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(tests, 60);
    add(tests);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define N_ROWS(table) ((int)(sizeof(table) / sizeof(table)[0]))

#endif
