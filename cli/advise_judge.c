#include "cli/advise_judge.h"

#include "cli/format.h"
#include "cli/seed_figures.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "policy/sizing.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define SAY(field, ...) (void)snprintf((field), sizeof(field), __VA_ARGS__)

static char *next_remark(struct advice *advice)
{
    assert(advice->remark_count < ADVISE_REMARKS_MAX);
    return advice->remarks[advice->remark_count++];
}

static char *next_command(struct advice *advice)
{
    assert(advice->command_count < ADVISE_COMMANDS_MAX);
    return advice->commands[advice->command_count++];
}

#define REMARK(advice, ...) (void)snprintf(next_remark(advice), ADVISE_TEXT_MAX, __VA_ARGS__)
#define COMMAND(advice, ...)                                                                       \
    (void)snprintf(next_command(advice), ADVISE_TEXT_MAX + HOST_PATH_MAX, __VA_ARGS__)

static const struct host_hugetlb_pool *find_pool(const struct host_facts *facts, size_t page_size)
{
    for (size_t i = 0; i < facts->pool_count; i++)
        if (facts->pools[i].page_size == page_size)
            return &facts->pools[i];
    return NULL;
}

/* Bytes that a pool of such pages could have: ordinary memory, and pages that are set aside. */
static uint64_t room_for(const struct host_facts *facts, size_t page_size)
{
    const struct host_hugetlb_pool *pool = find_pool(facts, page_size);
    uint64_t aside = pool ? host_hugetlb_available(pool) * page_size : 0;
    return host_add(host_memory_room(&facts->memory), aside);
}

static raffia_status add_weights(const struct advise_question *question, struct advice *advice)
{
    for (size_t i = 0; i < question->count; i++)
        if (!core_add(advice->weight_bytes, question->weights[i], &advice->weight_bytes))
            return core_error(RAFFIA_ERROR_OVERFLOW,
                              "the models' weights together exceed the address space");
    return RAFFIA_OK;
}

static raffia_status size_pool(const struct advise_question *question, size_t page_size,
                               struct advice *advice)
{
    bool done =
        question->rotate
            ? policy_rotating_models_bytes(advice->weight_bytes, page_size, &advice->pool_bytes)
            : policy_resident_model_bytes(advice->weight_bytes, page_size, &advice->pool_bytes);
    if (!done)
        return core_error(RAFFIA_ERROR_OVERFLOW,
                          "a pool for %zu bytes of weights exceeds the address space",
                          advice->weight_bytes);
    advice->page_size = page_size;
    return RAFFIA_OK;
}

static void explain_pool(const struct advise_question *question, struct advice *advice)
{
    char weights[CORE_SIZE_TEXT_MAX], pool[CORE_SIZE_TEXT_MAX], page[CORE_SIZE_TEXT_MAX];
    advice->percent = question->rotate ? POLICY_ROTATING_PERCENT : POLICY_RESIDENT_PERCENT;
    SAY(advice->arithmetic, "%s of weights x 1.%u = %s (%zu bytes, whole pages of %s)",
        core_format_size(advice->weight_bytes, weights), advice->percent / 10 % 10,
        core_format_size(advice->pool_bytes, pool), advice->pool_bytes,
        core_format_size(advice->page_size, page));
    if (question->rotate)
        SAY(advice->why,
            "models rotate: all of them fit, and 30 %% on top lets the next one find a "
            "place in one piece before the last is gone");
    else
        SAY(advice->why,
            "%s resident: 20 %% on top leaves room for padding and for what is allocated "
            "beside the weights",
            question->count == 1 ? "one model stays" : "the models stay");
}

/* Whether a pool of 1 GiB pages is worth it. `advice` is sized for one. */
static bool judge_page(const struct advise_question *question, const struct host_facts *facts,
                       struct advice *advice)
{
    char weights[CORE_SIZE_TEXT_MAX], pool[CORE_SIZE_TEXT_MAX], room[CORE_SIZE_TEXT_MAX];
    uint64_t free_bytes = room_for(facts, GIB);
    bool large = advice->weight_bytes > ADVISE_WEIGHTS_LARGE;
    bool often = question->loads_given && question->loads_per_day >= ADVISE_LOADS_MANY;
    bool roomy = advice->pool_bytes <= free_bytes / 2;
    bool offered = find_pool(facts, GIB) != NULL;
    char loads[64] = "their number is not given, --loads-per-day";
    if (question->loads_given)
        SAY(loads, "here %llu", (unsigned long long)question->loads_per_day);
    SAY(advice->page_why,
        "1 GiB pages pay off where four things come together: weights beyond 8 GB (here %s: %s), "
        "%u loads a day and more (%s: %s), a pool of at most half of the free memory (%s of %s: "
        "%s), and a kernel that has such pages (%s).%s",
        core_format_size(advice->weight_bytes, weights), large ? "yes" : "no", ADVISE_LOADS_MANY,
        loads, often ? "yes" : "no", core_format_size(advice->pool_bytes, pool),
        core_format_size(free_bytes == HOST_UNLIMITED ? RAFFIA_NONE : (size_t)free_bytes, room),
        roomy ? "yes" : "no", offered ? "yes" : "no",
        large && often && roomy && offered
            ? ""
            : " Elsewhere they cost failed grants and sizes in steps of 1 GiB, for little.");
    return large && often && roomy && offered;
}

/* A control group that gives less than the pool needs. */
static void suggest_limit(const struct host_limit *limit, struct advice *advice)
{
    if (host_limit_room(limit) < advice->pool_bytes)
        COMMAND(advice, "echo max | sudo tee %s", limit->path);
}

static void suggest_transparent(const struct host_facts *facts, struct advice *advice)
{
    char page[CORE_SIZE_TEXT_MAX];
    REMARK(advice, "this kernel has no hugetlb pages of %s: Raffia falls back to transparent ones",
           core_format_size(advice->page_size, page));
    if (facts->thp.present && strcmp(facts->thp.anonymous, "never") == 0)
        COMMAND(advice, "echo madvise | sudo tee %s", facts->thp.anonymous_path);
}

/* Models of which only one is needed at a time do with room for the largest. */
static void suggest_turns(const struct advise_question *question, uint64_t room,
                          struct advice *advice)
{
    char turns[CORE_SIZE_TEXT_MAX];
    size_t largest = 0;
    for (size_t i = 0; i < question->count; i++)
        largest = core_max(largest, question->weights[i]);
    if (question->count < 2 ||
        !policy_resident_model_bytes(largest, advice->page_size, &advice->turns_bytes))
        return;
    REMARK(advice,
           "if they take turns, each released before the next is loaded, the largest x 1.%u will "
           "do: a pool of %s (%zu bytes)%s",
           POLICY_RESIDENT_PERCENT / 10 % 10, core_format_size(advice->turns_bytes, turns),
           advice->turns_bytes, advice->turns_bytes <= room ? ", for which there is room" : "");
}

static void suggest_pages(const struct advise_question *question, const struct host_facts *facts,
                          struct advice *advice)
{
    const struct host_hugetlb_pool *pool = find_pool(facts, advice->page_size);
    char need[CORE_SIZE_TEXT_MAX], have[CORE_SIZE_TEXT_MAX];
    uint64_t room = room_for(facts, advice->page_size);
    advice->fits = advice->pool_bytes <= room;
    suggest_turns(question, room, advice);
    if (!advice->fits) {
        REMARK(advice,
               "the pool needs %s and %s are free: keep fewer models in memory, or free some; no "
               "command is given that would take what others use",
               core_format_size(advice->pool_bytes, need), core_format_size((size_t)room, have));
        return;
    }
    if (!pool) {
        suggest_transparent(facts, advice);
        return;
    }
    uint64_t wanted = advice->pool_bytes / advice->page_size;
    uint64_t available = host_hugetlb_available(pool);
    if (available >= wanted)
        REMARK(advice, "%llu pages are needed and %llu can be had: nothing is to be set aside",
               (unsigned long long)wanted, (unsigned long long)available);
    else
        COMMAND(advice,
                "echo %llu | sudo tee " HOST_HUGEPAGES_DIRECTORY "/hugepages-%zukB/nr_hugepages",
                (unsigned long long)(pool->total + wanted - available), pool->page_size / KIB);
    if (available < wanted && advice->page_size == GIB)
        REMARK(advice,
               "at run time 1 GiB pages are a matter of luck; booting with hugepagesz=1G "
               "hugepages=%llu is not",
               (unsigned long long)(pool->total + wanted - available));
    if (available < wanted)
        REMARK(advice, "read the number back: the kernel may give fewer. It holds until the next "
                       "boot; without the pages Raffia falls back to transparent ones");
    suggest_limit(&pool->fault, advice);
    suggest_limit(&pool->reservation, advice);
}

static char *next_expectation(struct advice *advice, bool applies)
{
    assert(advice->expectation_count < ADVISE_EXPECTATIONS_MAX);
    struct advise_expectation *next = &advice->expectations[advice->expectation_count++];
    next->applies = applies;
    return next->text;
}

#define EXPECT(advice, applies, ...)                                                               \
    (void)snprintf(next_expectation(advice, applies), ADVISE_TEXT_MAX, __VA_ARGS__)

static void expect(const struct advise_question *question, struct advice *advice)
{
    const struct seed_figure *load = seed_figure(SEED_LOAD);
    size_t small = 0;
    for (size_t i = 0; i < question->count; i++)
        small += question->weights[i] < ADVISE_WEIGHTS_SMALL;
    EXPECT(advice, small < question->count, "%s went from %g to %g %s (%gx)", load->what,
           load->before, load->after, load->unit, load->ratio);
    EXPECT(advice, small > 0, "models under 500 MB gain about 10 %% (here %zu of %zu)", small,
           question->count);
    EXPECT(advice, true, "many small repeated allocations gain little");
    EXPECT(advice, true,
           "a framework's own pool of 256 MB keeps about 30 %% of the gain, one of 1 "
           "GB or more keeps it");
}

raffia_status advise_judge(const struct advise_question *question, const struct host_facts *facts,
                           struct advice *advice)
{
    assert(question->count > 0);
    *advice = (struct advice){0};
    raffia_status status = add_weights(question, advice);
    if (!status)
        status = size_pool(question, GIB, advice);
    if (!status && !judge_page(question, facts, advice))
        status = size_pool(question, 2 * MIB, advice);
    if (status)
        return status;
    explain_pool(question, advice);
    suggest_pages(question, facts, advice);
    expect(question, advice);
    return RAFFIA_OK;
}
