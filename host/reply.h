/* SPDX-License-Identifier: Apache-2.0 */
/* The lines we send: compact JSON-RPC, one message a line, with its LF. Ids and tokens are raw
 * JSON text. */
#ifndef KCAP_HOST_REPLY_H
#define KCAP_HOST_REPLY_H

#include <kcap/plugin.h>
#include <stdbool.h>

#include "lib/buf.h"

#define REPLY_MAX_LEN (96u << 20) /* a plugin's longest answer, escapes included */

/* A result whose JSON text is given. */
void reply_result(struct buf *to, const char *id, size_t id_len, const char *result,
                  size_t result_len);

/* An error. id NULL: no id member; data NULL: none, else JSON text. */
void reply_error(struct buf *to, const char *id, size_t id_len, int code, const char *message,
                 const char *data);

/* A tool's result. json NULL: no structured content. */
void reply_call(struct buf *to, const char *id, bool is_error, const char *text,
                size_t text_len, const char *json, size_t json_len);

/* notifications/progress; total below 0 and text NULL are left out. */
void reply_progress(struct buf *to, const char *token, double done, double total,
                    const char *text);

/* The tools/list result of a plugin. */
void reply_tools(struct buf *to, const struct kcap_plugin *plugin);

#endif
