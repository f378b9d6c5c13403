/*
 * The system calls the library makes, one thin function each, so that tests can fail any of them.
 *
 * All behave as their namesakes: -1 (or MAP_FAILED, or NULL) with errno set. Injected failures
 * carry an errno that the call can really return. Calls newer than the C library are declared here
 * too and give ENOSYS where the kernel lacks them: nothing is assumed from a version number.
 */
#ifndef CORE_SYS_H
#define CORE_SYS_H

#include <raffia/base.h>

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Advice that came with Linux 5.14 and 6.1; kernels without it say EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Memory. */
void *sys_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int sys_munmap(void *address, size_t bytes);
int sys_madvise(void *address, size_t bytes, int advice);
int sys_memfd_create(const char *name, unsigned flags);
int sys_ftruncate(int fd, off_t bytes);
int sys_mbind(void *address, size_t bytes, int node);
int sys_mprotect(void *address, size_t bytes, int protection);
int sys_seal(int fd, int seals); /* memfd seals, F_SEAL_* */
int sys_seals(int fd);           /* those set; -1 */
int sys_duplicate(int fd);       /* with close-on-exec */

/* Gives up the memory behind the first `bytes` of a memfd; its size stays. */
int sys_punch_hole(int fd, off_t bytes);

/* Files. */
int sys_open(const char *path, int flags);
int sys_close(int fd);
int sys_fstat(int fd, struct stat *status);
int sys_fstatfs(int fd, struct statfs *status);
ssize_t sys_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t sys_preadv(int fd, const struct iovec *pieces, int count, off_t offset);
ssize_t sys_preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags);
#ifdef RAFFIA_FAULTS
/* For tests: called before each sys_pread() and sys_preadv(), in the thread that reads. It may
 * block and may lower *bytes, as if the file system gave less; a result other than 0 is the errno
 * of a call that fails. NULL ends it. */
typedef int (*sys_read_hook)(int fd, off_t offset, size_t *bytes);
void sys_set_read_hook(sys_read_hook hook);
#endif

int sys_ioctl(int fd, unsigned long request, void *argument);
DIR *sys_opendir(const char *path); /* closed with closedir(3) */
struct dirent *sys_readdir(DIR *directory);

/* Pages of a file that are in the page cache (cachestat(2), Linux 6.5). */
int sys_cachestat(int fd, uint64_t offset, uint64_t bytes, uint64_t *cached_pages);

/* Memory and file-offset alignment that O_DIRECT needs on this file (statx(2), Linux 6.1); 0 where
 * the file cannot be read directly; -1 with ENOSYS where the kernel does not say. */
int sys_direct_alignment(int fd, size_t *memory_alignment, size_t *offset_alignment);

/* Threads: an error number, as pthread_create(3). The stack is of 1 MiB, and as much
 * more as the program's thread-local variables take of it. */
int sys_thread_create(pthread_t *thread, void *(*entry)(void *), void *argument);

/*
 * Reads a small text file (/proc, /sys) whole, ended by a NUL; longer ones are cut. Returns the
 * length or -1. `path` is taken below the root of sys_set_root().
 */
ssize_t sys_read_text(const char *path, char *buffer, size_t capacity);

/* Reads a text file that holds one unsigned number. Returns 0, or -1 with errno set (EINVAL if it
 * holds something else). */
int sys_read_number(const char *path, uint64_t *value_p);

/* Opens a directory below the root of sys_set_root(), for readdir(3) and closedir(3). */
DIR *sys_open_directory(const char *path);

/* For tests: a directory under which the three functions above look for /proc and /sys. NULL
 * restores the real one. The string is not copied. Not thread-safe. */
void sys_set_root(const char *root);

/* Whether no such directory is set: what cannot change on a machine may then be kept. */
bool sys_root_is_real(void);

#endif
