// The engine's names are those of Couchbase Lite.
@_exported public import struct LoveseatIdentity.KeyUsages
@_exported public import let LoveseatIdentity.certAttrCommonName
@_exported public import let LoveseatIdentity.certAttrCountry
@_exported public import let LoveseatIdentity.certAttrEmailAddress
@_exported public import let LoveseatIdentity.certAttrGivenName
@_exported public import let LoveseatIdentity.certAttrHostname
@_exported public import let LoveseatIdentity.certAttrIPAddress
@_exported public import let LoveseatIdentity.certAttrLocality
@_exported public import let LoveseatIdentity.certAttrOrganization
@_exported public import let LoveseatIdentity.certAttrOrganizationUnit
@_exported public import let LoveseatIdentity.certAttrPostalAddress
@_exported public import let LoveseatIdentity.certAttrPostalCode
@_exported public import let LoveseatIdentity.certAttrPseudonym
@_exported public import let LoveseatIdentity.certAttrRegisteredID
@_exported public import let LoveseatIdentity.certAttrStateOrProvince
@_exported public import let LoveseatIdentity.certAttrSurname
@_exported public import let LoveseatIdentity.certAttrURL
