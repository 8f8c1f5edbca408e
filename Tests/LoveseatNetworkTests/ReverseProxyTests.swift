import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

// Group in ./test: programs
/// A replicator whose peer is behind nginx (Debian's package, which `./test` installs): it buffers, and closes what is
/// idle for too long.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx"))) struct ReverseProxyTests
{
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// nginx on a port of its own, passing everything on to another; with an identity it ends TLS.
    ///
    /// It gets the listening socket, as it does from an nginx that it takes the place of, so that nobody else takes the port.
    private func nginx(idleSeconds: Int, to port: Int, _ identity: TLSIdentity? = nil) throws -> (
        process: Process, port: Int
    ) {
        let pem = "\(scratch.path)/nginx.pem"
        if let identity {
            try identity.pem(passphrase: nil).write(toFile: pem, atomically: true, encoding: .utf8)
        }
        let tls = "ssl_certificate \(pem); ssl_certificate_key \(pem); ssl_protocols TLSv1.2 TLSv1.3;"
        let socket = try ListeningSocket()
        let configuration = """
            daemon off;
            pid \(scratch.path)/nginx.pid;
            error_log \(scratch.path)/error.log;
            events { worker_connections 64; }
            http {
                access_log off;
                client_body_temp_path \(scratch.path)/body;
                proxy_temp_path \(scratch.path)/proxy;
                fastcgi_temp_path \(scratch.path)/fastcgi;
                uwsgi_temp_path \(scratch.path)/uwsgi;
                scgi_temp_path \(scratch.path)/scgi;
                server {
                    listen 127.0.0.1:\(socket.port)\(identity == nil ? "" : " ssl");
                    \(identity == nil ? "" : tls)
                    location / {
                        proxy_pass http://127.0.0.1:\(port);
                        proxy_http_version 1.1;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection "upgrade";
                        proxy_read_timeout \(idleSeconds)s;
                    }
                }
            }
            """
        try configuration.write(toFile: "\(scratch.path)/nginx.conf", atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/sbin/nginx")
        process.arguments = ["-c", "\(scratch.path)/nginx.conf", "-e", "\(scratch.path)/error.log"]
        process.environment = ProcessInfo.processInfo.environment.merging(["NGINX": "0;"]) { $1 }
        process.standardInput = socket.handle
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        return (process, socket.port)
    }

    @Test(arguments: [false, true])
    func `a heartbeat keeps a continuous sync alive through a proxy that closes what is idle`(
        _ endsTLS: Bool
    ) async throws {
        let identity = try TLSIdentity.createIdentity(
            for: .serverAuth,
            attributes: [certAttrCommonName: "proxy", certAttrIPAddress: "127.0.0.1"],
            label: nil
        )
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        let (here, there) = (try near.defaultCollection(), try far.defaultCollection())
        var listening = URLEndpointListenerConfiguration(collections: [there])
        listening.disableTLS = true
        listening.networkInterface = "127.0.0.1"
        let listener = URLEndpointListener(listening)
        try await listener.start()
        let (process, port) = try nginx(
            idleSeconds: 2,
            to: Int(try #require(listener.port)),
            endsTLS ? identity : nil
        )
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        let content = [UInt8](repeating: 7, count: 3_000_000)
        let blob = try far.saveBlob(content, contentType: "image/png")
        try there.save(Document(id: "blob", ["blob": blob.json]))
        for number in 0..<2_000 { try here.save(Document(id: "d\(number)", ["n": JSONValue(number)])) }

        let url = try #require(URL(string: "\(endsTLS ? "wss" : "ws")://127.0.0.1:\(port)/far"))
        var configuration = ReplicatorConfiguration(collections: [here], target: URLEndpoint(url))
        configuration.continuous = true
        configuration.heartbeat = 0.5
        // nginx shows the identity as one whose authority is the certificate itself.
        configuration.rootCertificates = identity.certs
        let replicator = Replicator(configuration)
        let statuses = replicator.statuses
        replicator.start()
        var seen: [Replicator.ActivityLevel] = []
        for await status in statuses {
            seen.append(status.activity)
            if status.activity == .idle { break }
        }
        try #require(replicator.status.error == nil)
        #expect(try here.contents() == there.contents())
        // Far longer than the proxy lets a connection be idle.
        try await Task.sleep(for: .seconds(5))
        #expect(replicator.status.activity == .idle)
        #expect(replicator.status.error == nil)
        try there.save(Document(id: "late"))
        try await eventually { try here.document(id: "late") != nil }
        #expect(!seen.contains(.offline))

        // Without, the proxy ends it, and the replicator comes back by itself.
        replicator.stop()
        await replicator.waitUntilStopped()
        configuration.heartbeat = 600
        configuration.maxAttemptWaitTime = 1
        let silent = Replicator(configuration)
        let events = silent.statuses
        silent.start()
        for await status in events where status.activity == .offline { break }
        for await status in silent.statuses where status.activity == .idle { break }
        silent.stop()
        #expect(await silent.waitUntilStopped().error == nil)
        await listener.stop()
    }
}

/// A TCP socket that listens on a free port of 127.0.0.1, for a program that is started with it.
private struct ListeningSocket {
    let handle: FileHandle
    let port: Int

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 128) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isListening)
        port = Int(UInt16(bigEndian: address.sin_port))
    }
}
