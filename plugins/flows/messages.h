/* SPDX-License-Identifier: Apache-2.0 */
/* What participants wrote to the driver. Servers send a message again and again until it is
 * acknowledged. */
#ifndef KCAP_FLOWS_MESSAGES_H
#define KCAP_FLOWS_MESSAGES_H

#include "show.h"

#define MAX_IDS_LEN ((size_t)1 << 20) /* of the body that acknowledges messages */

/* Adds the messages of a server's answer about the run, marked like a reviewer's words, and to
 * ids the body that acknowledges them; ids stays empty when there is nothing to acknowledge. */
void messages_render(const struct subject *subject, const char *run_id, const cJSON *doc,
                     struct buf *text, struct buf *ids);

/* They are acknowledged once the answer has arrived; takes ids. A failure is logged: they come
 * again. */
void messages_expect(const struct subject *subject, const char *run_id, struct buf *ids);

/* What the call with this serial showed has not been seen unless it was written. */
void messages_settled(struct flows *flows, uint64_t serial, uint32_t outcome);

void messages_fini(struct flows *flows);

#endif
