/*
 * raffia doctor: which huge pages this machine can give, why not more, and what to do about it.
 */
#include "cli/doctor.h"

#include "cli/command.h"
#include "cli/doctor_gpu.h"
#include "cli/fail.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/page_text.h"
#include "core/memory.h"

#include <raffia/pool.h>

#include <stdio.h>

static const char documentation[] =
    "Looks at this machine, its control groups and this process, says which huge pages can be had, "
    "why not more, and gives the command that changes it. Then it tries: one page of each kind and "
    "size is made, mapped, read back from the kernel and given back; of each GPU one page, and "
    "host "
    "memory is pinned for it.\n"
    "\v"
    "It changes nothing. Commands with sudo are for you to judge: each changes the whole machine "
    "until the next boot.\n\n"
    "Examples:\n"
    "  raffia doctor\n"
    "  raffia doctor --json | jq '.trials'\n\n"
    "Exit codes: 0 it could look (whatever it found), 1 it could not, 2 bad command line.";

enum key {
    KEY_JSON = CLI_OPTION_FIRST,
};

static const struct argp_option option_table[] = {
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

struct examination {
    struct host_facts facts;
    struct doctor_features features;
    struct doctor_findings findings;
    size_t trial_count;
    struct doctor_trial trials[RAFFIA_PAGE_SIZES_MAX];
    struct doctor_gpus gpus;
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    bool *json = state->input;
    switch (key) {
    case KEY_JSON:
        *json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too many: there are no arguments", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status examine(struct examination *examination)
{
    struct driver_device host;
    raffia_device_info info;
    raffia_status status = driver_open("host", &host);
    if (!status)
        status = host.driver->device_info(host.index, &info);
    if (status)
        return status;
    host_facts_read(&examination->facts);
    doctor_features_probe(&examination->features);
    doctor_judge(&examination->facts, &examination->features, &examination->findings);
    for (size_t i = 0; i < info.page_count; i++)
        doctor_try_page(host, info.pages[i], &examination->trials[examination->trial_count++]);
    doctor_gpus_examine(&examination->gpus);
    return RAFFIA_OK;
}

static const char *level_name(enum doctor_level level)
{
    static const char *const names[] = {"ok", "warning", "problem"};
    return names[level];
}

static bool is_huge(const struct doctor_trial *trial)
{
    return trial->kind == RAFFIA_PAGE_HUGETLB || trial->kind == RAFFIA_PAGE_TRANSPARENT;
}

/* The first huge page that worked, largest first, as a pool would take it: 1 GiB is opt-in. */
static const struct doctor_trial *best_trial(const struct examination *examination)
{
    for (size_t i = 0; i < examination->trial_count; i++) {
        const struct doctor_trial *trial = &examination->trials[i];
        if (is_huge(trial) && trial->status == RAFFIA_OK && trial->page_size < (size_t)1 << 30)
            return trial;
    }
    return NULL;
}

static void print_finding(const struct doctor_finding *finding)
{
    printf("%-8s %s: %s\n", level_name(finding->level), finding->topic, finding->what);
    if (finding->why[0])
        printf("         why: %s\n", finding->why);
    /* Nothing is to be mended where all is well; there may be more to be had. */
    if (finding->fix[0])
        printf("         %s: %s\n", finding->level == DOCTOR_OK ? "more" : "fix", finding->fix);
}

static void print_trial(const struct doctor_trial *trial)
{
    char kind[PAGE_TEXT_MAX], evidence[PAGE_TEXT_MAX];
    page_text_kind(trial->kind, trial->page_size, kind);
    if (trial->status)
        printf("%-8s %s: %s\n         why: %s\n", "no", kind,
               raffia_fallback_reason_name(trial->reason), trial->message);
    else if (trial->verified)
        printf("%-8s %s: made, mapped and %s\n", "ok", kind,
               page_text_evidence(trial->evidence, evidence));
    else
        printf("%-8s %s: made and mapped; its size could not be read back\n", "ok", kind);
}

static void print_text(const struct examination *examination)
{
    printf("What this machine says\n");
    for (size_t i = 0; i < examination->findings.count; i++)
        print_finding(&examination->findings.items[i]);
    printf("\nWhat it does: one page of each kind, tried now\n");
    for (size_t i = 0; i < examination->trial_count; i++)
        print_trial(&examination->trials[i]);
    doctor_gpus_print(&examination->gpus);
    const struct doctor_trial *best = best_trial(examination);
    char kind[PAGE_TEXT_MAX];
    if (best)
        printf("\nHuge pages can be had here: %s.\n",
               page_text_kind(best->kind, best->page_size, kind));
    else
        printf("\nNo huge pages can be had here.\n");
}

static json_t *json_limit(const struct host_limit *limit)
{
    if (limit->limit == HOST_UNLIMITED)
        return json_null();
    json_t *object = json_object();
    cli_json_count(object, "limit_bytes", limit->limit);
    cli_json_count(object, "used_bytes", limit->usage);
    cli_json_text(object, "file", limit->path);
    return object;
}

static json_t *json_pools(const struct host_facts *facts)
{
    json_t *pools = json_array();
    for (size_t i = 0; i < facts->pool_count; i++) {
        const struct host_hugetlb_pool *pool = &facts->pools[i];
        json_t *object = json_object();
        cli_json_count(object, "page_size", pool->page_size);
        cli_json_count(object, "total", pool->total);
        cli_json_count(object, "free", pool->free);
        cli_json_count(object, "reserved", pool->reserved);
        cli_json_count(object, "surplus", pool->surplus);
        cli_json_count(object, "overcommit", pool->overcommit);
        cli_json_count(object, "available", host_hugetlb_available(pool));
        cli_json_set(object, "cgroup_fault", json_limit(&pool->fault));
        cli_json_set(object, "cgroup_reservation", json_limit(&pool->reservation));
        cli_json_append(pools, object);
    }
    return pools;
}

static json_t *json_thp(const struct host_thp *thp)
{
    if (!thp->present)
        return json_null();
    json_t *object = json_object();
    cli_json_count(object, "page_size", thp->page_size);
    cli_json_text(object, "anonymous", thp->anonymous);
    cli_json_text(object, "shared", thp->shared);
    cli_json_text(object, "defrag", thp->defrag);
    cli_json_flag(object, "process_disabled", thp->process_disabled);
    return object;
}

/* Unlimited and unknown numbers are left out. */
static void set_known(json_t *object, const char *key, uint64_t value)
{
    if (value != HOST_UNLIMITED)
        cli_json_count(object, key, value);
}

static json_t *json_facts(const struct examination *examination)
{
    const struct host_facts *facts = &examination->facts;
    json_t *object = json_object();
    cli_json_text(object, "kernel", facts->kernel_release);
    set_known(object, "memory_total_bytes", facts->memory.total);
    set_known(object, "memory_available_bytes", facts->memory.available);
    cli_json_set(object, "memory_cgroup", json_limit(&facts->memory.cgroup));
    cli_json_count(object, "numa_nodes", facts->node_count);
    cli_json_count(object, "base_page_size", facts->base_page_size);
    cli_json_set(object, "hugetlb", json_pools(facts));
    cli_json_set(object, "transparent", json_thp(&facts->thp));
    cli_json_count(object, "huge_blocks_bytes", facts->huge_blocks_bytes);
    set_known(object, "locked_memory_limit", facts->locked_memory_limit);
    cli_json_flag(object, "madv_populate_write", examination->features.populate);
    cli_json_flag(object, "cachestat", examination->features.cachestat_error == 0);
    cli_json_flag(object, "pagemap_scan", facts->pagemap_scan);
    return object;
}

static json_t *json_findings(const struct doctor_findings *findings)
{
    json_t *array = json_array();
    for (size_t i = 0; i < findings->count; i++) {
        const struct doctor_finding *finding = &findings->items[i];
        json_t *object = json_object();
        cli_json_text(object, "level", level_name(finding->level));
        cli_json_text(object, "topic", finding->topic);
        cli_json_text(object, "what", finding->what);
        cli_json_text(object, "why", finding->why);
        cli_json_text(object, "fix", finding->fix);
        cli_json_append(array, object);
    }
    return array;
}

static json_t *json_trial(const struct doctor_trial *trial)
{
    json_t *object = json_object();
    cli_json_text(object, "kind", raffia_page_kind_name(trial->kind));
    cli_json_count(object, "page_size", trial->page_size);
    cli_json_flag(object, "ok", trial->status == RAFFIA_OK);
    cli_json_flag(object, "verified", trial->verified);
    cli_json_text(object, "evidence", trial->evidence);
    cli_json_text(object, "reason", raffia_fallback_reason_name(trial->reason));
    cli_json_text(object, "message", trial->message);
    return object;
}

static raffia_status print_json(const struct examination *examination)
{
    json_t *root = json_object(), *trials = json_array();
    cli_json_set(root, "facts", json_facts(examination));
    cli_json_set(root, "findings", json_findings(&examination->findings));
    for (size_t i = 0; i < examination->trial_count; i++)
        cli_json_append(trials, json_trial(&examination->trials[i]));
    cli_json_set(root, "trials", trials);
    cli_json_set(root, "gpus", doctor_gpus_json(&examination->gpus));
    cli_json_flag(root, "huge_pages", best_trial(examination) != NULL);
    return cli_json_print(root);
}

int cli_doctor(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, NULL, documentation, NULL, NULL, NULL};
    bool json = false;
    argp_parse(&argp, argc, argv, 0, NULL, &json);
    struct examination *examination = core_calloc(1, sizeof *examination);
    if (!examination)
        return cli_fail_last(json, NULL);
    raffia_status status = examine(examination);
    if (!status && json)
        status = print_json(examination);
    else if (!status)
        print_text(examination);
    core_free(examination);
    return status ? cli_fail_last(json, NULL) : CLI_OK;
}
