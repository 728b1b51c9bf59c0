/* SPDX-License-Identifier: Apache-2.0 */
/* kcap-checklist: a reviewer without a model. Looks at a change for what no change should have.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/auto.h"
#include "lib/json.h"
#include "server/checklist/change.h"
#include "server/checklist/checks.h"
#include "server/checklist/submit.h"
#include "server/checklist/target.h"

#define EXIT_CLEAN    0
#define EXIT_FINDINGS 1
#define EXIT_TROUBLE  2
#define EXIT_HOPELESS 3 /* of a job: it would fail alike the next time */

#define MAX_JOB ((size_t)32 << 20)

static const char usage[] =
    "usage: kcap-checklist [--base REV] [--commit REV] [DIR]\n"
    "       kcap-checklist --job | --version | --help\n"
    "\n"
    "Looks at a change of the git work tree DIR (the current directory) and prints what it\n"
    "found. Without an option: what is not committed yet.\n"
    "\n"
    "  --commit REV  that commit against its first parent\n"
    "  --base REV    everything from REV to --commit (HEAD)\n"
    "  --job         one job of kcap-flowd on standard input; the result goes to its server\n"
    "\n"
    "Exit status: 0 nothing found, 1 findings, 2 the change could not be looked at. Of a job:\n"
    "0 submitted, 2 not submitted, 3 there is nothing that could be looked at.\n";

static void
visit(void *arg, const struct file *file)
{
    checks_run(file, arg);
}

/* Writes the report to *ret_text, owned. */
static int
review(const char *dir, const struct target *target, char **ret_text, size_t *ret_count,
       struct buf *error)
{
    struct git git;
    struct change change = {0};
    struct report report;
    int r = git_init(&git, dir);

    report_init(&report);
    if (r == 0)
        r = checks_init();
    if (r == 0)
        r = change_load(&change, &git, target);
    if (r == 0)
        r = change_visit(&change, visit, &report);
    if (r == 0) {
        *ret_text = change.label ? report_text(&report, change.label, change.count) : NULL;
        *ret_count = report.count;
        r = *ret_text ? 0 : -ENOMEM;
    }
    if (r < 0)
        buf_adds(error, git.error.len > 0 ? git.error.data : strerror(-r));
    report_fini(&report);
    change_fini(&change);
    checks_fini();
    git_fini(&git);
    return r;
}

static int
print_review(const char *dir, const struct target *target)
{
    AUTO_BUF struct buf error = BUF_INIT(16384);
    AUTO_FREE char *text = NULL;
    size_t count = 0;

    if (review(dir, target, &text, &count, &error) < 0) {
        (void)fprintf(stderr, "kcap-checklist: %s\n", buf_str(&error));
        return EXIT_TROUBLE;
    }
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF)
        return EXIT_TROUBLE;
    return count > 0 ? EXIT_FINDINGS : EXIT_CLEAN;
}

/* ---- run by kcap-flowd ---- */

static cJSON *
read_job(const char **ret_error)
{
    AUTO_BUF struct buf text = BUF_INIT(MAX_JOB);
    ssize_t n = 1;

    while (n != 0 && buf_reserve(&text, 65536)) {
        n = read(STDIN_FILENO, text.data + text.len, 65536);
        if (n < 0 && errno != EINTR)
            break;
        text.len += n > 0 ? (size_t)n : 0;
    }
    return json_parse(buf_str(&text), text.len, ret_error);
}

/* What was looked at, for the driver: a clean result has no text of its own. kcap-flowd reads
 * it before it takes the result. */
static int
print_note(const char *report)
{
    if (printf("%.*s\n", (int)strcspn(report, "\n"), report) < 0 || fflush(stdout) == EOF)
        return -errno;
    return 0;
}

static int
complain(const struct buf *error, int status)
{
    (void)fprintf(stderr, "kcap-checklist: %s\n", buf_str(error));
    return status;
}

static int
run_job(void)
{
    AUTO_BUF struct buf error = BUF_INIT(16384);
    AUTO_FREE char *text = NULL;
    const char *why = "it lacks a member";
    AUTO_JSON cJSON *job = read_job(&why);
    const char *token = json_str(job, "round_token"), *dir = json_str(job, "dir");
    const char *kind = json_str(job, "target_kind"), *ref = json_str(job, "target_ref");
    struct target target;
    size_t count = 0;

    if (!token || !dir || !kind || !ref) {
        (void)fprintf(stderr, "kcap-checklist: no job on standard input: %s\n", why);
        return EXIT_TROUBLE;
    }
    if (target_read(kind, ref, &target, &error) < 0 ||
        review(dir, &target, &text, &count, &error) < 0)
        return complain(&error, EXIT_HOPELESS);
    if (print_note(text) < 0 || submit_result(token, count > 0 ? text : NULL, &error) < 0)
        return complain(&error, EXIT_TROUBLE);
    return 0;
}

/* ---- run by hand ---- */

static int
run_by_hand(const char *base, const char *commit, const char *dir)
{
    AUTO_BUF struct buf range = BUF_INIT(8192);
    struct target target = {.commit = commit};

    if (base) {
        buf_addf(&range, "%s..%s", base, commit ? commit : "HEAD");
        if (!buf_ok(&range))
            return EXIT_TROUBLE;
        target.range = buf_str(&range);
    }
    return print_review(dir, &target);
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {
        {"base", required_argument, NULL, 'b'}, {"commit", required_argument, NULL, 'c'},
        {"job", no_argument, NULL, 'j'},        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
    };
    const char *base = NULL, *commit = NULL;
    bool job = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b') {
            base = optarg;
        } else if (option == 'c') {
            commit = optarg;
        } else if (option == 'j') {
            job = true;
        } else if (option == 'v') {
            (void)puts(PACKAGE_STRING);
            return 0;
        } else if (option == 'h') {
            (void)fputs(usage, stdout);
            return 0;
        } else {
            (void)fputs("kcap-checklist: see kcap-checklist --help\n", stderr);
            return EXIT_TROUBLE;
        }
    }
    if (argc - optind > (job ? 0 : 1) || (job && (base || commit))) {
        (void)fputs("kcap-checklist: too many arguments; see kcap-checklist --help\n", stderr);
        return EXIT_TROUBLE;
    }
    return job ? run_job() : run_by_hand(base, commit, optind < argc ? argv[optind] : ".");
}
