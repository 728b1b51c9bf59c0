/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results on disk before they are sent: one file for each agent and round token, below the
 * state directory. Whoever delivers an entry holds its lock, so that two processes of one
 * reviewer do not send it at the same time.
 */
#ifndef KCAP_FLOW_RESULT_SPOOL_H
#define KCAP_FLOW_RESULT_SPOOL_H

#include <kcap/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"

#define SPOOL_MAX_FILES 64

/* Not locked: one thread at a time. */
struct spool {
    const struct kcap_host *host;
    const char *agent_id;
    char *dir;        /* NULL: not looked for yet, or none */
    bool is_given_up; /* there is none */
    bool has_warned;
    bool has_lost_one; /* an entry was damaged, and nobody knows which round it was for */
};

struct spool_entry {
    char *path; /* NULL: none */
    int fd;     /* the lock */
    char *round_token, *server, *source;
    char *body;
    size_t body_len;
    bool may_be_there; /* it may have been sent, with no answer seen */
};

void spool_init(struct spool *spool, const struct kcap_host *host, const char *agent_id);
void spool_fini(struct spool *spool);

/* Whether results can be kept, and where; NULL when not. Borrowed. */
const char *spool_dir(struct spool *spool);

/* How many entries of this agent are waiting. */
size_t spool_count(struct spool *spool);

/* Keeps a result before it is sent; the strings are copied. That it cannot be kept is logged
 * once. ret->may_be_there tells of an earlier try. */
void spool_put(struct spool *spool, const char *round_token, const char *server,
               const char *source, const char *body, size_t body_len, struct spool_entry *ret);

/* The agent's entries, to be opened one by one: names, newline-separated. */
void spool_list(struct spool *spool, struct buf *ret_names);

/* Locks and reads one. False when there is none any more, another process has it, or it is
 * damaged, which removes it. */
bool spool_open(struct spool *spool, const char *name, struct spool_entry *ret);

/* The entry is for the round of that token. */
bool spool_is_for(const struct spool_entry *entry, const char *round_token);

/* It is delivered, or will never be: gone. */
void spool_remove(struct spool_entry *entry);

/* Notes whether it may have been recorded: before a try that it may, after a refusal that it
 * was not. */
void spool_set_state(struct spool *spool, struct spool_entry *entry, bool may_be_there);

void spool_entry_fini(struct spool_entry *entry);

#endif
