/* SPDX-License-Identifier: Apache-2.0 */
/* list_reviewer_vendors: who could review this repository right now. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "lib/auto.h"
#include "lib/text.h"
#include "origin.h"
#include "show.h"

#define LIST_PATH     "/api/daemons"
#define LOOK_LIMIT_MS 20000
#define MAX_NAMES     64u
#define MAX_PATH_LEN  2048u /* of a request */
#define MAX_ERROR     16384u

struct name {
    const char *vendor; /* borrowed from the answer */
    int daemons;
    bool model_override; /* all of them can resolve models */
};

struct names {
    struct name items[MAX_NAMES];
    size_t n;
};

struct survey {
    const char *repository; /* its root, or NULL: in none */
    char *identity;         /* "owner/name", or NULL */
    char *machine;          /* this one's id, or NULL */
    int connected, hosting, skipped;
    struct names reviewers, attended; /* the latter are supported only under supervision */
    const char *reason;               /* why there are no reviewers */
    char *error;                      /* what went wrong, for people */
};

static void
survey_fini(struct survey *survey)
{
    free(survey->identity);
    free(survey->machine);
    free(survey->error);
}
#define AUTO_SURVEY __attribute__((cleanup(survey_fini)))

/* ---- what the daemons say ---- */

static struct name *
find(struct names *names, const char *vendor)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->items[i].vendor, vendor) == 0)
            return &names->items[i];
    }
    return NULL;
}

/* Counts one daemon for the vendor; can_resolve: it can resolve models for it. */
static void
count(struct names *names, const char *vendor, bool can_resolve)
{
    struct name *name = find(names, vendor);

    if (!name) {
        if (names->n == MAX_NAMES)
            return;
        name = &names->items[names->n++];
        *name = (struct name){.vendor = vendor, .model_override = true};
    }
    name->daemons++;
    name->model_override = name->model_override && can_resolve;
}

static bool
lists(const cJSON *list, const char *text)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
            return true;
    }
    return false;
}

/* Whether an earlier element says the same. */
static bool
is_repeated(const cJSON *list, const cJSON *item)
{
    const cJSON *first;

    cJSON_ArrayForEach(first, list)
    {
        if (first == item)
            return false;
        if (cJSON_IsString(first) && strcmp(first->valuestring, item->valuestring) == 0)
            return true;
    }
    return false;
}

static bool
can_resolve_models(const cJSON *daemon, const char *vendor)
{
    const cJSON *one, *list = json_get(daemon, "unattended_vendor_capabilities");

    cJSON_ArrayForEach(one, list)
    {
        const char *name = json_str(one, "vendor");
        if (name && strcmp(name, vendor) == 0)
            return json_bool(one, "supports_reviewer_model_resolution", false);
    }
    return false;
}

static const cJSON *
array(const cJSON *object, const char *name)
{
    const cJSON *item = json_get(object, name);

    return cJSON_IsArray(item) ? item : NULL;
}

static void
count_vendors(struct survey *survey, const cJSON *daemon)
{
    const cJSON *item, *unattended = array(daemon, "unattended_vendors");
    const cJSON *supported = array(daemon, "supported_vendors");

    cJSON_ArrayForEach(item, unattended)
    {
        if (cJSON_IsString(item) && !text_is_blank(item->valuestring) &&
            !is_repeated(unattended, item))
            count(&survey->reviewers, item->valuestring,
                  can_resolve_models(daemon, item->valuestring));
    }
    cJSON_ArrayForEach(item, supported)
    {
        if (cJSON_IsString(item) && !text_is_blank(item->valuestring) &&
            !is_repeated(supported, item) && !lists(unattended, item->valuestring))
            count(&survey->attended, item->valuestring, false);
    }
}

static bool
is_same_dir(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);

    while (a_len > 1 && a[a_len - 1] == '/')
        a_len--;
    while (b_len > 1 && b[b_len - 1] == '/')
        b_len--;
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* Whether the daemon is on this machine, as far as that can be told, and has the repository. */
static bool
hosts(const struct survey *survey, const cJSON *daemon)
{
    const cJSON *path, *paths = array(daemon, "repo_paths");
    const char *machine = json_str(daemon, "machine_id");

    if (survey->machine && (!machine || strcmp(machine, survey->machine) != 0))
        return false;
    cJSON_ArrayForEach(path, paths)
    {
        if (cJSON_IsString(path) && is_same_dir(path->valuestring, survey->repository))
            return true;
    }
    return false;
}

static void
take_daemons(struct survey *survey, const cJSON *list)
{
    const cJSON *daemon;

    cJSON_ArrayForEach(daemon, list)
    {
        if (!array(daemon, "repo_paths")) {
            survey->skipped++;
            continue;
        }
        survey->connected++;
        if (!hosts(survey, daemon))
            continue;
        survey->hosting++;
        count_vendors(survey, daemon);
    }
    if (survey->reviewers.n > 0)
        return;
    survey->reason = survey->connected == 0 && survey->skipped > 0 ? "schema_skew"
                     : survey->connected == 0                      ? "no_daemons_connected"
                     : survey->hosting == 0                        ? "no_repo_hosting_daemon"
                                                                   : "no_unattended_reviewer";
}

/* ---- the answer ---- */

static int
by_vendor(const void *a, const void *b)
{
    const struct name *one = a, *other = b;

    return strcmp(one->vendor, other->vendor);
}

static bool
add_repository(cJSON *json, const struct survey *survey)
{
    cJSON *repository = cJSON_AddObjectToObject(json, "repo");

    return repository && json_add_str(repository, "identity", survey->identity) &&
           cJSON_AddBoolToObject(repository, "resolved", survey->repository != NULL);
}

static bool
add_reviewers(cJSON *json, struct names *names)
{
    cJSON *list = cJSON_AddArrayToObject(json, "reviewers");

    qsort(names->items, names->n, sizeof names->items[0], by_vendor);
    for (size_t i = 0; list && i < names->n; i++) {
        const struct name *name = &names->items[i];
        cJSON *one = cJSON_CreateObject();
        if (!one || !cJSON_AddItemToArray(list, one) ||
            !json_add_str(one, "vendor", name->vendor) ||
            !cJSON_AddNumberToObject(one, "daemons", name->daemons) ||
            !cJSON_AddBoolToObject(one, "model_override", name->model_override))
            return false;
    }
    return list != NULL;
}

static bool
add_attended(cJSON *json, struct names *names)
{
    cJSON *list = cJSON_AddArrayToObject(json, "supported_but_not_unattended");

    qsort(names->items, names->n, sizeof names->items[0], by_vendor);
    for (size_t i = 0; list && i < names->n; i++) {
        cJSON *one = cJSON_CreateString(names->items[i].vendor);
        if (!one || !cJSON_AddItemToArray(list, one))
            return false;
    }
    return list != NULL;
}

static bool
add_diagnostics(cJSON *json, struct survey *survey)
{
    cJSON *to = cJSON_AddObjectToObject(json, "diagnostics");

    return to && cJSON_AddNumberToObject(to, "connected_daemons", survey->connected) &&
           cJSON_AddNumberToObject(to, "repo_hosting_daemons", survey->hosting) &&
           cJSON_AddNumberToObject(to, "skipped_daemon_records", survey->skipped) &&
           add_attended(to, &survey->attended) && json_add_str(to, "reason", survey->reason) &&
           json_add_str(to, "error", survey->error);
}

/* Which agent this is, in the servers' words for vendors; NULL when that is not known. */
static const char *
driver_vendor(const struct subject *subject)
{
    static const char *const vendors[] = {"cursor", "copilot",  "gemini",
                                          "kiro",   "opencode", "antigravity",
                                          "claude", "codex",    NULL};
    const struct kcap_host *host = subject->flows->host;
    struct kcap_client client = {.struct_size = sizeof client};
    const char *told = host->option(host, "driver");

    host->client(subject->call, &client);
    for (const char *const *vendor = vendors; *vendor; vendor++) {
        size_t len = strlen(*vendor);
        if (told ? strcmp(told, *vendor) == 0
                 : client.harness && strncmp(client.harness, *vendor, len) == 0)
            return *vendor;
    }
    return NULL;
}

static int32_t
show_survey(const struct subject *subject, struct survey *survey)
{
    AUTO_JSON cJSON *json = cJSON_CreateObject();
    AUTO_FREE char *printed = NULL;

    if (!json || !add_repository(json, survey) ||
        !json_add_str(json, "driver_vendor", driver_vendor(subject)) ||
        !add_reviewers(json, &survey->reviewers) || !add_diagnostics(json, survey))
        return KCAP_E_NOMEM;
    printed = json_print(json);
    if (!printed)
        return KCAP_E_NOMEM;
    return subject->flows->host->result(subject->call, false, printed, strlen(printed), printed,
                                        strlen(printed));
}

/* ---- the call ---- */

/* A server that is reached by a socket is on this machine and has every repository of it: it is
 * told which one is meant. */
static char *
request_path(const struct subject *subject)
{
    AUTO_BUF struct buf path = BUF_INIT(MAX_PATH_LEN);

    buf_adds(&path, LIST_PATH);
    if (strncmp(api_server(subject->flows), "unix:", 5) == 0) {
        buf_adds(&path, "?repo_root=");
        api_add_encoded(&path, subject->session->repository);
    }
    return buf_ok(&path) ? buf_take(&path, NULL) : strdup(LIST_PATH);
}

static int32_t
judge(const struct subject *subject, struct survey *survey, const struct api_answer *answer)
{
    AUTO_BUF struct buf line = BUF_INIT(MAX_ERROR);
    bool answered = answer->status != 0 && answer->status != 401;

    if (answer->kind == API_OK) {
        take_daemons(survey, answer->json);
        return show_survey(subject, survey);
    }
    api_add_error(&line, answer);
    if (!answered)
        return show_error(subject, buf_str(&line));
    survey->reason = answer->kind == API_BAD ? "schema_skew" : "lookup_failed";
    survey->error = buf_take(&line, NULL);
    return show_survey(subject, survey);
}

int32_t
list_reviewer_vendors(struct subject *subject, const cJSON *args)
{
    const struct kcap_host *host = subject->flows->host;
    AUTO_ANSWER struct api_answer answer = {.kind = API_REFUSED};
    AUTO_SURVEY struct survey survey = {.reason = NULL};
    AUTO_FREE char *path = NULL;
    int32_t r;

    (void)args;
    if (session_find(subject, NULL) < 0)
        return KCAP_E_NOMEM;
    survey.repository = subject->session->repository;
    if (!survey.repository) {
        survey.reason = "repo_unresolved";
        return show_survey(subject, &survey);
    }
    if (origin_identity(survey.repository, &survey.identity) < 0)
        return KCAP_E_NOMEM;
    survey.machine = origin_machine(host);
    path = request_path(subject);
    if (!path)
        return KCAP_E_NOMEM;
    r = api_request(
        subject->flows, subject->call,
        &(struct api_request){
            .method = "GET", .path = path, .wants_list = true, .limit_ms = LOOK_LIMIT_MS},
        &answer);
    if (r == KCAP_WAIT_DEADLINE)
        return show_error(subject,
                          "Error: the server did not answer while this call could wait.");
    return r == 0 ? judge(subject, &survey, &answer) : show_end(r);
}
