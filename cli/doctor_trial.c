/* Trying things out: what the kernel says it can do is not what it does. */
#include "cli/doctor.h"
#include "core/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_mapped(struct driver_device device, void *at, struct doctor_trial *trial)
{
    struct driver_page_evidence evidence = {.source = "none"};
    trial->status = device.driver->page_size_of(device.index, at, trial->page_size, trial->kind,
                                                trial->page_size, &evidence);
    trial->verified =
        trial->status == RAFFIA_OK && evidence.verified && evidence.conforming >= trial->page_size;
    snprintf(trial->evidence, sizeof trial->evidence, "%s", evidence.source);
}

static void try_chunk(struct driver_device device, void *at, struct doctor_trial *trial)
{
    const struct driver *driver = device.driver;
    struct driver_chunk_spec spec = {
        .bytes = trial->page_size,
        .page_size = trial->page_size,
        .kind = trial->kind,
        .numa_node = -1,
        .threads = 1,
    };
    driver_chunk chunk;
    trial->status = driver->chunk_create(device.index, &spec, &chunk, &trial->reason);
    if (trial->status)
        return;
    trial->status = driver->chunk_map(device.index, chunk, at, &trial->reason);
    if (trial->status == RAFFIA_OK) {
        check_mapped(device, at, trial);
        driver->chunk_unmap(device.index, chunk, at);
    }
    /* Taken before the next call can fail and speak of something else. */
    if (trial->status)
        snprintf(trial->message, sizeof trial->message, "%s", raffia_last_error());
    driver->chunk_destroy(device.index, chunk);
}

void doctor_try_page(struct driver_device device, raffia_page_offer offer,
                     struct doctor_trial *trial)
{
    *trial = (struct doctor_trial){.kind = offer.kind, .page_size = offer.size};
    void *base;
    trial->status = device.driver->range_reserve(device.index, offer.size, offer.size, &base);
    if (trial->status == RAFFIA_OK) {
        try_chunk(device, base, trial);
        if (trial->status && !trial->message[0])
            snprintf(trial->message, sizeof trial->message, "%s", raffia_last_error());
        raffia_status released = device.driver->range_release(device.index, base, offer.size);
        if (!trial->status)
            trial->status = released;
    }
    if (trial->status && !trial->message[0])
        snprintf(trial->message, sizeof trial->message, "%s", raffia_last_error());
}

/* Whether a piece of advice is known: a kernel that does not know it says EINVAL. */
static bool advice_works(int advice)
{
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *at = sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return false;
    bool works = sys_madvise(at, bytes, advice) == 0 || errno != EINVAL;
    sys_munmap(at, bytes);
    return works;
}

/* Tried on a file of our own: the kernel tells others' only to who may write to them. */
static int cachestat_error(void)
{
    int fd = sys_memfd_create("raffia-doctor", MFD_CLOEXEC);
    if (fd < 0)
        return errno;
    uint64_t cached;
    int error_number = sys_cachestat(fd, 0, 1, &cached) ? errno : 0;
    sys_close(fd);
    return error_number;
}

void doctor_features_probe(struct doctor_features *features)
{
    *features = (struct doctor_features){
        .populate = advice_works(MADV_POPULATE_WRITE),
        .cachestat_error = cachestat_error(),
    };
}
