/* Routes: pure decisions. */
#include "policy/route.h"
#include "support/cmocka.h"
#include "support/random.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const struct policy_parameters defaults = {.threshold = 16 * MIB, .page_size = 2 * MIB};

static void assert_decision(const struct policy_request *request,
                            const struct policy_parameters *parameters, enum policy_route route,
                            enum policy_cause cause)
{
    const struct policy_decision decision = policy_route(request, parameters);
    if (decision.route != route || decision.cause != cause)
        fail_msg("%zu bytes aligned to %zu, hints %#x: route %d by %s", request->bytes,
                 request->alignment, request->hints, decision.route,
                 policy_cause_name(decision.cause));
}

static struct policy_request request_of(size_t bytes, size_t alignment, unsigned hints)
{
    return (struct policy_request){bytes, alignment, hints, RAFFIA_PAGES_TRY};
}

static void b3_large_and_aligned_requests_get_huge_pages(void **state)
{
    (void)state;
    static const struct {
        size_t bytes, alignment;
        enum policy_route route;
        enum policy_cause cause;
    } cases[] = {
        {1, 1, POLICY_REGULAR, POLICY_BY_DEFAULT},
        {16 * MIB, 256, POLICY_REGULAR, POLICY_BY_DEFAULT},
        {16 * MIB + 1, 256, POLICY_HUGE, POLICY_BY_SIZE},
        {SIZE_MAX, 1, POLICY_HUGE, POLICY_BY_SIZE},
        {1, 2 * MIB, POLICY_HUGE, POLICY_BY_ALIGNMENT},
        {1, GIB, POLICY_HUGE, POLICY_BY_ALIGNMENT},
        {16 * MIB, MIB, POLICY_REGULAR, POLICY_BY_DEFAULT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy_request request = request_of(cases[i].bytes, cases[i].alignment, 0);
        assert_decision(&request, &defaults, cases[i].route, cases[i].cause);
        request.mode = RAFFIA_PAGES_ON;
        assert_decision(&request, &defaults, cases[i].route, cases[i].cause);
    }
}

static void b2_nobody_gets_huge_pages_unasked(void **state)
{
    (void)state;
    const raffia_pages_mode modes[] = {RAFFIA_PAGES_OFF, RAFFIA_PAGES_DEFAULT};
    for (size_t i = 0; i < 2; i++) {
        struct policy_request request = request_of(GIB, GIB, RAFFIA_HINT_HUGE);
        request.mode = modes[i];
        assert_decision(&request, &defaults, POLICY_REGULAR, POLICY_BY_MODE);
    }
}

static void b15_hints_override_the_rules(void **state)
{
    (void)state;
    static const struct {
        size_t bytes, alignment;
        unsigned hints;
        enum policy_route route;
        enum policy_cause cause;
    } cases[] = {
        {1, 1, RAFFIA_HINT_HUGE, POLICY_HUGE, POLICY_BY_HINT},
        {GIB, GIB, RAFFIA_HINT_REGULAR, POLICY_REGULAR, POLICY_BY_HINT},
        {GIB, 1, RAFFIA_HINT_REGULAR | RAFFIA_HINT_LONG_LIVED, POLICY_REGULAR, POLICY_BY_HINT},
        {2 * MIB, 1, RAFFIA_HINT_LONG_LIVED, POLICY_HUGE, POLICY_BY_HINT},
        {2 * MIB - 1, 1, RAFFIA_HINT_LONG_LIVED, POLICY_REGULAR, POLICY_BY_DEFAULT},
        {2 * MIB, 1, RAFFIA_HINT_SHORT_LIVED, POLICY_REGULAR, POLICY_BY_DEFAULT},
        {17 * MIB, 1, RAFFIA_HINT_SHORT_LIVED, POLICY_HUGE, POLICY_BY_SIZE},
        {2 * MIB, 1, RAFFIA_HINT_WILL_GROW, POLICY_REGULAR, POLICY_BY_DEFAULT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct policy_request request =
            request_of(cases[i].bytes, cases[i].alignment, cases[i].hints);
        assert_decision(&request, &defaults, cases[i].route, cases[i].cause);
    }
}

static void b3_thresholds_are_what_the_parameters_say(void **state)
{
    (void)state;
    struct policy_parameters parameters = {.threshold = 0, .page_size = 64 * KIB};
    struct policy_request request = request_of(1, 1, 0);
    assert_decision(&request, &parameters, POLICY_HUGE, POLICY_BY_SIZE);
    parameters.threshold = RAFFIA_NONE;
    request.bytes = SIZE_MAX;
    assert_decision(&request, &parameters, POLICY_REGULAR, POLICY_BY_DEFAULT);
    /* Where pages are smaller than 2 MiB their alignment is what asks for them. */
    request = request_of(1, 64 * KIB, 0);
    assert_decision(&request, &parameters, POLICY_HUGE, POLICY_BY_ALIGNMENT);
    parameters.page_size = GIB;
    request = request_of(1, 2 * MIB, 0);
    assert_decision(&request, &parameters, POLICY_HUGE, POLICY_BY_ALIGNMENT);
}

/* The limits are the rule, worked out beforehand. */
static void b3_limits_say_what_the_route_would_be(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("b3_limits_say_what_the_route_would_be");
    const size_t thresholds[] = {0, 1, 16 * MIB, GIB, RAFFIA_NONE};
    const raffia_pages_mode modes[] = {RAFFIA_PAGES_DEFAULT, RAFFIA_PAGES_OFF, RAFFIA_PAGES_TRY,
                                       RAFFIA_PAGES_ON};
    for (int round = 0; round < 20000; round++) {
        const struct policy_parameters parameters = {
            .threshold = thresholds[test_random_below(&random, 5)],
            .page_size = (size_t)4096 << test_random_below(&random, 20),
        };
        struct policy_request request = {
            .bytes = (size_t)1 << test_random_below(&random, 40),
            .alignment = (size_t)1 << test_random_below(&random, 40),
            .mode = modes[test_random_below(&random, 4)],
        };
        request.bytes += test_random_below(&random, 3);
        const struct policy_limits limits = policy_limits_for(request.mode, &parameters);
        const bool huge = policy_route(&request, &parameters).route == POLICY_HUGE;
        if (policy_exceeds(&limits, request.bytes, request.alignment) != huge)
            fail_msg("%zu bytes aligned to %zu, mode %d: the route is huge: %d", request.bytes,
                     request.alignment, (int)request.mode, huge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b3_large_and_aligned_requests_get_huge_pages),
        cmocka_unit_test(b2_nobody_gets_huge_pages_unasked),
        cmocka_unit_test(b15_hints_override_the_rules),
        cmocka_unit_test(b3_thresholds_are_what_the_parameters_say),
        cmocka_unit_test(b3_limits_say_what_the_route_would_be),
    };
    return cmocka_run_group_tests_name("policy route", tests, NULL, NULL);
}
