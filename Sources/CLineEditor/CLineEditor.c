#include "CLineEditor.h"

#include <dlfcn.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

typedef char *generator(const char *, int);

static char *(*read_line)(const char *);
static int (*add)(const char *);
static int (*load)(const char *);
static int (*save)(const char *);
static void (*stifle)(int);
static char **(*matches)(const char *, generator *);

static char **candidates;
static size_t candidate_count;

/// A word is completed behind its last dot, as in `hotel.ci`; one that begins with a dot is a command.
static char *next_match(const char *word, int state) {
    static size_t at;
    if (state == 0) at = 0;
    const char *dot = strrchr(word, '.');
    size_t kept = dot ? (size_t)(dot - word) + 1 : 0;
    while (at < candidate_count) {
        const char *candidate = candidates[at++];
        int is_command = candidate[0] == '.';
        if (is_command != (word[0] == '.')) continue;
        size_t from = is_command ? 0 : kept;
        if (strncasecmp(candidate, word + from, strlen(word) - from) != 0) continue;
        char *match = malloc(from + strlen(candidate) + 1);
        if (!match) return NULL;
        memcpy(match, word, from);
        strcpy(match + from, candidate);
        return match;
    }
    return NULL;
}

static int *is_over;

static char **complete(const char *word, int start, int end) {
    (void)start;
    (void)end;
    // Names of files are no part of a query.
    if (is_over) *is_over = 1;
    return matches(word, next_match);
}

int line_editor_open(void) {
    static const char *const names[] = {"libedit.so.2", "libedit.so.0", "libedit.3.dylib", "libedit.dylib"};
    // libedit takes only what the locale has, and Loveseat's texts are UTF-8.
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    read_line = (char *(*)(const char *))dlsym(library, "readline");
    add = (int (*)(const char *))dlsym(library, "add_history");
    load = (int (*)(const char *))dlsym(library, "read_history");
    save = (int (*)(const char *))dlsym(library, "write_history");
    stifle = (void (*)(int))dlsym(library, "stifle_history");
    matches = (char **(*)(const char *, generator *))dlsym(library, "rl_completion_matches");
    void (*prepare)(void) = (void (*)(void))dlsym(library, "using_history");
    if (!read_line || !add || !load || !save || !stifle || !matches || !prepare) return 0;
    const char **program = dlsym(library, "rl_readline_name");
    if (program) *program = "loveseat";
    char **(**completer)(const char *, int, int) = dlsym(library, "rl_attempted_completion_function");
    if (completer) *completer = complete;
    is_over = dlsym(library, "rl_attempted_completion_over");
    prepare();
    return 1;
}

char *line_editor_read(const char *prompt) { return read_line(prompt); }

void line_editor_remember(const char *line) { add(line); }

void line_editor_load(const char *path, int most) {
    stifle(most);
    load(path);
}

int line_editor_save(const char *path) {
    mode_t mask = umask(077);
    int error = save(path);
    umask(mask);
    return error;
}

void line_editor_complete(const char *const *words, size_t count) {
    for (size_t i = 0; i < candidate_count; i++) free(candidates[i]);
    free(candidates);
    candidate_count = 0;
    candidates = calloc(count ? count : 1, sizeof *candidates);
    if (!candidates) return;
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(words[i]);
        if (copy) candidates[candidate_count++] = copy;
    }
}
