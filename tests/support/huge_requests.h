/*
 * For programs in which requests that no machine can serve are part of a test: included by one file
 * of each, it has the sanitizers answer them with NULL instead of ending the program.
 */
#ifndef TESTS_SUPPORT_HUGE_REQUESTS_H
#define TESTS_SUPPORT_HUGE_REQUESTS_H

#ifdef __cplusplus
extern "C" {
#endif

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#ifdef __cplusplus
}
#endif

#endif
