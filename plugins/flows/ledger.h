/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where events go, into memory and journal, and come back from. */
#ifndef KCAP_FLOWS_LEDGER_H
#define KCAP_FLOWS_LEDGER_H

#include "flows.h"

/* Records an event now; event->session is the key. While another process writes, this waits
 * on call (NULL: not at all), but not for long. A journal that cannot be written is logged once
 * and the work goes on. */
void ledger_note(struct flows *flows, struct kcap_call *call, const struct event *event);

/* Records a START or SUBMIT, unless the ledger has one that it would double: then -EEXIST and a
 * copy of that (see runs_take_double). Returns 0, -EEXIST or -ENOMEM; else as ledger_note. */
int ledger_claim(struct flows *flows, struct kcap_call *call, const struct event *order,
                 const struct runs *passed, struct runs *ret_found);

/* The session's runs that are not over and done with, oldest first. Returns 0 or -ENOMEM. */
int ledger_list(struct flows *flows, const char *session, struct runs *ret);

/* The round of that run that was submitted last, 0 when that is not known, -1 when the run is
 * not. */
int64_t ledger_round(struct flows *flows, const char *session, const char *run_id);

/* Copies the run to ret_found (empty before) if it is known. Returns 0 or -ENOMEM. */
int ledger_find(struct flows *flows, const char *session, const char *run_id,
                struct runs *ret_found);

/* Whether the run is so young that a server may not show it yet. */
bool ledger_is_fresh(struct flows *flows, const char *session, const char *run_id);

/* A call names the run: what was shown of it has arrived. */
void ledger_name(struct flows *flows, struct kcap_call *call, const char *session,
                 const char *run_id);

/* The call with this serial is about to show the outcome of a round; ledger_settled tells
 * whether it was written. */
void ledger_expect(struct flows *flows, uint64_t serial, const char *session,
                   const char *run_id, int64_t round, bool ended);
void ledger_settled(struct flows *flows, uint64_t serial, uint32_t outcome);

/* Why there is no journal at the moment, or NULL. A copy; free it. */
char *ledger_fault(struct flows *flows);

void ledger_fini(struct flows *flows);

#endif
