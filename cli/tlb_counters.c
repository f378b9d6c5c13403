#include "cli/tlb_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
void tlb_processor_read(struct tlb_processor *processor)
{
    const unsigned vendor_leaf = 0, signature_leaf = 1, extended_family = 15, intel_family = 6;
    *processor = (struct tlb_processor){0};
    unsigned a, b, c, d;
    if (!__get_cpuid(vendor_leaf, &a, &b, &c, &d))
        return;
    const unsigned words[] = {b, d, c};
    memcpy(processor->vendor, words, sizeof words);
    if (!__get_cpuid(signature_leaf, &a, &b, &c, &d))
        return;
    unsigned family = a >> 8 & 0xf, model = a >> 4 & 0xf;
    if (family == extended_family || family == intel_family)
        model += (a >> 16 & 0xf) << 4;
    if (family == extended_family)
        family += a >> 20 & 0xff;
    processor->family = family;
    processor->model = model;
}
#else
void tlb_processor_read(struct tlb_processor *processor)
{
    *processor = (struct tlb_processor){0};
}
#endif

#define RAW(event, mask) ((uint64_t)(mask) << 8 | (event))

#define GENERIC_DTLB_LOAD_MISSES                                                                   \
    (PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |                                 \
     PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

/* Families of Zen, 1 to 5. */
static bool is_zen(const struct tlb_processor *processor)
{
    return strcmp(processor->vendor, "AuthenticAMD") == 0 &&
           (processor->family == 0x17 || processor->family == 0x19 || processor->family == 0x1a);
}

static bool is_one_of(unsigned model, const unsigned char *models, size_t count)
{
    return memchr(models, (int)model, count) != NULL;
}

/* The event DTLB_LOAD_MISSES of Intel's big cores since Haswell: its number changed with Golden
 * Cove. 0 where it is not known; small cores have other events. */
static unsigned intel_walk_event(const struct tlb_processor *processor)
{
    static const unsigned char haswell_on[] = {
        0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56, /* Haswell, Broadwell */
        0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, 0x66, /* Skylake and its kin */
        0x7d, 0x7e, 0x6a, 0x6c, 0x8c, 0x8d, 0xa7,       /* Ice Lake, Tiger Lake, Rocket Lake */
    };
    static const unsigned char golden_cove_on[] = {0x8f, 0xcf, 0xad, 0xae};
    if (strcmp(processor->vendor, "GenuineIntel") != 0 || processor->family != 6)
        return 0;
    if (is_one_of(processor->model, haswell_on, sizeof haswell_on))
        return 0x08;
    return is_one_of(processor->model, golden_cove_on, sizeof golden_cove_on) ? 0x12 : 0;
}

size_t tlb_events(const struct tlb_processor *processor,
                  struct tlb_event events[static TLB_COUNTERS_MAX])
{
    const unsigned walk_completed = 0x0e, zen_l1_dtlb_miss = 0x45, all = 0xff, all_l2_miss = 0xf0;
    size_t count = 0;
    events[count++] =
        (struct tlb_event){"dTLB-load-misses", PERF_TYPE_HW_CACHE, GENERIC_DTLB_LOAD_MISSES, false};
    if (is_zen(processor)) {
        events[count++] = (struct tlb_event){"ls_l1_d_tlb_miss.all", PERF_TYPE_RAW,
                                             RAW(zen_l1_dtlb_miss, all), false};
        events[count++] = (struct tlb_event){"ls_l1_d_tlb_miss.all_l2_miss", PERF_TYPE_RAW,
                                             RAW(zen_l1_dtlb_miss, all_l2_miss), true};
    }
    unsigned event = intel_walk_event(processor);
    if (event)
        events[count++] = (struct tlb_event){"dtlb_load_misses.walk_completed", PERF_TYPE_RAW,
                                             RAW(event, walk_completed), true};
    return count;
}

const char *tlb_counters_why(int error_number, char buffer[static TLB_WHY_MAX])
{
    switch (error_number) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        snprintf(buffer, TLB_WHY_MAX,
                 "this machine has no counters of TLB misses; most virtual machines have none");
        break;
    case EACCES:
    case EPERM:
        snprintf(buffer, TLB_WHY_MAX,
                 "the counters may not be used: sudo sysctl kernel.perf_event_paranoid=2 allows "
                 "it, unless a seccomp filter (a container's) forbids the call");
        break;
    case ENOSYS:
        snprintf(buffer, TLB_WHY_MAX, "this kernel, or a seccomp filter, has no perf_event_open()");
        break;
    default:
        snprintf(buffer, TLB_WHY_MAX, "the counters cannot be opened: %s", strerror(error_number));
        break;
    }
    return buffer;
}

static int open_event(const struct tlb_event *event)
{
    struct perf_event_attr attributes = {
        .size = sizeof attributes,
        .type = event->type,
        .config = event->config,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    const int this_thread = 0, any_cpu = -1, no_group = -1;
    return (int)syscall(SYS_perf_event_open, &attributes, this_thread, any_cpu, no_group,
                        PERF_FLAG_FD_CLOEXEC);
}

void tlb_counters_open(struct tlb_counters *counters)
{
    *counters = (struct tlb_counters){0};
    struct tlb_processor processor;
    tlb_processor_read(&processor);
    struct tlb_event events[TLB_COUNTERS_MAX];
    size_t count = tlb_events(&processor, events);
    for (size_t i = 0; i < count; i++) {
        int fd = open_event(&events[i]);
        if (fd < 0) {
            if (!counters->why[0])
                tlb_counters_why(errno, counters->why);
            continue;
        }
        counters->events[counters->count] = events[i];
        counters->fds[counters->count++] = fd;
    }
}

void tlb_counters_close(struct tlb_counters *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        close(counters->fds[i]);
    counters->count = 0;
}

void tlb_counters_start(const struct tlb_counters *counters)
{
    for (size_t i = 0; i < counters->count; i++) {
        ioctl(counters->fds[i], PERF_EVENT_IOC_RESET, 0);
        ioctl(counters->fds[i], PERF_EVENT_IOC_ENABLE, 0);
    }
}

/* The count, and the nanoseconds for which the event was wanted and counted. The times add up over
 * all passes while the count starts anew; their share is what the processor's counters, if shared,
 * were this event's. */
static double read_count(int fd)
{
    struct {
        uint64_t count, wanted, counted;
    } reading;
    if (read(fd, &reading, sizeof reading) != (ssize_t)sizeof reading || reading.counted == 0)
        return 0;
    return (double)reading.count * (double)reading.wanted / (double)reading.counted;
}

void tlb_counters_stop(const struct tlb_counters *counters, double counts[static TLB_COUNTERS_MAX])
{
    for (size_t i = 0; i < counters->count; i++)
        ioctl(counters->fds[i], PERF_EVENT_IOC_DISABLE, 0);
    for (size_t i = 0; i < TLB_COUNTERS_MAX; i++)
        counts[i] = i < counters->count ? read_count(counters->fds[i]) : 0;
}
