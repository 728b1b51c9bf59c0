/* SPDX-License-Identifier: Apache-2.0 */
/* How a run begins: the request, checked member by member, against what can be done here. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/auto.h"
#include "lib/text.h"
#include "server/api_internal.h"
#include "server/vendor.h"

/* What a start needs beside its texts. */
struct starting {
    struct settings settings;
    struct definition definition;
    struct start start;
};

static int
find_definition(struct api_call *call, struct starting *starting)
{
    AUTO_BUF struct buf error = BUF_INIT(8192), names = BUF_INIT(1024);
    const char *kind;
    int r = api_text(call, "kind", true, &kind);

    if (r < 0)
        return r;
    r = definition_find(call->request->site->definitions_dir, kind, &starting->definition,
                        &error);
    if (r == -EINVAL)
        return api_fail(call, 400, "invalid_definition", "%s", buf_str(&error));
    if (r != -ENOENT)
        return r;
    definition_add_names(&names);
    return api_fail(
        call, 404, "unknown_definition",
        "There is no definition \"%s\"; there are %s, and the files NAME.yaml in %s.", kind,
        buf_str(&names), call->request->site->definitions_dir);
}

static int
read_definition(struct api_call *call, const char *yaml, struct starting *starting)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    int r = definition_from_yaml(yaml, strlen(yaml), "definition_yaml", &starting->definition,
                                 &error);

    return r == -EINVAL ? api_fail(call, 400, "invalid_definition", "%s", buf_str(&error)) : r;
}

/* ---- vendors ---- */

static int
check_vendor(struct api_call *call, const struct settings *settings, const char *name)
{
    AUTO_BUF struct buf names = BUF_INIT(512);
    const struct vendor *vendor = vendor_find(name);

    vendor_add_names(&names, settings);
    if (!vendor)
        return api_fail(call, 400, "unknown_vendor",
                        "There is no reviewer vendor \"%s\"; this kcap-flowd has: %s.", name,
                        buf_str(&names));
    if (vendor_missing(vendor, settings))
        return api_fail(call, 400, "reviewer_vendor_unavailable",
                        "This kcap-flowd cannot run \"%s\" (%s); it has: %s.", name,
                        vendor_missing(vendor, settings), buf_str(&names));
    return 0;
}

static int
set_text(char **place, const char *text)
{
    free(*place);
    *place = strdup(text);
    return *place ? 0 : -ENOMEM;
}

/* The participant that the request's vendor and model are for. */
static struct definition_participant *
named_one(struct definition *definition)
{
    for (size_t i = 0; i < definition->participant_count; i++) {
        if (strcmp(definition->participants[i].role, "reviewer") == 0)
            return &definition->participants[i];
    }
    return &definition->participants[0];
}

static int
choose_vendors(struct api_call *call, struct starting *starting)
{
    struct definition *definition = &starting->definition;
    const char *vendor = starting->start.requested_vendor;
    const char *model = starting->start.requested_model;
    int r = vendor ? set_text(&named_one(definition)->vendor, vendor) : 0;

    if (r == 0 && model)
        r = set_text(&named_one(definition)->model, model);
    for (size_t i = 0; i < definition->participant_count && r == 0; i++) {
        struct definition_participant *who = &definition->participants[i];
        if (!who->vendor)
            r = set_text(&who->vendor, starting->settings.default_vendor);
        if (r == 0)
            r = check_vendor(call, &starting->settings, who->vendor);
        if (r == 0 && who->model && !vendor_find(who->vendor)->has_model)
            r = api_fail(call, 400, "reviewer_model_unavailable",
                         "The vendor \"%s\" has no model to choose; leave \"model\" out.",
                         who->vendor);
    }
    return r;
}

/* ---- the rest ---- */

static int
check_dir(struct api_call *call, const char **ret)
{
    struct stat st;
    int r = api_text(call, "requesting_cwd", true, ret);

    if (r < 0)
        return r;
    if ((*ret)[0] != '/')
        return api_fail(call, 400, "invalid_request",
                        "\"requesting_cwd\" must be an absolute path.");
    if (stat(*ret, &st) < 0 || !S_ISDIR(st.st_mode))
        return api_fail(call, 400, "invalid_request",
                        "\"requesting_cwd\" is no directory that kcap-flowd can see: %s", *ret);
    return 0;
}

/* Members that are not used here are still checked: a client that sends nonsense should hear of
 * it from any server. */
static int
check_unused(struct api_call *call)
{
    static const char *const texts[] = {"mode",      "requesting_repo_root",
                                        "repo_path", "repo_owner",
                                        "repo_name", "requester_machine_id"};
    const char *text;
    int r = api_check_bool(call, "async");

    if (r == 0)
        r = api_check_int(call, "client_flow_protocol_version");
    for (size_t i = 0; i < sizeof texts / sizeof *texts && r == 0; i++)
        r = api_text(call, texts[i], false, &text);
    return r;
}

static int
read_texts(struct api_call *call, struct start *start)
{
    int r = api_text(call, "target_kind", true, &start->target_kind);

    if (r == 0)
        r = api_text(call, "target_ref", true, &start->target_ref);
    if (r == 0)
        r = api_text(call, "target_title", true, &start->target_title);
    if (r == 0)
        r = api_text(call, "context", true, &start->context);
    if (r == 0)
        r = api_text(call, "instructions", false, &start->instructions);
    if (r == 0)
        r = api_text(call, "requesting_session_id", false, &start->session_id);
    if (r == 0)
        r = api_text(call, "vendor", false, &start->requested_vendor);
    if (r == 0)
        r = api_text(call, "model", false, &start->requested_model);
    if (r == 0)
        r = check_unused(call);
    return r;
}

static int
read_settings(struct api_call *call, struct settings *ret)
{
    AUTO_BUF struct buf error = BUF_INIT(8192);
    const struct api_site *site = call->request->site;
    int r = settings_read(site->settings_path, site->override, ret, &error);

    return r < 0 ? api_fail(call, 500, "invalid_settings", "%s", buf_str(&error)) : 0;
}

static int
begin(struct api_call *call, struct starting *starting)
{
    struct flow flow = {0};
    struct round round = {0};
    int r = read_texts(call, &starting->start);

    if (r == 0)
        r = read_settings(call, &starting->settings);
    if (r == 0)
        r = choose_vendors(call, starting);
    if (r == 0)
        r = check_dir(call, &starting->start.cwd);
    starting->start.definition = &starting->definition;
    if (r == 0)
        r = engine_start(call->engine, &starting->start, &flow, &round);
    if (r == 0)
        r = api_add_begun(call, &flow, &round);
    round_fini(&round);
    flow_fini(&flow);
    return r;
}

static void
starting_fini(struct starting *starting)
{
    definition_fini(&starting->definition);
    settings_fini(&starting->settings);
}

static int
start_from_catalog(struct api_call *call)
{
    struct starting starting = {.start = {.cwd = NULL}};
    int r = json_get(call->body, "definition_yaml")
                ? api_fail(call, 400, "invalid_request",
                           "\"definition_yaml\" goes to /api/flows/review/start.")
                : find_definition(call, &starting);

    if (r == 0)
        r = begin(call, &starting);
    starting_fini(&starting);
    return r;
}

static int
start_from_yaml(struct api_call *call)
{
    static const char *const not_here[] = {"kind", "vendor", "model"};
    struct starting starting = {.start = {.cwd = NULL}};
    const char *yaml;
    int r = api_text(call, "definition_yaml", true, &yaml);

    for (size_t i = 0; i < sizeof not_here / sizeof *not_here && r == 0; i++) {
        if (json_get(call->body, not_here[i]))
            r = api_fail(call, 400, "invalid_request",
                         "\"%s\" does not go with \"definition_yaml\": the definition says it.",
                         not_here[i]);
    }
    if (r == 0)
        r = read_definition(call, yaml, &starting);
    if (r == 0)
        r = begin(call, &starting);
    starting_fini(&starting);
    return r;
}

const struct api_route api_start_routes[] = {
    {"POST", "/api/flows/review/start/v4", true, start_from_catalog},
    {"POST", "/api/flows/review/start/v3", true, start_from_catalog},
    {"POST", "/api/flows/review/start/v2", true, start_from_catalog},
    {"POST", "/api/flows/review/start", true, start_from_yaml},
    {NULL, NULL, false, NULL},
};
