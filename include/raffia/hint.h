/**
 * @file hint.h
 * @brief What a caller knows about the life of a block.
 *
 * Hints are flags, and advice: each says something about a request, and the policy makes of it what
 * it can. They choose between huge and regular memory where that is still open, and the place of
 * the block in its pool: long-lived blocks gather at the low end, so that chunks above them can be
 * given back.
 */
#ifndef RAFFIA_HINT_H
#define RAFFIA_HINT_H

#include <raffia/base.h>

/** @addtogroup pool
 *  @{ */

/** Hints about one request; combined with `|`. */
typedef enum raffia_hint {
    RAFFIA_HINT_NONE = 0,
    RAFFIA_HINT_LONG_LIVED = 1u << 0,  /**< weights: huge pages from one page up; placed low */
    RAFFIA_HINT_SHORT_LIVED = 1u << 1, /**< activations: placed as without a hint, and
                                            never kept with what stays; not with LONG_LIVED */
    RAFFIA_HINT_WILL_GROW = 1u << 2,   /**< will be resized; placed low even if short-lived */
    RAFFIA_HINT_HUGE = 1u << 3,        /**< huge pages, however small the request is */
    RAFFIA_HINT_REGULAR = 1u << 4,     /**< regular memory, however large it is; not with HUGE */
} raffia_hint;

/** @} */

#endif
