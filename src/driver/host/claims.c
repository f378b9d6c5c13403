#include "driver/host/claims.h"

#include "core/checked.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic size_t claimed;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Whoever was filling is not here. */
static void forget_in_child(void)
{
    atomic_store(&claimed, 0);
    pthread_mutex_unlock(&lock);
}

/* Without the callbacks a child that is forked at the wrong moment may find too little room. */
static void watch_forks(void)
{
    (void)pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

void host_claims_lock(void)
{
    pthread_once(&watch_once, watch_forks);
    pthread_mutex_lock(&lock);
}

void host_claims_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

size_t host_claims_bytes(void)
{
    return atomic_load(&claimed);
}

void host_claim_make(struct host_claim *claim, size_t bytes)
{
    atomic_store(&claim->bytes, bytes);
    atomic_fetch_add(&claimed, bytes);
}

void host_claim_settle(struct host_claim *claim, size_t bytes)
{
    size_t left = atomic_load(&claim->bytes), settled;
    do
        settled = core_min(left, bytes);
    while (!atomic_compare_exchange_weak(&claim->bytes, &left, left - settled));
    atomic_fetch_sub(&claimed, settled);
}

void host_claim_end(struct host_claim *claim)
{
    host_claim_settle(claim, SIZE_MAX);
}
