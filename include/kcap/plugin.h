/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kcap/plugin.h - the promise between kcap-host and a plugin, ABI version 1.
 *
 * A plugin is one shared object that exports one constant, kcap_plugin_v1, written with
 * KCAP_REGISTER. The host reads the object's ELF note before it maps the file, reads the
 * descriptor before it calls anything, then calls init once and call as often as the client
 * asks. kcap-host-plugin(3) is the manual, examples/hello a whole plugin.
 *
 * Rules that hold for every function here:
 *
 * - Text is UTF-8. Where a length stands beside it, it need not end in NUL; elsewhere it must.
 *
 * - Pointers passed in are borrowed for the duration of the call: the receiver copies what it
 *   keeps. Pointers returned by the host stay the host's; how long they live is said with each.
 *
 * - Time is monotonic, in nanoseconds, absolute ("until_ns"), from now_ns. A plugin uses no
 *   other clock for waiting and never sleeps, so that tests can run ten minutes in a
 *   millisecond.
 *
 * - Threads: [any] may be called from any thread the host gave the plugin, at the same time as
 *   others; [worker] only from within call, run or a background function, with that call's
 *   handle.
 *
 * - Growth: every struct begins with its own size. Fields and functions are only ever appended;
 *   ask KCAP_HAS before using one that came after 1.0. Another major has another symbol name.
 *
 * ABI changelog (major.minor):
 *
 * - 1.0: first release.
 */
#ifndef KCAP_PLUGIN_H
#define KCAP_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KCAP_ABI_MAJOR 1
#define KCAP_ABI_MINOR 0
#define KCAP_MAGIC     0x4b434150u /* "KCAP" */

/* Trust classes: the ELF note, the descriptor and the directory the file was found in must
 * agree. A process loads one plugin of one class. REVIEWER is what an unattended reviewer may
 * see. */
#define KCAP_CLASS_DRIVER   1u
#define KCAP_CLASS_REVIEWER 2u
#define KCAP_CLASS_SETUP    3u
#define KCAP_CLASS_SERVICE  4u /* the host's own service modules; not for plugins */

/* How call may be entered. SERIAL: one at a time, further calls queue without holding a thread.
 * PARALLEL: at the same time on several workers; the plugin locks its own state. */
#define KCAP_THREADS_SERIAL   1u
#define KCAP_THREADS_PARALLEL 2u

/* Return codes: 0 is success, negative a failure. */
#define KCAP_OK            0
#define KCAP_E_NOMEM       (-1) /* out of memory */
#define KCAP_E_INVALID     (-2) /* an argument breaks the rules of this header */
#define KCAP_E_IO          (-3) /* the system refused: descriptor, file, thread */
#define KCAP_E_REFUSED     (-4) /* not allowed to this class, or not in this environment */
#define KCAP_E_UNSUPPORTED (-5) /* this host has no such thing */
#define KCAP_E_BUSY        (-6) /* a limit is reached; try again later */

/*
 * What ended a wait. The last three are ends of the call itself: each later wait on the same
 * handle returns the same again at once. They are never mixed:
 *
 * - CANCELLED: the client gave up. Say nothing (a result is dropped), keep what was started.
 * - DEADLINE: our own window is over. Give a normal result ("still running", how to go on).
 * - SHUTDOWN: the host leaves within a tenth of a second. Return.
 */
#define KCAP_WAIT_CHANGED   1
#define KCAP_WAIT_FD        2
#define KCAP_WAIT_TIMEOUT   3
#define KCAP_WAIT_CANCELLED 4
#define KCAP_WAIT_DEADLINE  5
#define KCAP_WAIT_SHUTDOWN  6

/* What became of an answer (see settled). */
#define KCAP_SETTLED_WRITTEN     1u /* its last byte left for the client */
#define KCAP_SETTLED_CANCELLED   2u /* the client had cancelled; nothing was written */
#define KCAP_SETTLED_LATE_CANCEL 3u /* written, and a cancel crossed it on the way */
#define KCAP_SETTLED_DROPPED     4u /* never written, and never will be */

#define KCAP_LOG_ERROR 1
#define KCAP_LOG_WARN  2
#define KCAP_LOG_INFO  3
#define KCAP_LOG_DEBUG 4

#define KCAP_FD_READ  1u
#define KCAP_FD_WRITE 2u
#define KCAP_FD_ERROR 4u /* only in revents: error or hang-up */

/* Hints to the client, all four always sent. Be honest: harnesses decide by them whether an
 * unattended agent may call the tool at all. */
#define KCAP_HINT_READ_ONLY   1u /* changes nothing */
#define KCAP_HINT_DESTRUCTIVE 2u /* may destroy something */
#define KCAP_HINT_IDEMPOTENT  4u /* the same call again changes nothing more */
#define KCAP_HINT_OPEN_WORLD  8u /* touches things outside its own service */

#define KCAP_SEQ_NONE   UINT64_MAX /* wait: do not wake on notify */
#define KCAP_TIME_NEVER INT64_MAX  /* wait: no time limit but the call's own */

struct kcap_call; /* one tool call, command or background job; opaque */
struct kcap_host;

/* A descriptor to wait for. Frozen: 8 bytes, never to grow (it crosses as an array). */
struct kcap_fd {
    int32_t fd;
    uint16_t events;  /* KCAP_FD_READ | KCAP_FD_WRITE */
    uint16_t revents; /* set by wait */
};

/* Who is calling, as far as known; unknown members are NULL. Strings live until the call
 * returns. */
struct kcap_client {
    uint32_t struct_size; /* set by the caller to sizeof(struct kcap_client) */
    uint32_t reserved;
    const char *name;       /* clientInfo.name */
    const char *version;    /* clientInfo.version */
    const char *harness;    /* row of the host's harness table, such as "claude-code-print" */
    const char *session_id; /* normalised: trimmed; a GUID as 32 lower-case hex digits */
    const char *session_source; /* where it came from: "_meta.threadId",
                                   "CLAUDE_CODE_SESSION_ID", ... */
    const char *meta;           /* the request's params._meta as JSON text */
};

/* One tool. Lives as long as the plugin. */
struct kcap_tool {
    uint32_t struct_size;    /* sizeof(struct kcap_tool) */
    uint32_t flags;          /* 0 */
    const char *name;        /* 1 to 128 of A-Z a-z 0-9 _ . - ; unique in the plugin */
    const char *title;       /* for people; may be NULL */
    const char *description; /* for the model; under 2 KB, clients cut there */
    /* JSON Schema text, an object schema. The host validates arguments against the subset type,
     * required, enum, minLength, maxLength, minimum, maximum, oneOf of required and
     * additionalProperties before call is entered; null members are dropped first. */
    const char *input_schema;
    const char *output_schema; /* of the structured content; NULL when there is none */
    uint32_t hints;            /* KCAP_HINT_* */
    uint32_t reserved;
};

/* A word for the terminal: kcap-host --plugin NAME -- COMMAND ARG... */
struct kcap_command {
    uint32_t struct_size; /* sizeof(struct kcap_command) */
    uint32_t flags;       /* 0 */
    const char *name;
    const char *summary; /* one line for --help */
    /* Runs instead of serving MCP and owns stdin and stdout. argv[0] is the command's name.
     * SIGINT cancels the call, there is no deadline. Returns the exit status, 0 to 125.
     * [worker] */
    int32_t (*run)(void *ctx, struct kcap_call *call, int32_t argc, const char *const *argv);
};

/* A key=value word the plugin understands after its name on the command line. */
struct kcap_option {
    uint32_t struct_size; /* sizeof(struct kcap_option) */
    uint32_t flags;       /* 0 */
    const char *name;     /* a-z 0-9 - ; no "=" */
    const char *summary;  /* one line for --help */
};

/* The descriptor. Lists are arrays of pointers ended by NULL; a list may itself be NULL. */
struct kcap_plugin {
    uint32_t magic; /* KCAP_MAGIC */
    uint32_t
        struct_size; /* sizeof(struct kcap_plugin); checked against the ELF symbol's size */
    uint16_t abi_major, abi_minor;
    uint32_t trust_class; /* KCAP_CLASS_* ; must equal the note */
    uint32_t threads;     /* KCAP_THREADS_* */
    uint32_t reserved;
    const char *name; /* what --plugin calls it */
    const char *version;
    const char *summary; /* one line for --list-plugins */
    const struct kcap_tool *const *tools;
    const struct kcap_command *const *commands;
    const struct kcap_option *const *options;

    /* Once, before anything else and before the client is answered: no network, no waiting.
     * host stays valid for the life of the process. *ret_ctx is handed to every later call. A
     * negative return refuses the start (the host exits 2); log the reason first. Main thread.
     */
    int32_t (*init)(const struct kcap_host *host, void **ret_ctx);

    /* One tools/call. args is a JSON object, valid against tool->input_schema. Block freely,
     * but wait only through the host. Give exactly one result unless the call was cancelled;
     * returning without one makes the host answer with an error. The return value is 0, or a
     * KCAP_E_* code that is logged. The handle is valid until this function returns. [worker]
     */
    int32_t (*call)(void *ctx, struct kcap_call *call, const struct kcap_tool *tool,
                    const char *args, size_t args_len);

    /* Optional. What became of the answer of the call with this serial: once for each call that
     * was entered,
     * after it returned; LATE_CANCEL may follow a WRITTEN. Never on the thread that reads the
     * client. */
    void (*settled)(void *ctx, uint64_t serial, uint32_t outcome);

    /* Optional. Only in an orderly end; leaving is mostly _exit, so state on disk must be
     * crash-safe at every instruction. */
    void (*fini)(void *ctx);
};

/* What the host offers. The table and everything it returns belong to the host. */
struct kcap_host {
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;

    /* One finished line to stderr: capped at 1 KiB, control characters escaped. No secrets.
     * [any] */
    void (*log)(const struct kcap_host *host, int32_t level, const char *line);

    /* Value of a declared key=value option, or NULL. Lives as long as the process. [any] */
    const char *(*option)(const struct kcap_host *host, const char *name);

    /* Environment variable, or NULL when unset. Lives as long as the process. [any] */
    const char *(*env)(const struct kcap_host *host, const char *name);

    /* Monotonic nanoseconds. [any] */
    int64_t (*now_ns)(const struct kcap_host *host);

    /* Wall clock, milliseconds since 1970 UTC: for records people read, never for waiting.
     * [any] */
    int64_t (*wall_ms)(const struct kcap_host *host);

    /* The host's change counter. Read it before looking at shared state, hand it to wait. [any]
     */
    uint64_t (*seq)(const struct kcap_host *host);

    /* Raises the counter and wakes every waiter. Call it after changing state others wait for.
     * [any] */
    void (*notify)(const struct kcap_host *host);

    /*
     * The one way to wait. Returns a negative code when waiting is impossible, else:
     *
     * - CHANGED: the counter is no longer seen_seq (KCAP_SEQ_NONE: not looked at). No wake is
     *   lost.
     * - FD: at least one of fds[0..n) has revents set.
     * - TIMEOUT: until_ns has come (KCAP_TIME_NEVER: never).
     * - CANCELLED, DEADLINE, SHUTDOWN: see above; they win over the others.
     *
     * n is at most 64; fds may be NULL when n is 0. [worker]
     */
    int32_t (*wait)(struct kcap_call *call, uint64_t seen_seq, struct kcap_fd *fds, uint32_t n,
                    int64_t until_ns);

    /* For foreign poll loops: a descriptor that becomes and stays readable on cancel, deadline
     * and shutdown. Made when first asked for, closed by the host after the call; the plugin
     * must not read, write or close it. Negative when none can be made: give an error and
     * return. [worker] */
    int32_t (*wake_fd)(struct kcap_call *call);

    /* Milliseconds left of this call's window, 0 when over, INT64_MAX without one. [worker] */
    int64_t (*remaining_ms)(struct kcap_call *call);

    /* This call's number in this process, from 1; the one settled names. [worker] */
    uint64_t (*serial)(struct kcap_call *call);

    /* Fills *ret as far as ret->struct_size reaches. [worker] */
    void (*client)(struct kcap_call *call, struct kcap_client *ret);

    /* Tells the client how far the work is: done must rise; total below 0 is unknown; text may
     * be NULL. Does nothing when the client gave no progress token; the host drops what comes
     * too often. Returns 0 or KCAP_WAIT_CANCELLED, _DEADLINE, _SHUTDOWN. [worker] */
    int32_t (*progress)(struct kcap_call *call, double done, double total, const char *text);

    /* The call's answer: text for the model and, when json is not NULL, a JSON object as
     * structured content. is_error marks a failure the agent must act on; the text says what
     * happened and what to do next. The first result wins; a later one, or one after cancel, is
     * dropped. Invalid UTF-8 is replaced. Some clients show their model only one of the two
     * (Codex 0.171.0 and Claude Code 2.1.197: the JSON), so whatever the model must read stands
     * in both. Returns 0, or a negative code (json not an object: an error answer was given).
     * [worker] */
    int32_t (*result)(struct kcap_call *call, int32_t is_error, const char *text,
                      size_t text_len, const char *json, size_t json_len);

    /* Runs fn(bg_call, arg) on another worker. bg_call has no client, no window and no result;
     * it ends only with SHUTDOWN. Leave the outcome in your own state, then notify. If fn
     * cannot be started any more, drop(arg) (may be NULL) runs instead. Returns 0 or a negative
     * code, then neither runs. [any] */
    int32_t (*background)(const struct kcap_host *host,
                          void (*fn)(struct kcap_call *bg_call, void *arg),
                          void (*drop)(void *arg), void *arg);

    /* Optional services by name ("kcap.http/1": kcap/http.h), or NULL when this host or class
     * has none. Loaded on the first request for it; the table lives as long as the process.
     * [any] */
    const void *(*extension)(const struct kcap_host *host, const char *name);

    /* As result, with MCP content blocks (text, image, audio, resource, ...) as the text of a
     * JSON array instead of one text. From the shell the array itself is printed. [worker] */
    int32_t (*content)(struct kcap_call *call, int32_t is_error, const char *content,
                       size_t content_len, const char *json, size_t json_len);

    /* Whether the client declares a capability, such as "sampling". Returns 0, or
     * KCAP_E_UNSUPPORTED after answering the call with the error that says so; return then.
     * [worker] */
    int32_t (*require)(struct kcap_call *call, const char *capability);
};

/* Whether *ptr reaches as far as field. */
#define KCAP_HAS(ptr, field)                                                               \
    ((size_t)((const char *)&(ptr)->field - (const char *)(ptr)) + sizeof((ptr)->field) <= \
     (size_t)(ptr)->struct_size)

/* The ELF note: owner "kcap", type 1, descriptor {abi major, trust class}. */
#define KCAP_NOTE_TYPE 1u
struct kcap_note {
    uint32_t namesz, descsz, type;
    char name[8];
    uint32_t abi_major, trust_class;
};

#define KCAP_EXPORT __attribute__((visibility("default")))
#define KCAP_NOTE(class_)                                                \
    __attribute__((section(".note.kcap"), aligned(4),                    \
                   used)) static const struct kcap_note kcap_note_v1 = { \
        5u, 8u, KCAP_NOTE_TYPE, {'k', 'c', 'a', 'p', 0, 0, 0, 0}, KCAP_ABI_MAJOR, (class_)}

extern KCAP_EXPORT const struct kcap_plugin kcap_plugin_v1;

/*
 * Defines note and descriptor; the rest are designated initialisers in the struct's order:
 *
 *     KCAP_REGISTER(KCAP_CLASS_DRIVER, .threads = KCAP_THREADS_SERIAL, .name = "hello",
 *                   .version = "1.0", .summary = "says hello", .tools = tools,
 *                   .init = hello_init, .call = hello_call);
 */
#define KCAP_REGISTER(class_, ...)                                                         \
    KCAP_NOTE(class_);                                                                     \
    KCAP_EXPORT const struct kcap_plugin kcap_plugin_v1 = {.magic = KCAP_MAGIC,            \
                                                           .struct_size =                  \
                                                               sizeof(struct kcap_plugin), \
                                                           .abi_major = KCAP_ABI_MAJOR,    \
                                                           .abi_minor = KCAP_ABI_MINOR,    \
                                                           .trust_class = (class_),        \
                                                           __VA_ARGS__}

/* log with a format; lines over 1 KiB are cut. */
__attribute__((format(printf, 3, 4))) static inline void
kcap_logf(const struct kcap_host *host, int32_t level, const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    host->log(host, level, line);
}

#ifdef __cplusplus
}
#endif

#endif
