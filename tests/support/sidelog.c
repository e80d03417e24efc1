/*
 * sidelog                      does nothing and succeeds
 * sidelog FILE LABEL           appends "<epoch ns> LABEL <run id>\n" to FILE
 * sidelog FILE LABEL MS        the same with LABEL:start, sleeps MS milliseconds, the same with LABEL:end
 *
 * The job's own record of what it did, independent of Cronward's. One write(2) with O_APPEND a line, so lines of
 * several processes never mix and a line is there or not. The run id is CRONWARD_RUN_ID, "-" where there is none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int append(const char *file, const struct timespec *at, const char *label, const char *suffix)
{
    char line[1024];
    const char *run = getenv("CRONWARD_RUN_ID");
    int length = snprintf(line, sizeof line, "%lld%09ld %s%s %s\n", (long long)at->tv_sec, at->tv_nsec, label, suffix,
                          run && *run ? run : "-");
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    if (fd < 0 || length >= (int)sizeof line || write(fd, line, length) != length)
        return 1;
    return close(fd) != 0;
}

int main(int argc, char **argv)
{
    struct timespec at, rest;
    long ms;

    clock_gettime(CLOCK_REALTIME, &at);
    if (argc < 3)
        return argc != 1;
    if (argc == 3)
        return append(argv[1], &at, argv[2], "");
    ms = strtol(argv[3], NULL, 10);
    rest.tv_sec = ms / 1000;
    rest.tv_nsec = ms % 1000 * 1000000;
    if (append(argv[1], &at, argv[2], ":start"))
        return 1;
    while (nanosleep(&rest, &rest) != 0)
        ;
    clock_gettime(CLOCK_REALTIME, &at);
    return append(argv[1], &at, argv[2], ":end");
}
