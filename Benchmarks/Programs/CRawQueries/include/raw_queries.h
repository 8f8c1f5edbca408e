#pragma once
#include <sqlite3.h>

/// Registers `walk(body, path)`, which finds a property in JSON text without building anything: what SQLite's own
/// `json_extract` would be if it were written for one property. `path` has names and dots.
int raw_register(sqlite3 *database);

/// Steps through all rows of a statement, reads the first column of each, and resets it. Returns how many rows there were, or -1.
long raw_run(sqlite3_stmt *statement);
