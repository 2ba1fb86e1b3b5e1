/* Maps the shared memory of SQLite (*-shm) privately, as on two machines. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    static void *(*real)(void *, size_t, int, int, int, off_t);
    char link[64], name[4096];
    if (!real) real = dlsym(RTLD_NEXT, "mmap");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = file < 0 ? -1 : readlink(link, name, sizeof name);
    if (length > 4 && !memcmp(name + length - 4, "-shm", 4))
        flags = (flags & ~MAP_SHARED) | MAP_PRIVATE;
    return real(at, size, protection, flags, file, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset) {
    return mmap(at, size, protection, flags, file, offset);
}
