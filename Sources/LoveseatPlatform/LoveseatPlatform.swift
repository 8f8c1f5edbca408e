// The C library of the platform, under one name. No other file names Glibc, Musl or Darwin (scripts/check-purity.sh).
#if canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#else
@_exported public import Darwin
#endif
