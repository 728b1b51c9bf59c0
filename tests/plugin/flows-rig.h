/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of flows.so share: one plugin on a fake host, with a state directory of its
 * own. */
#ifndef KCAP_TESTS_FLOWS_RIG_H
#define KCAP_TESTS_FLOWS_RIG_H

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "tests/support/fake-host.h"
#include "tests/unit/suite.h"

#define START  "start_review_flow"
#define ROUND  "submit_review_round"
#define STATUS "get_review_flow_status"
#define CLOSE  "close_review_flow"

#define START_ARGS                                                                  \
    "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD\"," \
    "\"target_title\":\"T\",\"context\":\"c\"}"
#define NEW_RUN_ARGS                                                                \
    "{\"kind\":\"code-review\",\"target_kind\":\"commit\",\"target_ref\":\"HEAD\"," \
    "\"target_title\":\"T\",\"context\":\"c\",\"new_run\":true}"
#define CODED(code, message) "{\"error\":\"" code "\",\"message\":\"" message "\"}"

/* What servers say of the run u1. */
#define ANSWER_RUNNING \
    "{\"flow_run_id\":\"u1\",\"round_id\":\"r\",\"round_number\":1,\"status\":\"running\"}"
#define STATUS_RUNNING                                                                    \
    "{\"flow_run_id\":\"u1\",\"status\":\"running\",\"round_number\":1,\"round_status\":" \
    "\"running\"}"
#define STATUS_FINDINGS                                                                   \
    "{\"flow_run_id\":\"u1\",\"status\":\"waiting\",\"round_number\":1,\"round_status\":" \
    "\"findings\",\"round_result_kind\":\"findings\",\"round_result_text\":\"a.c:1: bad\"}"

#define RUN_POLL     "/api/flows/u1[?]wait_sec=15"
#define SESSION_LIST "/api/flows/session/s1[?]state=open"

struct rig {
    const struct kcap_plugin *plugin;
    struct fake_host *fake;
    void *ctx;
};

/* A start whose round goes on. */
extern const struct fake_reply rig_running[3];
/* What a later status call meets: the round is done, and the server lists no sessions. */
extern const struct fake_reply rig_finished[2];

extern struct rig rig;
extern char rig_state_dir[], rig_config_dir[]; /* the latter is not there at first */

/* Fixture: a plugin in a fresh state directory, and its end. */
void rig_setup(void);
void rig_teardown(void);

/* Another process of the same user: the plugin again, on a host of its own. */
void rig_restart(void);

void rig_call(const char *tool, const char *args, struct fake_call *call);

/* As rig_call with no window; the script is replaced first. Returns the text (valid until the
 * next one) and fails the test when there is none. */
const char *rig_ask(const char *tool, const char *args, const struct fake_reply *replies,
                    size_t n, bool want_error);

/* The answer was written, as the host tells it. */
void rig_settle(const struct fake_call *call, uint32_t outcome);

/* Fails the test when text lacks part. */
void rig_has(const char *text, const char *part);
void rig_lacks(const char *text, const char *part);

/* What the session look-up answers: runs u1, u2 ... */
#define LISTED(flows) "{\"session_id\":\"s1\",\"flows\":[" flows "]}"
#define LISTED_U(n, status) \
    "{\"flow_run_id\":\"u" n "\",\"status\":\"" status "\",\"target_title\":\"T" n "\"}"

#endif
