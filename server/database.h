/* SPDX-License-Identifier: Apache-2.0 */
/* The store's file: opened as we need it, with the tables of this version. */
#ifndef KCAP_SERVER_DATABASE_H
#define KCAP_SERVER_DATABASE_H

#include <sqlite3.h>

#include "lib/buf.h"

/* Makes the file, for its owner alone, and the tables when they are missing. *ret is to be
 * closed also after a failure. Returns 0 or negative with a line for people in error. */
int database_open(const char *path, sqlite3 **ret, struct buf *error);

#endif
