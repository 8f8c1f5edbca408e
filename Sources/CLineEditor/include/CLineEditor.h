#ifndef CLINEEDITOR_H
#define CLINEEDITOR_H

#include <stddef.h>

/// libedit, which edits lines at a terminal. It is loaded, not linked, so that programs run without it.

/// Returns whether the library is there. Call it before the others, and all of them from one thread.
int line_editor_open(void);

/// Reads a line without its end, which the caller frees; NULL at the end of the input or after an interrupt.
char *line_editor_read(const char *prompt);

/// Puts a line into the history.
void line_editor_remember(const char *line);

/// Reads the history from a file, and keeps `most` lines of it.
void line_editor_load(const char *path, int most);

/// Writes the history to a file, which only its owner can read. Returns an `errno`, 0 for success.
int line_editor_save(const char *path);

/// What the tab key completes a word to, without regard to case. The words are copied.
void line_editor_complete(const char *const *words, size_t count);

#endif
