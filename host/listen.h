/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions/listen of the stateless era. Our tool list never changes, so a subscription is
 * acknowledged with nothing in it, and ended at the end of input or by a cancel. Main thread.
 */
#ifndef KCAP_HOST_LISTEN_H
#define KCAP_HOST_LISTEN_H

#include <stdbool.h>

#include "lib/buf.h"
#include "lib/span.h"

#define LISTEN_MAX 64

struct listen {
    char *ids[LISTEN_MAX]; /* raw tokens of the requests */
    unsigned n;
};

/* Opens a subscription and appends its acknowledgement to line. False when there are too many.
 */
bool listen_open(struct listen *listen, struct span id, struct buf *line);

bool listen_has(const struct listen *listen, struct span id);

/* Ends it without a word. False when there is none of this id. */
bool listen_cancel(struct listen *listen, struct span id);

/* Appends the closing result of one subscription to line and ends it; false when none is left.
 */
bool listen_close_one(struct listen *listen, struct buf *line, const char *server_info);

#endif
