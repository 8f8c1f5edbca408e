#include "raw_queries.h"
#include <stdlib.h>
#include <string.h>

// The text is JSON that Loveseat wrote: valid, and without white space.

static const char *past_string(const char *at) {
    for (at++; *at != '"'; at++) {
        if (*at == '\\') at++;
    }
    return at + 1;
}

static const char *past_value(const char *at) {
    if (*at == '"') return past_string(at);
    if (*at != '{' && *at != '[') {
        while (*at != ',' && *at != '}' && *at != ']' && *at != 0) at++;
        return at;
    }
    int depth = 0;
    do {
        if (*at == '"') {
            at = past_string(at);
            continue;
        }
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') depth--;
        at++;
    } while (depth > 0);
    return at;
}

static const char *member(const char *at, const char *name, size_t length) {
    if (*at++ != '{') return NULL;
    while (*at == '"') {
        const char *end = past_string(at);
        int found = (size_t)(end - at - 2) == length && memcmp(at + 1, name, length) == 0;
        at = end + 1;
        if (found) return at;
        at = past_value(at);
        if (*at == ',') at++;
    }
    return NULL;
}

static void walk(sqlite3_context *context, int count, sqlite3_value **arguments) {
    (void)count;
    const char *at = (const char *)sqlite3_value_text(arguments[0]);
    const char *path = (const char *)sqlite3_value_text(arguments[1]);
    while (at != NULL && *path != 0) {
        size_t length = strcspn(path, ".");
        at = member(at, path, length);
        path += length + (path[length] == '.');
    }
    if (at == NULL || *at == 'n') return;
    const char *end = past_value(at);
    if (*at == '"') {
        sqlite3_result_text(context, at + 1, (int)(end - at - 2), SQLITE_TRANSIENT);
    } else if (*at == '{' || *at == '[') {
        sqlite3_result_text(context, at, (int)(end - at), SQLITE_TRANSIENT);
    } else if (*at == 't' || *at == 'f') {
        sqlite3_result_int(context, *at == 't');
    } else if (memchr(at, '.', end - at) || memchr(at, 'e', end - at)) {
        sqlite3_result_double(context, strtod(at, NULL));
    } else {
        sqlite3_result_int64(context, strtoll(at, NULL, 10));
    }
}

int raw_register(sqlite3 *database) {
    int kind = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    return sqlite3_create_function_v2(database, "walk", 2, kind, NULL, walk, NULL, NULL, NULL);
}

long raw_run(sqlite3_stmt *statement) {
    long rows = 0;
    volatile long read = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        rows++;
        if (sqlite3_column_text(statement, 0) != NULL) read += sqlite3_column_bytes(statement, 0);
    }
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? rows : -1;
}
