/* Fails chosen system calls on files below a folder: preloaded by disk_faults.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SHORT = -1, TORN = -2 };
static char under[PATH_MAX];
static long *shared;   /* calls so far, calls failed, then the name of the first that failed */
static long failing;   /* the number of the call that fails; 0: none */
static int kind;       /* an errno, or SHORT (half is written), or TORN (half, then ENOSPC) */
static int lasting;    /* every later call that takes space fails, too, as on a full disk */
static __thread int torn;

void disk_faults_arm(const char *folder, long *counts, long call, int what, int forever)
{
    strncpy(under, folder, sizeof under - 1);
    shared = counts;
    failing = call;
    kind = what;
    lasting = forever;
}

static int is_under(const char *path)
{
    return shared && path && strncmp(path, under, strlen(under)) == 0;
}

static int path_is_under(int folder, const char *path)
{
    char whole[PATH_MAX], link[64];
    ssize_t length;
    if (!shared || !path)
        return 0;
    if (path[0] == '/')
        return is_under(path);
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    length = readlink(link, whole, sizeof whole - 1);
    whole[length < 0 ? 0 : length] = 0;
    return is_under(whole);
}

static int is_open_under(int number)
{
    char link[64], whole[PATH_MAX];
    ssize_t length;
    if (!shared)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    length = readlink(link, whole, sizeof whole - 1);
    whole[length < 0 ? 0 : length] = 0;
    return is_under(whole);
}

/* Count a call; the errno it fails with, SHORT or TORN for one that writes, or 0. */
static int fault(const char *name, int takes_space, int writes)
{
    long number = __atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
    if (!failing || number < failing || (number > failing && !(lasting && takes_space)))
        return 0;
    if (__atomic_fetch_add(shared + 1, 1, __ATOMIC_SEQ_CST) == 0)
        strncpy((char *)(shared + 2), name, 31);
    if (kind < 0)
        return writes ? kind : (takes_space ? ENOSPC : EIO);
    return takes_space ? kind : EIO;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE(condition, name, space)                                                             \
    if (condition) {                                                                               \
        int why = fault(name, space, 0);                                                           \
        if (why) { errno = why; return -1; }                                                       \
    }
/* half of it is written; what the caller tries of the rest fails where it is to be torn */
#define WRITING(name, condition, half, whole)                                                      \
    if (condition) {                                                                               \
        int why = torn ? (torn = 0, ENOSPC) : fault(name, 1, 1);                                   \
        if (why < 0 && size > 1) { torn = why == TORN; return half; }                              \
        if (why) { errno = why < 0 ? ENOSPC : why; return -1; }                                    \
    }                                                                                              \
    return whole;

ssize_t write(int fd, const void *from, size_t size)
{
    WRITING("write", is_open_under(fd), REAL(write)(fd, from, size / 2), REAL(write)(fd, from, size))
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at)
{
    WRITING("pwrite", is_open_under(fd), REAL(pwrite)(fd, from, size / 2, at), REAL(pwrite)(fd, from, size, at))
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    WRITING("pwrite", is_open_under(fd), REAL(pwrite64)(fd, from, size / 2, at), REAL(pwrite64)(fd, from, size, at))
}
ssize_t writev(int fd, const struct iovec *from, int size)
{
    WRITING("writev", is_open_under(fd), REAL(writev)(fd, from, size / 2), REAL(writev)(fd, from, size))
}
ssize_t read(int fd, void *to, size_t size) { REFUSE(is_open_under(fd), "read", 0) return REAL(read)(fd, to, size); }
ssize_t pread(int fd, void *to, size_t size, off_t at) { REFUSE(is_open_under(fd), "pread", 0) return REAL(pread)(fd, to, size, at); }
ssize_t pread64(int fd, void *to, size_t size, off64_t at) { REFUSE(is_open_under(fd), "pread", 0) return REAL(pread64)(fd, to, size, at); }
int fsync(int fd) { REFUSE(is_open_under(fd), "fsync", 1) return REAL(fsync)(fd); }
int fdatasync(int fd) { REFUSE(is_open_under(fd), "fdatasync", 1) return REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { REFUSE(is_open_under(fd), "ftruncate", 1) return REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { REFUSE(is_open_under(fd), "ftruncate", 1) return REAL(ftruncate64)(fd, size); }
int fallocate(int fd, int mode, off_t at, off_t size) { REFUSE(is_open_under(fd), "fallocate", 1) return REAL(fallocate)(fd, mode, at, size); }
int posix_fallocate(int fd, off_t at, off_t size)
{
    int why = is_open_under(fd) ? fault("posix_fallocate", 1, 0) : 0;
    return why ? why : REAL(posix_fallocate)(fd, at, size);
}
int flock(int fd, int how) { REFUSE(is_open_under(fd), "flock", 0) return REAL(flock)(fd, how); }
int rename(const char *from, const char *to) { REFUSE(path_is_under(AT_FDCWD, to), "rename", 1) return REAL(rename)(from, to); }
int link(const char *from, const char *to) { REFUSE(path_is_under(AT_FDCWD, to), "link", 1) return REAL(link)(from, to); }
int linkat(int a, const char *from, int b, const char *to, int how)
{
    REFUSE(path_is_under(b, to), "link", 1)
    return REAL(linkat)(a, from, b, to, how);
}
int unlink(const char *path) { REFUSE(path_is_under(AT_FDCWD, path), "unlink", 0) return REAL(unlink)(path); }
int unlinkat(int folder, const char *path, int how)
{
    REFUSE(path_is_under(folder, path), "unlink", 0)
    return REAL(unlinkat)(folder, path, how);
}
int mkdir(const char *path, mode_t mode) { REFUSE(path_is_under(AT_FDCWD, path), "mkdir", 1) return REAL(mkdir)(path, mode); }
int msync(void *at, size_t size, int how) { REFUSE(shared != 0, "msync", 1) return REAL(msync)(at, size, how); }

void *mmap(void *at, size_t size, int protect, int how, int fd, off_t from)
{
    int why = fd >= 0 && is_open_under(fd) ? fault("mmap", 0, 0) : 0;
    if (why) { errno = why; return MAP_FAILED; }
    return REAL(mmap)(at, size, protect, how, fd, from);
}
void *mmap64(void *at, size_t size, int protect, int how, int fd, off64_t from)
{
    int why = fd >= 0 && is_open_under(fd) ? fault("mmap", 0, 0) : 0;
    if (why) { errno = why; return MAP_FAILED; }
    return REAL(mmap64)(at, size, protect, how, fd, from);
}

#define OPENING(name, folder, path, how, ...)                                                      \
    mode_t mode = 0;                                                                               \
    if (how & (O_CREAT | O_TMPFILE)) {                                                             \
        va_list more;                                                                              \
        va_start(more, how);                                                                       \
        mode = va_arg(more, mode_t);                                                               \
        va_end(more);                                                                              \
        REFUSE((how & O_CREAT) && path_is_under(folder, path), "open", 1)                          \
    }                                                                                              \
    return REAL(name)(__VA_ARGS__, mode);
int open(const char *path, int how, ...) { OPENING(open, AT_FDCWD, path, how, path, how) }
int open64(const char *path, int how, ...) { OPENING(open64, AT_FDCWD, path, how, path, how) }
int openat(int folder, const char *path, int how, ...) { OPENING(openat, folder, path, how, folder, path, how) }
int openat64(int folder, const char *path, int how, ...) { OPENING(openat64, folder, path, how, folder, path, how) }

#define LOCKING(name)                                                                              \
    va_list more;                                                                                  \
    va_start(more, what);                                                                          \
    void *with = va_arg(more, void *);                                                             \
    va_end(more);                                                                                  \
    REFUSE((what == F_SETLK || what == F_SETLKW) && is_open_under(fd), "fcntl lock", 0)            \
    return REAL(name)(fd, what, with);
int fcntl(int fd, int what, ...) { LOCKING(fcntl) }
int fcntl64(int fd, int what, ...) { LOCKING(fcntl64) }
