#include "CISAL.h"

#if __has_include(<isa-l/igzip_lib.h>)

#include <dlfcn.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdlib.h>

static void (*prepare)(struct isal_zstream *);
static int (*run)(struct isal_zstream *);
static uint32_t (*checksum)(uint32_t, const unsigned char *, uint64_t);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    // The layout of the structures belongs to this version of the interface.
    void *library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    prepare = (void (*)(struct isal_zstream *))dlsym(library, "isal_deflate_init");
    run = (int (*)(struct isal_zstream *))dlsym(library, "isal_deflate");
    checksum = (uint32_t (*)(uint32_t, const unsigned char *, uint64_t))dlsym(library, "crc32_gzip_refl");
}

struct isal_deflater {
    struct isal_zstream stream;
    // More would not help: a frame has at most 16 kB of input before it is flushed.
    uint8_t buffer[ISAL_DEF_LVL1_SMALL];
};

struct isal_deflater *isal_deflater_create(void) {
    pthread_once(&once, load);
    if (!prepare || !run) return NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, sizeof(struct isal_deflater))) return NULL;
    struct isal_deflater *deflater = memory;
    prepare(&deflater->stream);
    deflater->stream.level = 1;
    deflater->stream.level_buf = deflater->buffer;
    deflater->stream.level_buf_size = sizeof deflater->buffer;
    deflater->stream.flush = SYNC_FLUSH;
    return deflater;
}

int isal_has_checksum(void) {
    pthread_once(&once, load);
    return checksum != NULL;
}

uint32_t isal_checksum(uint32_t value, const uint8_t *bytes, size_t size) { return checksum(value, bytes, size); }

void isal_deflater_destroy(struct isal_deflater *deflater) { free(deflater); }

size_t isal_deflater_run(
    struct isal_deflater *deflater, const uint8_t *input, size_t input_size, uint8_t *output, size_t output_size) {
    struct isal_zstream *stream = &deflater->stream;
    if (input_size > UINT32_MAX || output_size > UINT32_MAX) return 0;
    stream->next_in = (uint8_t *)input;
    stream->avail_in = (uint32_t)input_size;
    stream->next_out = output;
    stream->avail_out = (uint32_t)output_size;
    int status = run(stream);
    size_t written = output_size - stream->avail_out;
    int is_done = status == COMP_OK && stream->avail_in == 0 && stream->avail_out > 0;
    stream->next_in = stream->next_out = NULL;
    return is_done ? written : 0;
}

#else

int isal_has_checksum(void) { return 0; }
uint32_t isal_checksum(uint32_t value, const uint8_t *bytes, size_t size) {
    (void)bytes, (void)size;
    return value;
}
struct isal_deflater *isal_deflater_create(void) { return NULL; }
void isal_deflater_destroy(struct isal_deflater *deflater) { (void)deflater; }
size_t isal_deflater_run(
    struct isal_deflater *deflater, const uint8_t *input, size_t input_size, uint8_t *output, size_t output_size) {
    (void)deflater, (void)input, (void)input_size, (void)output, (void)output_size;
    return 0;
}

#endif
