/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of client sessions in one spelling, so that the same session is the same everywhere.
 */
#ifndef KCAP_LIB_SESSION_ID_H
#define KCAP_LIB_SESSION_ID_H

#define SESSION_ID_MAX_LEN 256

/* Trimmed; a GUID becomes 32 lower-case hex digits. NULL when blank, over SESSION_ID_MAX_LEN
 * bytes, or out of memory. */
char *session_id_normalise(const char *id);

#endif
