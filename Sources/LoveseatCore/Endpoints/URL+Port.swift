package import Foundation

extension URL {
    /// The port that a URL names, or the default one of its scheme: 443 for `https` and `wss`, 80 for all others. Nil for a number that is
    /// not a port.
    ///
    /// `port` of Foundation is any number: it is not limited to 65535, and numbers beyond 64 bits wrap around.
    package var validPort: UInt16? {
        let digits = portText
        guard !digits.isEmpty else { return ["https", "wss"].contains(scheme?.lowercased()) ? 443 : 80 }
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits), port > 0
        else {
            return nil
        }
        return port
    }

    /// The text after the colon of the host; empty if there is none.
    private var portText: Substring {
        let text = absoluteString
        guard let start = text.firstRange(of: "//")?.upperBound else { return "" }
        let authority = text[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let place = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        let afterHost = place.lastIndex(of: "]").map { place[place.index(after: $0)...] } ?? place
        guard let colon = afterHost.firstIndex(of: ":") else { return "" }
        return afterHost[afterHost.index(after: colon)...]
    }
}
