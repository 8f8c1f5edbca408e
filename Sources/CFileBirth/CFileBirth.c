// Swift's view of the C library has no `statx`, which only GNU's extensions declare.
#define _GNU_SOURCE
#include "CFileBirth.h"

#include <fcntl.h>
#include <sys/stat.h>

int file_birth(const char *path, struct file_birth *birth) {
#if defined(__linux__) && defined(STATX_BTIME)
    struct statx extended;
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &extended) == 0) {
        int is_known = (extended.stx_mask & STATX_BTIME) != 0;
        birth->number = extended.stx_ino;
        birth->seconds = is_known ? extended.stx_btime.tv_sec : 0;
        birth->nanoseconds = is_known ? extended.stx_btime.tv_nsec : 0;
        return 0;
    }
    // A kernel or a sandbox without this call.
#endif
    struct stat status;
    if (stat(path, &status) != 0) return -1;
    birth->number = status.st_ino;
    birth->seconds = 0;
    birth->nanoseconds = 0;
#if defined(__APPLE__)
    birth->seconds = status.st_birthtimespec.tv_sec;
    birth->nanoseconds = (uint32_t)status.st_birthtimespec.tv_nsec;
#endif
    return 0;
}
