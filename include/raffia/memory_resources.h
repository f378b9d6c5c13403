/**
 * @file memory_resources.h
 * @brief Two resources for one call: what it returns comes from one, what it needs meanwhile from
 *        the other.
 *
 * A call that allocates on behalf of its caller takes a pair: memory that is handed back comes from
 * *output* (a stable pool, say), memory that is freed before the call returns comes from
 * *temporary*, which may be reclaimed aggressively. It is the counterpart of libcudf's
 * `cudf::memory_resources`, and owns as little: whoever keeps a block keeps an owner of `output`.
 *
 *     RAFFIA_MEMORY_RESOURCES(pool)             output; temporary is the current device resource
 *     RAFFIA_MEMORY_RESOURCES(pool, scratch)    both; the current resource is not asked for
 *
 * Each argument is an owner or a ref, in C and in C++.
 */
#ifndef RAFFIA_MEMORY_RESOURCES_H
#define RAFFIA_MEMORY_RESOURCES_H

#include <raffia/base.h>
#include <raffia/resource.h>

/** @addtogroup memory_resources
 *  @{ */

/** A pair of borrowed resources. `{{0}}` stands for none. */
typedef struct raffia_memory_resources {
    raffia_resource_ref output;    /**< of what is handed back */
    raffia_resource_ref temporary; /**< of what is freed before the call returns */
} raffia_memory_resources;

RAFFIA_BEGIN_DECLS

/**
 * @brief A pair whose temporary resource is the current one of output's device, as it is *now*:
 *        what is set later does not change the pair.
 *
 * Where the current resource cannot be had (raffia_last_error() says why), temporary is none, and
 * calls that need one refuse the pair.
 */
RAFFIA_API raffia_memory_resources raffia_memory_resources_of_one(raffia_resource_ref output);

/** @brief A pair of both; the current resource is not asked for. */
static inline raffia_memory_resources raffia_memory_resources_of_two(raffia_resource_ref output,
                                                                     raffia_resource_ref temporary)
{
    raffia_memory_resources pair = {output, temporary};
    return pair;
}

RAFFIA_END_DECLS

/** @cond the workings of the macro below */
#define RAFFIA_MR_PICK(a, b, name, ...) name
#define RAFFIA_MR_ONE(output)           raffia_memory_resources_of_one(raffia_ref(output))
#define RAFFIA_MR_TWO(output, temporary)                                                           \
    raffia_memory_resources_of_two(raffia_ref(output), raffia_ref(temporary))
/** @endcond */

/** A pair from one or two resources; see the top of this page. */
#define RAFFIA_MEMORY_RESOURCES(...)                                                               \
    RAFFIA_MR_PICK(__VA_ARGS__, RAFFIA_MR_TWO, RAFFIA_MR_ONE, unused)(__VA_ARGS__)

#ifdef __cplusplus
/** @brief RAFFIA_MEMORY_RESOURCES() as a function, for one owner or ref. */
template <typename Output> raffia_memory_resources raffia_make_memory_resources(Output output)
{
    return raffia_memory_resources_of_one(raffia_ref(output));
}
/** @brief The same for two. */
template <typename Output, typename Temporary>
raffia_memory_resources raffia_make_memory_resources(Output output, Temporary temporary)
{
    return raffia_memory_resources_of_two(raffia_ref(output), raffia_ref(temporary));
}
#endif

/** @} */

#endif
