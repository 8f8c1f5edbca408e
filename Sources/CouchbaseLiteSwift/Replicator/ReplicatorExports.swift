// Of the engine's types, those that have the names and shapes of Couchbase Lite.
@_exported public import protocol LoveseatCore.Authenticator
@_exported public import struct LoveseatCore.BasicAuthenticator
@_exported public import struct LoveseatCore.DocumentFlags
@_exported public import protocol LoveseatCore.Endpoint
@_exported public import enum LoveseatCore.ReplicatorType
@_exported public import struct LoveseatCore.SessionAuthenticator
