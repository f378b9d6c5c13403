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

static bool allows_huge(raffia_pages_mode mode)
{
    return mode == RAFFIA_PAGES_TRY || mode == RAFFIA_PAGES_ON;
}

struct policy_limits policy_limits_for(raffia_pages_mode mode,
                                       const struct policy_parameters *parameters)
{
    if (!allows_huge(mode))
        return (struct policy_limits){SIZE_MAX, SIZE_MAX};
    return (struct policy_limits){
        .bytes_above = parameters->threshold,
        .alignment_from = core_min(HUGE_ALIGNMENT, parameters->page_size),
    };
}

struct policy_decision policy_route(const struct policy_request *request,
                                    const struct policy_parameters *parameters)
{
    if (!allows_huge(request->mode))
        return (struct policy_decision){POLICY_REGULAR, POLICY_BY_MODE};
    if (hints(request, RAFFIA_HINT_REGULAR))
        return (struct policy_decision){POLICY_REGULAR, POLICY_BY_HINT};
    if (hints(request, RAFFIA_HINT_HUGE))
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_HINT};
    const struct policy_limits limits = policy_limits_for(request->mode, parameters);
    if (request->alignment >= limits.alignment_from)
        return (struct policy_decision){POLICY_HUGE, POLICY_BY_ALIGNMENT};
    if (request->bytes > limits.bytes_above)
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
