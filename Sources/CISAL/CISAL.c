#include "CISAL.h"

#if __has_include(<isa-l/igzip_lib.h>)

#include <dlfcn.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void (*prepare)(struct isal_zstream *);
static int (*run)(struct isal_zstream *);
static void (*count_symbols)(uint8_t *, int, struct isal_huff_histogram *);
static int (*make_codes)(struct isal_hufftables *, struct isal_huff_histogram *);
static int (*set_codes)(struct isal_zstream *, struct isal_hufftables *, int);
static uint32_t (*checksum)(uint32_t, const unsigned char *, uint64_t);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    // The layout of the structures belongs to this version of the interface.
    void *library = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    prepare = (void (*)(struct isal_zstream *))dlsym(library, "isal_deflate_init");
    run = (int (*)(struct isal_zstream *))dlsym(library, "isal_deflate");
    count_symbols =
        (void (*)(uint8_t *, int, struct isal_huff_histogram *))dlsym(library, "isal_update_histogram");
    make_codes = (int (*)(struct isal_hufftables *, struct isal_huff_histogram *))dlsym(library, "isal_create_hufftables");
    set_codes = (int (*)(struct isal_zstream *, struct isal_hufftables *, int))dlsym(library, "isal_deflate_set_hufftables");
    checksum = (uint32_t (*)(uint32_t, const unsigned char *, uint64_t))dlsym(library, "crc32_gzip_refl");
}

// Which Huffman codes are shorter depends on the messages: deflate's fixed codes for those that repeat what was sent before, and codes of
// their own, which every frame has to bring along (some 80 bytes), for those that are long or full of new text. So both are tried from
// time to time. Making codes for every frame, as level 1 does, costs three to nine times as much as the rest of level 0.

enum {
    /// Codes are made from so many of the last bytes.
    SAMPLE = 32 << 10,
    /// An input from this size on has codes of its own.
    LONG_INPUT = 4 << 10,
    /// Codes are made when there are so many inputs, or a whole sample.
    LEARNED = 32,
    /// Codes are tried for so many inputs before they are compared.
    TRIAL = 16,
    /// The better ones are used for so many bytes, until both are tried again.
    LIFE = 512 << 10,
};

enum phase { SAMPLING, TRYING, USING };

/// Inputs of a phase.
struct tally {
    uint32_t inputs;
    uint64_t bytes, deflated;
};

struct isal_deflater {
    struct isal_zstream stream;
    enum phase phase;
    /// Whether the codes that were made are used.
    int is_custom;
    /// The inputs of this phase; the last few of them; and those by which the present codes were found to be the better ones.
    struct tally now, last, best;
    struct isal_hufftables codes, long_codes;
    size_t sample_size;
    uint8_t sample[SAMPLE];
};

static void begin(struct isal_deflater *deflater, enum phase phase, int is_custom) {
    deflater->phase = phase;
    deflater->is_custom = is_custom;
    deflater->now = deflater->last = (struct tally){0, 0, 0};
    if (phase == SAMPLING) deflater->sample_size = 0;
}

struct isal_deflater *isal_deflater_create(void) {
    pthread_once(&once, load);
    if (!prepare || !run || !count_symbols || !make_codes || !set_codes) return NULL;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, sizeof(struct isal_deflater))) return NULL;
    struct isal_deflater *deflater = memory;
    prepare(&deflater->stream);
    deflater->stream.level = 0;
    deflater->stream.flush = SYNC_FLUSH;
    begin(deflater, SAMPLING, 0);
    return deflater;
}

/// Makes codes from bytes like those that follow. Symbols that do not occur in them have long codes. Returns 0 if that failed.
static int learn(struct isal_hufftables *codes, const uint8_t *bytes, size_t size) {
    struct isal_huff_histogram histogram;
    memset(&histogram, 0, sizeof histogram);
    count_symbols((uint8_t *)bytes, (int)size, &histogram);
    return make_codes(codes, &histogram) == 0;
}

/// Chooses the codes for an input.
static void choose(struct isal_deflater *deflater, const uint8_t *input, size_t size) {
    struct isal_hufftables *codes = deflater->is_custom ? &deflater->codes : NULL;
    if (size >= LONG_INPUT && learn(&deflater->long_codes, input, size < SAMPLE ? size : SAMPLE)) codes = &deflater->long_codes;
    set_codes(&deflater->stream, codes, codes ? IGZIP_HUFFTABLE_CUSTOM : IGZIP_HUFFTABLE_STATIC);
}

/// Whether the first has a size that is at most `percent` of that of the other, measured by what was deflated.
static int is_smaller(struct tally one, struct tally other, uint64_t percent) {
    return one.deflated * other.bytes * 100 < other.deflated * one.bytes * percent;
}

static void add(struct tally *tally, size_t size, size_t deflated) {
    tally->inputs += 1;
    tally->bytes += size;
    tally->deflated += deflated;
}

/// Learns from how short an input became.
static void note(struct isal_deflater *deflater, const uint8_t *input, size_t size, size_t deflated) {
    if (size >= LONG_INPUT) return;
    struct tally *now = &deflater->now;
    add(now, size, deflated);
    switch (deflater->phase) {
    case SAMPLING: {
        size_t room = SAMPLE - deflater->sample_size;
        size_t taken = size < room ? size : room;
        memcpy(deflater->sample + deflater->sample_size, input, taken);
        deflater->sample_size += taken;
        if (now->inputs < LEARNED && deflater->sample_size < SAMPLE) return;
        deflater->best = *now;
        if (learn(&deflater->codes, deflater->sample, deflater->sample_size)) begin(deflater, TRYING, 1);
        else begin(deflater, USING, 0);
        return;
    }
    case TRYING:
        if (now->inputs < TRIAL) return;
        // Codes that are brought along cost the peer time, too.
        if (!is_smaller(*now, deflater->best, 90)) return begin(deflater, USING, 0);
        deflater->best = *now;
        return begin(deflater, USING, 1);
    case USING:
        if (now->bytes >= LIFE || (deflater->is_custom && deflated > size)) return begin(deflater, SAMPLING, 0);
        add(&deflater->last, size, deflated);
        if (deflater->last.inputs < TRIAL) return;
        // Other messages than those that the codes were made for.
        if (is_smaller(deflater->best, deflater->last, 80)) return begin(deflater, SAMPLING, 0);
        deflater->last = (struct tally){0, 0, 0};
    }
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
    if (input_size > INT32_MAX || output_size > UINT32_MAX) return 0;
    choose(deflater, input, input_size);
    stream->next_in = (uint8_t *)input;
    stream->avail_in = (uint32_t)input_size;
    stream->next_out = output;
    stream->avail_out = (uint32_t)output_size;
    int status = run(stream);
    size_t written = output_size - stream->avail_out;
    int is_done = status == COMP_OK && stream->avail_in == 0 && stream->avail_out > 0;
    stream->next_in = stream->next_out = NULL;
    if (is_done) note(deflater, input, input_size, written);
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
