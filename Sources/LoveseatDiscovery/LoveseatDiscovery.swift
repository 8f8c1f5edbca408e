@_exported public import LoveseatDiscoveryCore
