import Foundation
import LoveseatTesting
import Testing

/// Programs that tests start.
struct LifelineTests {
    @Test func `a program that a test has started ends when the tests do, whatever ends them`() throws {
        let lifeline = try Lifeline()
        let programs = try (0..<3).map { _ in
            let program = Process()
            program.executableURL = URL(filePath: "/bin/sleep")
            program.arguments = ["60"]
            try lifeline.run(program)
            return program
        }
        // A program that has ended is not killed again: another process may have its number.
        kill(programs[1].processIdentifier, SIGKILL)
        programs[1].waitUntilExit()
        try lifeline.cut()
        for program in programs {
            program.waitUntilExit()
            #expect(program.terminationReason == .uncaughtSignal)
        }
    }
}
