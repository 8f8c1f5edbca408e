/// The one import of an app: the database, replication and the network.
@_exported public import LoveseatCore
@_exported public import LoveseatIdentity
@_exported public import LoveseatModel
@_exported public import LoveseatNetwork
