/* Advice as text and as JSON. */
#include "cli/advise.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/seed_figures.h"
#include "core/text.h"

#include <stdio.h>

#define PAGE_SIZE_TEXT(advice) ((advice)->page_size == (size_t)1 << 30 ? "1GiB" : "2MiB")

static void print_models(const struct advise_report *report)
{
    printf("models\n");
    for (size_t i = 0; i < report->question.count; i++) {
        char size[CORE_SIZE_TEXT_MAX], name[CLI_NAME_MAX];
        printf("  %12s  %s\n", core_format_size(report->question.weights[i], size),
               cli_format_name(report->paths[i], name));
    }
}

static void print_text(const struct advise_report *report)
{
    const struct advice *advice = &report->advice;
    char size[CORE_SIZE_TEXT_MAX];
    print_models(report);
    printf("pool: %s\n  %s\n  why: %s\n", core_format_size(advice->pool_bytes, size),
           advice->arithmetic, advice->why);
    printf("pages: %s\n  why: %s\n", core_format_size(advice->page_size, size), advice->page_why);
    printf("on this machine\n");
    for (size_t i = 0; i < advice->command_count; i++)
        printf("  %s\n", advice->commands[i]);
    for (size_t i = 0; i < advice->remark_count; i++)
        printf("  note: %s\n", advice->remarks[i]);
    printf("settings\n  RAFFIA_PAGES=try RAFFIA_PAGE_SIZE=%s\n", PAGE_SIZE_TEXT(advice));
    printf("  in the program: raffia_pool_create() with initial_bytes = %zu, and the pool in "
           "raffia_load_options\n",
           advice->pool_bytes);
    printf("what to expect (" SEED_LABEL ")\n");
    for (size_t i = 0; i < advice->expectation_count; i++)
        if (advice->expectations[i].applies)
            printf("  %s\n", advice->expectations[i].text);
}

static json_t *json_models(const struct advise_report *report)
{
    json_t *models = json_array();
    for (size_t i = 0; i < report->question.count; i++) {
        json_t *model = json_object();
        cli_json_text(model, "path", report->paths[i]);
        cli_json_count(model, "bytes", report->question.weights[i]);
        cli_json_append(models, model);
    }
    return models;
}

static json_t *json_expectations(const struct advice *advice)
{
    json_t *array = json_array();
    for (size_t i = 0; i < advice->expectation_count; i++) {
        json_t *object = json_object();
        cli_json_text(object, "text", advice->expectations[i].text);
        cli_json_flag(object, "applies", advice->expectations[i].applies);
        cli_json_text(object, "source", SEED_LABEL);
        cli_json_append(array, object);
    }
    return array;
}

static raffia_status print_json(const struct advise_report *report)
{
    const struct advice *advice = &report->advice;
    json_t *root = json_object(), *pool = json_object(), *page = json_object();
    json_t *commands = json_array(), *remarks = json_array(), *settings = json_object();
    cli_json_set(root, "models", json_models(report));
    cli_json_count(root, "weight_bytes", advice->weight_bytes);
    cli_json_text(root, "mode", report->question.rotate ? "rotate" : "resident");
    cli_json_set(root, "loads_per_day",
                 report->question.loads_given
                     ? json_integer((json_int_t)report->question.loads_per_day)
                     : json_null());
    cli_json_count(pool, "bytes", advice->pool_bytes);
    cli_json_count(pool, "percent_of_weights", advice->percent);
    cli_json_text(pool, "arithmetic", advice->arithmetic);
    cli_json_text(pool, "why", advice->why);
    cli_json_flag(pool, "fits", advice->fits);
    cli_json_set(pool, "bytes_if_they_take_turns",
                 advice->turns_bytes ? json_integer((json_int_t)advice->turns_bytes) : json_null());
    cli_json_set(root, "pool", pool);
    cli_json_count(page, "size", advice->page_size);
    cli_json_text(page, "why", advice->page_why);
    cli_json_set(root, "page", page);
    for (size_t i = 0; i < advice->command_count; i++)
        cli_json_append(commands, json_string(advice->commands[i]));
    for (size_t i = 0; i < advice->remark_count; i++)
        cli_json_append(remarks, json_string(advice->remarks[i]));
    cli_json_set(root, "commands", commands);
    cli_json_set(root, "notes", remarks);
    cli_json_text(settings, "RAFFIA_PAGES", "try");
    cli_json_text(settings, "RAFFIA_PAGE_SIZE", PAGE_SIZE_TEXT(advice));
    cli_json_set(root, "settings", settings);
    cli_json_set(root, "expectations", json_expectations(advice));
    return cli_json_print(root);
}

raffia_status advise_print(const struct advise_report *report, bool json)
{
    if (json)
        return print_json(report);
    print_text(report);
    return RAFFIA_OK;
}
