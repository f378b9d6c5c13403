#include "core/sys.h"

#include "core/checked.h"
#include "core/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns from the function with `result` and `error_number` when a test asked this call to fail.
 */
#define FAIL_IF_ARMED(name, error_number, result)                                                  \
    do {                                                                                           \
        if (core_fault(name)) {                                                                    \
            errno = (error_number);                                                                \
            return (result);                                                                       \
        }                                                                                          \
    } while (0)

void *sys_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    FAIL_IF_ARMED("mmap", ENOMEM, MAP_FAILED);
    return mmap(address, bytes, protection, flags, fd, offset);
}

/* munmap can fail only for a bad argument or when it would have to split a mapping beyond the limit
 * of mappings; injecting a failure would only prove that the test leaks. */
int sys_munmap(void *address, size_t bytes)
{
    return munmap(address, bytes);
}

int sys_madvise(void *address, size_t bytes, int advice)
{
    FAIL_IF_ARMED("madvise", ENOMEM, -1);
    return madvise(address, bytes, advice);
}

int sys_memfd_create(const char *name, unsigned flags)
{
    FAIL_IF_ARMED("memfd_create", EMFILE, -1);
    return memfd_create(name, flags);
}

int sys_ftruncate(int fd, off_t bytes)
{
    FAIL_IF_ARMED("ftruncate", ENOSPC, -1);
    return ftruncate(fd, bytes);
}

int sys_mbind(void *address, size_t bytes, int node)
{
    FAIL_IF_ARMED("mbind", EINVAL, -1);
    enum { BITS = 8 * sizeof(unsigned long), NODES_MAX = 1024 };
    unsigned long nodes[NODES_MAX / BITS] = {0};
    if (node < 0 || node >= NODES_MAX) {
        errno = EINVAL;
        return -1;
    }
    nodes[node / BITS] = 1ul << (node % BITS);
    return (int)syscall(SYS_mbind, address, bytes, MPOL_BIND, nodes, (unsigned long)NODES_MAX, 0u);
}

int sys_mprotect(void *address, size_t bytes, int protection)
{
    FAIL_IF_ARMED("mprotect", ENOMEM, -1);
    return mprotect(address, bytes, protection);
}

int sys_seal(int fd, int seals)
{
    FAIL_IF_ARMED("fcntl(F_ADD_SEALS)", EPERM, -1);
    return fcntl(fd, F_ADD_SEALS, seals);
}

int sys_seals(int fd)
{
    FAIL_IF_ARMED("fcntl(F_GET_SEALS)", EINVAL, -1);
    return fcntl(fd, F_GET_SEALS);
}

int sys_duplicate(int fd)
{
    FAIL_IF_ARMED("fcntl(F_DUPFD_CLOEXEC)", EMFILE, -1);
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

int sys_punch_hole(int fd, off_t bytes)
{
    FAIL_IF_ARMED("fallocate", EINTR, -1);
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes);
}

int sys_open(const char *path, int flags)
{
    FAIL_IF_ARMED("open", EMFILE, -1);
    return open(path, flags | O_CLOEXEC);
}

int sys_close(int fd)
{
    return close(fd);
}

int sys_fstat(int fd, struct stat *status)
{
    FAIL_IF_ARMED("fstat", EIO, -1);
    return fstat(fd, status);
}

int sys_fstatfs(int fd, struct statfs *status)
{
    FAIL_IF_ARMED("fstatfs", EIO, -1);
    return fstatfs(fd, status);
}

#ifdef RAFFIA_FAULTS

static _Atomic(sys_read_hook) read_hook;

void sys_set_read_hook(sys_read_hook hook)
{
    atomic_store(&read_hook, hook);
}

/* False, with errno set, if the hook wants the read to fail. */
static bool ask_read_hook(int fd, off_t offset, size_t *bytes)
{
    sys_read_hook hook = atomic_load(&read_hook);
    int error_number = hook ? hook(fd, offset, bytes) : 0;
    if (error_number)
        errno = error_number;
    return error_number == 0;
}

#else

static bool ask_read_hook(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)offset, (void)bytes;
    return true;
}

#endif

ssize_t sys_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    FAIL_IF_ARMED("pread", EIO, -1);
    if (!ask_read_hook(fd, offset, &bytes))
        return -1;
    return pread(fd, buffer, bytes, offset);
}

ssize_t sys_preadv(int fd, const struct iovec *pieces, int count, off_t offset)
{
    FAIL_IF_ARMED("preadv", EIO, -1);
    size_t first_bytes = count > 0 ? pieces->iov_len : 0, allowed = first_bytes;
    if (!ask_read_hook(fd, offset, &allowed))
        return -1;
    if (allowed < first_bytes)
        return pread(fd, pieces->iov_base, allowed, offset);
    return preadv(fd, pieces, count, offset);
}

ssize_t sys_preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags)
{
    FAIL_IF_ARMED("preadv2", EOPNOTSUPP, -1);
    return preadv2(fd, pieces, count, offset, flags);
}

int sys_ioctl(int fd, unsigned long request, void *argument)
{
    FAIL_IF_ARMED("ioctl", ENOTTY, -1);
    return ioctl(fd, request, argument);
}

DIR *sys_opendir(const char *path)
{
    FAIL_IF_ARMED("opendir", EMFILE, NULL);
    return opendir(path);
}

struct dirent *sys_readdir(DIR *directory)
{
    FAIL_IF_ARMED("readdir", EIO, NULL);
    return readdir(directory);
}

/* Linux 6.5 gave cachestat this number on every architecture. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

int sys_cachestat(int fd, uint64_t offset, uint64_t bytes, uint64_t *cached_pages)
{
    FAIL_IF_ARMED("cachestat", ENOSYS, -1);
    struct {
        uint64_t offset, bytes;
    } range = {offset, bytes};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } counts = {0};
    if (syscall(SYS_cachestat, fd, &range, &counts, 0u))
        return -1;
    *cached_pages = counts.cached;
    return 0;
}

/* STATX_DIOALIGN and its two fields came with Linux 6.1; older headers lack them. The fields lie at
 * fixed offsets of the kernel's 256-byte struct statx. */
#define STATX_DIOALIGN_BIT        0x2000u
#define STATX_MASK_OFFSET         0
#define STATX_DIO_MEMORY_OFFSET   152
#define STATX_DIO_OFFSET_OFFSET   156
#define STATX_KERNEL_STRUCT_BYTES 256

int sys_direct_alignment(int fd, size_t *memory_alignment, size_t *offset_alignment)
{
    FAIL_IF_ARMED("statx", ENOSYS, -1);
    unsigned char raw[STATX_KERNEL_STRUCT_BYTES] = {0};
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN_BIT, raw))
        return -1;
    uint32_t mask, memory, offset;
    memcpy(&mask, raw + STATX_MASK_OFFSET, sizeof mask);
    memcpy(&memory, raw + STATX_DIO_MEMORY_OFFSET, sizeof memory);
    memcpy(&offset, raw + STATX_DIO_OFFSET_OFFSET, sizeof offset);
    if (!(mask & STATX_DIOALIGN_BIT)) {
        errno = ENOSYS;
        return -1;
    }
    *memory_alignment = memory;
    *offset_alignment = offset;
    return 0;
}

/* The C library keeps 40 MiB of stacks of threads that ended for those to come, which is five of
 * the 8 MiB that a thread gets as a rule. All others are unmapped, which interrupts each CPU that
 * the process runs on: 0.3 ms at the end of a load by 14 threads. What runs there are loops of our
 * own, the device's driver, and the program's log sink and callbacks. */
#define STACK_BYTES ((size_t)1 << 20)
#define STACK_UNIT  ((size_t)64 << 10)

static int add_thread_variables(struct dl_phdr_info *module, size_t size, void *sum)
{
    (void)size;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        if (part->p_type == PT_TLS)
            *(size_t *)sum += part->p_memsz + part->p_align;
    }
    return 0;
}

/* At least what the C library takes from each stack for the thread-local variables of the program
 * and its libraries: up to all of it, and then it refuses, or leaves next to nothing. Those of
 * libraries that are loaded later lie elsewhere. Looked up when the library is loaded: later the
 * loader's lock may be somebody's who waits for one of ours, or who was there when this process was
 * forked. */
static size_t thread_variable_bytes;

static __attribute__((constructor)) void find_thread_variables(void)
{
    (void)dl_iterate_phdr(add_thread_variables, &thread_variable_bytes);
}

int sys_thread_create(pthread_t *thread, void *(*entry)(void *), void *argument)
{
    pthread_attr_t attributes;
    if (core_fault("pthread_create"))
        return EAGAIN;
    int error_number = pthread_attr_init(&attributes);
    if (error_number)
        return error_number;
    error_number = pthread_attr_setstacksize(
        &attributes, core_align_up_unchecked(STACK_BYTES + thread_variable_bytes, STACK_UNIT));
    if (!error_number)
        error_number = pthread_create(thread, &attributes, entry, argument);
    pthread_attr_destroy(&attributes);
    /* There are variables that were not seen: of a program beside which the library has names of
     * its own (dlmopen(3)), and room that the loader was told to keep. */
    return error_number == EINVAL ? pthread_create(thread, NULL, entry, argument) : error_number;
}

static const char *root = "";

void sys_set_root(const char *new_root)
{
    root = new_root ? new_root : "";
}

bool sys_root_is_real(void)
{
    return *root == '\0';
}

/* Longest path looked at, the root and the NUL included. */
#define PATH_BYTES 512

static bool below_root(const char *path, char full[static PATH_BYTES])
{
    if (snprintf(full, PATH_BYTES, "%s%s", root, path) < PATH_BYTES)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

DIR *sys_open_directory(const char *path)
{
    FAIL_IF_ARMED("opendir", EMFILE, NULL);
    char full[PATH_BYTES];
    return below_root(path, full) ? opendir(full) : NULL;
}

ssize_t sys_read_text(const char *path, char *buffer, size_t capacity)
{
    char full[PATH_BYTES];
    if (!below_root(path, full))
        return -1;
    int fd = sys_open(full, O_RDONLY);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 1;
    while (length + 1 < capacity && got > 0) {
        got = core_fault("read") ? (errno = EIO, -1)
                                 : read(fd, buffer + length, capacity - 1 - length);
        if (got > 0)
            length += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    int error_number = errno;
    sys_close(fd);
    buffer[length] = '\0';
    errno = error_number;
    return got < 0 ? -1 : (ssize_t)length;
}

int sys_read_number(const char *path, uint64_t *value_p)
{
    char text[64];
    if (sys_read_text(path, text, sizeof text) < 0)
        return -1;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    /* strtoull() lets signs and leading space pass. */
    bool number = *text >= '0' && *text <= '9' && !errno;
    if (!number || (strcmp(end, "\n") != 0 && *end != '\0')) {
        errno = EINVAL;
        return -1;
    }
    *value_p = value;
    return 0;
}
