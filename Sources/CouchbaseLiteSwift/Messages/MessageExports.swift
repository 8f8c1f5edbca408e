// The engine's names are those of Couchbase Lite.
@_exported public import struct LoveseatNetwork.MessagingError
@_exported public import enum LoveseatNetwork.ProtocolType
