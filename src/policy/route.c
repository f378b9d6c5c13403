#include "policy/route.h"

#include "core/checked.h"
#include "pool/pool.h"

/* An alignment from which on a request is taken to want huge pages; where these are smaller,
 * theirs. */
#define HUGE_ALIGNMENT POOL_HUGE_ALIGNMENT

static bool hints(const struct policy_request *request, raffia_hint hint)
{
    return (request->hints & (unsigned)hint) != 0;
}

struct policy_decision policy_route(const struct policy_request *request,
                                    const struct policy_parameters *parameters)
{
    if (request->mode != RAFFIA_PAGES_TRY && request->mode != RAFFIA_PAGES_ON)
        return (struct policy_decision){POLICY_REGULAR, POLICY_BY_MODE};
    if (hints(request, RAFFIA_HINT_REGULAR))
        return (struct policy_decision){POLICY_REGULAR, POLICY_BY_HINT};
    if (hints(request, RAFFIA_HINT_HUGE))
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_HINT};
    if (request->alignment >= core_min(HUGE_ALIGNMENT, parameters->page_size))
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_ALIGNMENT};
    if (request->bytes > parameters->threshold)
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_SIZE};
    /* What stays for long pays for its page in the end. */
    if (hints(request, RAFFIA_HINT_LONG_LIVED) && request->bytes >= parameters->page_size)
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_HINT};
    return (struct policy_decision){POLICY_REGULAR, POLICY_BY_DEFAULT};
}

const char *policy_cause_name(enum policy_cause cause)
{
    static const char *const names[] = {"mode", "hint", "alignment", "size", "default"};
    return (unsigned)cause < sizeof names / sizeof *names ? names[cause] : "unknown";
}

static bool is_better(const struct policy_request *request, const struct policy_candidate *a,
                      const struct policy_candidate *b)
{
    const bool a_near = request->numa_node >= 0 && a->numa_node == request->numa_node;
    const bool b_near = request->numa_node >= 0 && b->numa_node == request->numa_node;
    if (a_near != b_near)
        return a_near;
    if (a->used_last != b->used_last)
        return a->used_last;
    return a->free_bytes > b->free_bytes;
}

size_t policy_choose_pool(const struct policy_request *request,
                          const struct policy_candidate *candidates, size_t count)
{
    size_t best = RAFFIA_NONE;
    for (size_t i = 0; i < count; i++)
        if (best == RAFFIA_NONE || is_better(request, &candidates[i], &candidates[best]))
            best = i;
    return best;
}
