#include "core/fault.h"

#ifdef RAFFIA_FAULTS

#include <stdatomic.h>
#include <stddef.h>

/* Calls left until the one that fails; 0 or less means that nothing is armed. */
static atomic_long calls_left;
static _Atomic(const char *) fired;

bool core_fault(const char *what)
{
    if (atomic_load_explicit(&calls_left, memory_order_relaxed) <= 0)
        return false;
    if (atomic_fetch_sub(&calls_left, 1) != 1)
        return false;
    atomic_store(&fired, what);
    return true;
}

void core_fault_arm(long n)
{
    atomic_store(&fired, NULL);
    atomic_store(&calls_left, n);
}

const char *core_fault_disarm(void)
{
    atomic_store(&calls_left, 0);
    return atomic_load(&fired);
}

#else

/* ISO C wants at least one declaration in a translation unit. */
typedef int core_fault_is_compiled_out;

#endif
