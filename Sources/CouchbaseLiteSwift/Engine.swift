import LoveseatCore
import LoveseatIdentity
import LoveseatModel

// The engine's types, whose names this module uses for its own.
typealias EngineDatabase = LoveseatCore.Database
typealias EngineCollection = LoveseatCore.Collection
typealias EngineDocument = LoveseatModel.Document
typealias EngineQuery = LoveseatCore.Query
typealias EngineReplicator = LoveseatCore.Replicator
typealias EngineIdentity = LoveseatIdentity.TLSIdentity
typealias EngineLogDomain = LoveseatCore.LogDomain
