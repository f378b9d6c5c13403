/*
 * Memory that this process is about to fill.
 *
 * The kernel's figures show memory only when it has been touched. Threads that look for room at the
 * same moment would all find the same room and together fill more than there is, which ends in the
 * OOM killer instead of an error. So they look one after the other, and each claims what it found
 * before the next one looks.
 */
#ifndef DRIVER_HOST_CLAIMS_H
#define DRIVER_HOST_CLAIMS_H

#include <raffia/base.h>

#include <stdatomic.h>

/* What is left of one claim. All zero: nothing. */
struct host_claim {
    _Atomic size_t bytes;
};

/* Around a look for room and the claim that follows from it. A fork() waits for it. */
void host_claims_lock(void);
void host_claims_unlock(void);

/* Bytes claimed and not filled yet. To be read before the kernel's figures: what is filled in
 * between is then counted twice rather than not at all. */
size_t host_claims_bytes(void);

/* Lock held. */
void host_claim_make(struct host_claim *claim, size_t bytes);

/* `bytes` have been filled, from now on the kernel counts them. More than the claim is no matter.
 */
void host_claim_settle(struct host_claim *claim, size_t bytes);

/* Nothing more will be filled for it. */
void host_claim_end(struct host_claim *claim);

#endif
