/* SPDX-License-Identifier: Apache-2.0 */
/* The lines we send: compact JSON-RPC, one message a line, with its LF. Ids and tokens are raw
 * JSON text. */
#ifndef KCAP_HOST_REPLY_H
#define KCAP_HOST_REPLY_H

#include <kcap/plugin.h>
#include <stdbool.h>

#include "lib/buf.h"
#include "lib/span.h"

#define REPLY_MAX_LEN (96u << 20) /* a plugin's longest answer, escapes included */

/* A result: its members as JSON text without the braces. server_info not NULL: of the stateless
 * era, with what every result carries there, and cacheable ones with their hints. */
void reply_result(struct buf *to, struct span id, const char *members, const char *server_info,
                  bool cacheable);

/* An error. id absent: no id member; data NULL: none, else JSON text. */
void reply_error(struct buf *to, struct span id, int code, const char *message,
                 const char *data);

/* A tool's answer, in the call's era. */
struct answer;
void reply_call(struct buf *to, const struct kcap_call *call, const struct answer *answer);

/* notifications/progress; total below 0 and text NULL are left out. */
void reply_progress(struct buf *to, const char *token, double done, double total,
                    const char *text);

/* The member "tools" of a tools/list result. */
void reply_tools(struct buf *to, const struct kcap_plugin *plugin);

#endif
