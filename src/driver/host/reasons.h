/*
 * Why a request for pages is refused: the checks made before anything is touched, and the search
 * for the cause after a failure. Each ends in a reason and a sentence with numbers and file names.
 */
#ifndef DRIVER_HOST_REASONS_H
#define DRIVER_HOST_REASONS_H

#include "driver/driver.h"

/* Where a chunk failed. */
enum host_step {
    HOST_STEP_CREATE, /* making its file */
    HOST_STEP_MAP,    /* mmap(2) */
    HOST_STEP_BIND,   /* mbind(2) */
    HOST_STEP_ADVISE, /* the advice about huge pages */
    HOST_STEP_FILL,   /* filling its pages */
    HOST_STEP_VERIFY, /* reading the page size back */
};

struct host_failure {
    enum host_step step;
    int error_number;
    /* For HOST_STEP_VERIFY: */
    bool verified;        /* false: nothing could be read back */
    size_t small_bytes;   /* in pages smaller than asked */
    const char *evidence; /* where it was read */
};

/* Records a sentence, sets the reason and returns the status that belongs to it. */
raffia_status host_refuse(raffia_fallback_reason reason, raffia_fallback_reason *reason_p,
                          const char *format, ...) RAFFIA_PRINTF(3, 4);

/* Whether this machine has pages of the kind and size at all. Hugetlb sizes are left to the kernel
 * to refuse. */
raffia_status host_check_kind(const struct driver_chunk_spec *spec,
                              raffia_fallback_reason *reason_p);

/* Whether transparent huge pages are switched on for this process; OK for other kinds. The kernel
 * could be made to give some in spite of "never": the administrator's word is honoured. */
raffia_status host_check_transparent(const struct driver_chunk_spec *spec,
                                     raffia_fallback_reason *reason_p);

/*
 * Whether `bytes` more of ordinary memory can be filled; OK for hugetlb, which has its own pool.
 * The kernel would try, and kill somebody. Others may take the memory between this check and the
 * filling: it is no reservation.
 */
raffia_status host_check_room(const struct driver_chunk_spec *spec, size_t bytes,
                              raffia_fallback_reason *reason_p);

/* Finds out why a chunk failed. Called when everything is put back. */
raffia_status host_explain(const struct driver_chunk_spec *spec, const struct host_failure *failure,
                           raffia_fallback_reason *reason_p);

#endif
