#ifndef CISAL_H
#define CISAL_H

#include <stddef.h>
#include <stdint.h>

/// Intel's ISA-L, which deflates and sums faster than zlib. Its headers have to be there at build time, and the library at run time; it is
/// loaded, not linked, so that programs run without it.

/// Whether there is `isal_checksum`.
int isal_has_checksum(void);

/// The CRC-32 of bytes that follow those with the CRC-32 `value`, which is 0 for none. Only if `isal_has_checksum`.
uint32_t isal_checksum(uint32_t value, const uint8_t *bytes, size_t size);

/// One stream of raw deflate at level 0, with its window, and with the Huffman codes that suit what goes through it.
struct isal_deflater;

/// Returns NULL without the library or memory.
struct isal_deflater *isal_deflater_create(void);

void isal_deflater_destroy(struct isal_deflater *);

/// Deflates all of the input, and flushes to a byte. The output may need twice the room of the input, and 300 bytes.
///
/// Returns the number of bytes written, or 0 if the output has no room for them.
size_t isal_deflater_run(
    struct isal_deflater *, const uint8_t *input, size_t input_size, uint8_t *output, size_t output_size);

#endif
