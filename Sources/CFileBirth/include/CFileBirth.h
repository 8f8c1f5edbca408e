#ifndef CFILEBIRTH_H
#define CFILEBIRTH_H

#include <stdint.h>

/// Which file a path names: not another one at the same place, and not a copy of it.
struct file_birth {
    uint64_t number;
    /// When the file was created; 0 if the file system does not say.
    int64_t seconds;
    uint32_t nanoseconds;
};

/// Returns 0, or -1 with `errno`.
int file_birth(const char *path, struct file_birth *birth);

#endif
