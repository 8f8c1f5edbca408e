#ifndef CISAL_H
#define CISAL_H

#include <stddef.h>
#include <stdint.h>

/// Intel's ISA-L, which deflates faster than zlib. Its headers have to be there at build time, and the library at run time; it is
/// loaded, not linked, so that programs run without it.

/// One stream of raw deflate at level 1, with its window.
struct isal_deflater;

/// Returns NULL without the library or memory.
struct isal_deflater *isal_deflater_create(void);

void isal_deflater_destroy(struct isal_deflater *);

/// Deflates all of the input, and flushes to a byte.
///
/// Returns the number of bytes written, or 0 if the output has no room for them.
size_t isal_deflater_run(
    struct isal_deflater *, const uint8_t *input, size_t input_size, uint8_t *output, size_t output_size);

#endif
