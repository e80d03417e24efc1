/* Preloaded: the wall clock shows what the kernel says plus the seconds in the file that SHIFTED_CLOCK names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift(void) {
    static volatile long *mapped;
    if (!mapped) {
        const char *path = getenv("SHIFTED_CLOCK");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0)
            close(fd);
        static long none;
        mapped = page == MAP_FAILED ? &none : page;
    }
    return mapped;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    if (result == 0 && id == CLOCK_REALTIME)
        now->tv_sec += *shift();
    return result;
}
